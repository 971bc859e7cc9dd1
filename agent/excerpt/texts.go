// This file holds the text that people see from this package.

package excerpt

const (
	textEscapes    = "Invisible characters are written as escapes, such as \\u200b.\n"
	textWouldDo    = "\nEverything it would do, line by line:\n\n"
	textCalledWith = "\nAll of its arguments:\n\n"
	textLineByLine = "\nThe text %s, line by line:\n\n"
)
