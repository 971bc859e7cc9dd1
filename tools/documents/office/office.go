// Package office reads the text of DOCX, XLSX and PPTX files.
//
// Such a file is an archive of XML. Each part is read as a stream, with limits on how much it unpacks to and how
// deep it nests; elements are recognized by their local names, so that both versions of the standard are read.
//
// The files: archive.go opens the archive, and xml.go reads a part; word.go, words.go
// and numbers.go read DOCX, sheets.go and cells.go XLSX, and slides.go PPTX.
package office

import (
	"bytes"
	"cmp"
	"unicode/utf16"

	"parley/tools/documents/pages"
)

// Open reads a DOCX, XLSX or PPTX file.
func Open(content []byte) (pages.Document, error) {
	a, err := unpack(content)
	if err != nil {
		return nil, err
	}
	main := a.mainPart()
	if main == "" {
		return nil, pages.Errorf(pages.Unknown, "")
	}
	parts := &pages.Parts{}
	switch root, err := a.rootElement(main); {
	case err != nil:
		return nil, cmp.Or[error](boundsError(err), pages.Errorf(pages.Damaged, ""))
	case root == "document":
		err = readWord(a, main, parts)
		return result(parts, err)
	case root == "workbook":
		err = readSheets(a, main, parts)
		return result(parts, err)
	case root == "presentation":
		err = readSlides(a, main, parts)
		return result(parts, err)
	}
	return nil, pages.Errorf(pages.Unknown, "")
}

// result returns the part of a document that was read before reading ended with err. If the file is damaged and some
// text was read, it returns that text with a note. It returns an error if there is no text, or if the file exceeds the
// limits.
func result(parts *pages.Parts, err error) (pages.Document, error) {
	if err == nil {
		return parts, nil
	}
	if problem := boundsError(err); problem != nil {
		return nil, problem
	}
	if parts.Count() == 0 {
		return nil, pages.Errorf(pages.Damaged, "") // the error itself may quote the document
	}
	parts.AddNote("the file is damaged: what is behind this is missing")
	return parts, nil
}

// OldFormatError returns the problem with a file in the format that office programs wrote before 2007. Newer
// programs use that format for documents with a password.
func OldFormatError(content []byte) error {
	var name []byte
	for _, unit := range utf16.Encode([]rune("EncryptedPackage")) {
		name = append(name, byte(unit), byte(unit>>8))
	}
	if bytes.Contains(content, name) {
		return pages.Errorf(pages.Encrypted, "")
	}
	return pages.Errorf(pages.Legacy, "")
}
