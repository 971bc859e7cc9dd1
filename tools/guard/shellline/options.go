package shellline

import (
	"slices"
	"strings"
)

// skipOptions skips the options before a command, including the values of the options in valued.
func skipOptions(args []word, valued ...string) []word {
	for len(args) > 0 {
		text := args[0].text
		switch {
		case text == "--":
			return args[1:]
		case !strings.HasPrefix(text, "-") || text == "-":
			return args
		case slices.Contains(valued, text):
			args = dropFirst(args, 2)
		default:
			args = args[1:]
		}
	}
	return nil
}

// dropFirst returns args without the first n words.
func dropFirst(args []word, n int) []word { return args[min(n, len(args)):] }

// parseFlags reports whether args contain an option with one of the letters in short or with the
// name long, and returns the arguments that are not options.
func parseFlags(args []word, short, long string) (given bool, plain []word) {
	for i, a := range args {
		switch {
		case a.text == "--":
			return given, append(plain, args[i+1:]...)
		case strings.HasPrefix(a.text, "--"):
			// A long option may be abbreviated, and may have a value.
			option, _, _ := strings.Cut(a.text, "=")
			given = given || len(option) > 3 && strings.HasPrefix(long, option)
		case strings.HasPrefix(a.text, "-") && a.text != "-":
			given = given || strings.ContainsAny(a.text[1:], short)
		default:
			plain = append(plain, a)
		}
	}
	return given, plain
}

// optionValues returns the values of the named options: the next word, the text after =, or, for a
// short option, the rest of the word.
func optionValues(args []word, names ...string) []word {
	var all []word
	for i, a := range args {
		for _, name := range names {
			value, glued := strings.CutPrefix(a.text, name)
			if long := strings.HasPrefix(name, "--"); long && !glued {
				// A long option may be abbreviated.
				option, behind, has := strings.Cut(a.text, "=")
				if len(option) > 4 && strings.HasPrefix(name, option) {
					glued, value = true, ""
					if has {
						value = "=" + behind
					}
				}
			}
			switch {
			case !glued:
			case value == "" && i+1 < len(args):
				all = append(all, args[i+1])
			case strings.HasPrefix(value, "="):
				all = append(all, literalWithHoles(value[1:]))
			case value != "" && !strings.HasPrefix(name, "--"):
				all = append(all, literalWithHoles(value))
			}
		}
	}
	return all
}

// bundledValues returns the values of short options that follow other options in the same word,
// such as -uo FILE and -uoFILE.
func bundledValues(args []word, letters ...byte) []word {
	var all []word
	for i, a := range args {
		text := a.text
		if text == "--" {
			break
		}
		if len(text) < 3 || text[0] != '-' || text[1] == '-' {
			continue
		}
		for _, letter := range letters {
			at := strings.IndexByte(text[2:], letter)
			switch {
			case at < 0:
			case at+3 < len(text):
				all = append(all, literalWithHoles(text[at+3:]))
			case i+1 < len(args):
				all = append(all, args[i+1])
			}
		}
	}
	return all
}
