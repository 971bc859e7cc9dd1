// Package office reads the text of DOCX, XLSX and PPTX files.
package office

import (
	"bytes"
	"unicode/utf16"

	"parley/tools/documents/pages"
)

// Open reads a document.
func Open([]byte) (pages.Document, error) { return nil, pages.Errorf(pages.Unknown, "") }

// Old says what is wrong with a file of the kind that office programs wrote before 2007.
// Newer programs put a document that has a password into one.
func Old(content []byte) error {
	var name []byte
	for _, unit := range utf16.Encode([]rune("EncryptedPackage")) {
		name = append(name, byte(unit), byte(unit>>8))
	}
	if bytes.Contains(content, name) {
		return pages.Errorf(pages.Encrypted, "")
	}
	return pages.Errorf(pages.Legacy, "")
}
