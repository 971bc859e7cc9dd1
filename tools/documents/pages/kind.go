package pages

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// Sniffed is how many bytes from the beginning of a file KindOf needs.
const Sniffed = 1024

// KindOf returns the kind of a file, judging by its first bytes and its name. It returns None for a
// text that is valid UTF-8, which can be read as it is.
func KindOf(name string, start []byte) Kind {
	extension := strings.ToLower(path.Ext(name))
	switch {
	case bytes.HasPrefix(start, []byte("%PDF-")):
		return PDF
	case (extension == ".pdf" || !isUTF8(start)) && bytes.Contains(start[:min(len(start), Sniffed)], []byte("%PDF-")):
		return PDF // some programs write something of their own before the header
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		switch extension {
		case ".zip", ".jar", ".war", ".apk", ".whl", ".epub", ".odt", ".ods", ".odp":
			return None
		}
		return Office
	case bytes.HasPrefix(start, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return Old
	case isUTF8(start):
		return None
	case extension == ".csv", extension == ".tsv", extension == ".tab":
		return Table
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return Text
	}
	return None
}

// ChosenKind returns the kind of a file for which KindOf returns None, when the model asks for
// pages of it: a text is then split into parts.
func ChosenKind(name string) Kind {
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".tsv", ".tab":
		return Table
	}
	return Text
}

// isUTF8 reports whether a file that begins like this seems to be UTF-8. The last character may be
// cut in two.
func isUTF8(start []byte) bool {
	for cut := range utf8.UTFMax {
		if end := start[:len(start)-min(cut, len(start))]; utf8.Valid(end) {
			return !bytes.ContainsRune(end, 0)
		}
		if len(start) < Sniffed {
			break // start is the whole file
		}
	}
	return false
}
