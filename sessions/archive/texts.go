// This file holds the text that people see from this package.

package archive

const (
	textNotPacked    = "it isn't a file of the archive, or its beginning is damaged"
	textCutOff       = "the file is cut off after this line, or damaged there"
	textTooLong      = "this line is longer than any that was archived"
	textNoLine       = "this isn't a line of the archive"
	textAfterEnd     = "this line was added after the end"
	textOtherFile    = "this isn't the file of that day"
	textWrongEnd     = "this line says that the file has %d records, and it has %d"
	textMissingLines = "lines before this one are missing"
	textAddedLines   = "this line, or one before it, was added"
	textChangedLine  = "the line before this one was changed"

	textMissingFile   = "the file is missing; if it was removed on purpose, verify the later ones with --from DAY"
	textMissingBefore = "the file before this one is missing: that of %s"
	textUnknownFile   = "the database knows of no file for this day"
	textRewritten     = "the file is whole in itself, but it isn't what was archived: somebody has rewritten it, or cut its end off"
	textNotFirst      = "this file follows another one, which the database doesn't know"
)
