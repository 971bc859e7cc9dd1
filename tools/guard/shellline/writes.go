package shellline

import (
	"strings"
)

// writtenByOption returns the files that a command writes although no redirection says so, in the form of a
// redirection: "> FILE". The name is a Hole if it is not one of the words.
func writtenByOption(u invocation) []string {
	if len(u.words) == 0 {
		return nil
	}
	args := u.words[1:]
	var files []word
	switch name := u.program(); name {
	case "sort", "shuf", "tree":
		files = optionValues(args, "-o", "--output")
		files = append(files, bundledValues(args, 'o')...)
	case "uniq", "xxd":
		if _, plain := parseFlags(args, "", ""); len(plain) > 1 {
			files = plain[1:]
		}
	case "curl":
		files = optionValues(args, "-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr", "--etag-save", "--hsts", "--alt-svc", "--libcurl")
		files = append(files, bundledValues(args, 'o', 'c', 'D')...)
		if given, _ := parseFlags(args, "OJ", "--remote-name"); given {
			files = append(files, word{Hole, Hole})
		}
	case "git":
		files = optionValues(args, "--output")
	case "find":
		files = optionValues(args, "-fprint", "-fprint0", "-fprintf", "-fls")
		for _, a := range args {
			if a.text == "-delete" {
				files = append(files, word{Hole, Hole})
			}
		}
	case "sed", "gsed":
		if given, _ := parseFlags(args, "i", "--in-place"); given || newSedScripts(args).writes {
			files = append(files, word{Hole, Hole})
		}
	case "awk", "gawk", "mawk", "nawk":
		for _, a := range args {
			if strings.Contains(a.text, ">") && strings.Contains(a.text, "print") || a.text == "inplace" {
				files = append(files, word{Hole, Hole})
				break
			}
		}
	case "yq":
		if given, _ := parseFlags(args, "i", "--inplace"); given {
			files = append(files, word{Hole, Hole})
		}
	}
	var all []string
	for _, f := range files {
		if f.text != "-" && !isDiscarded(f) {
			all = append(all, "> "+f.text)
		}
	}
	return all
}

// sedScripts says what the scripts of a sed command do besides editing text.
type sedScripts struct{ runs, writes bool }

// newSedScripts reads the scripts among sed's arguments. A script that cannot be read counts as running commands
// and writing files.
func newSedScripts(args []word) sedScripts {
	var s sedScripts
	scripts := optionValues(args, "-e", "--expression")
	scripts = append(scripts, bundledValues(args, 'e')...)
	if len(optionValues(args, "-f", "--file")) > 0 {
		s = sedScripts{true, true}
	}
	if len(scripts) == 0 && !s.runs {
		if _, plain := parseFlags(args, "", ""); len(plain) > 0 {
			scripts = plain[:1]
		}
	}
	for _, a := range args {
		if a.text == "--sandbox" {
			return sedScripts{}
		}
	}
	for _, script := range scripts {
		s.read(script.text)
	}
	return s
}

// read reads one script.
func (s *sedScripts) read(script string) {
	if strings.Contains(script, Hole) {
		*s = sedScripts{true, true}
		return
	}
	for script != "" {
		var ok bool
		if script, ok = s.readCommand(script); !ok {
			*s = sedScripts{true, true}
			return
		}
	}
}

// readCommand reads one command with its address, and returns the text after it; false if it cannot be read.
func (s *sedScripts) readCommand(script string) (rest string, ok bool) {
	if script = strings.TrimLeft(script, " \t\n;}{!,+~0123456789$"); script == "" {
		return "", true
	}
	switch c := script[0]; c {
	case '/': // an address
		rest, ok = cutDelimited(script[1:], '/')
		return strings.TrimLeft(rest, "IM"), ok
	case '\\':
		if len(script) < 2 {
			return "", false
		}
		rest, ok = cutDelimited(script[2:], script[1])
		return strings.TrimLeft(rest, "IM"), ok
	case 's', 'y':
		if len(script) < 2 {
			return "", false
		}
		if rest, ok = cutDelimited(script[2:], script[1]); !ok {
			return "", false
		}
		if rest, ok = cutDelimited(rest, script[1]); !ok {
			return "", false
		}
		flags, after := cutFlags(rest)
		s.runs = s.runs || strings.Contains(flags, "e")
		if strings.Contains(flags, "w") {
			s.writes = true
			_, after, _ = strings.Cut(after, "\n")
		}
		return after, true
	case 'e':
		s.runs = true
		_, rest, _ = strings.Cut(script, "\n")
		return rest, true
	case 'w', 'W':
		s.writes = true
		_, rest, _ = strings.Cut(script, "\n")
		return rest, true
	case 'a', 'i', 'c', 'r', 'R', '#', ':', 'b', 't', 'T':
		end := "\n"
		if strings.IndexByte("btT", c) >= 0 {
			if at := strings.IndexAny(script, ";\n}"); at >= 0 {
				return script[at:], true
			}
			return "", true
		}
		_, rest, _ = strings.Cut(script, end)
		return rest, true
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'l', 'L', 'n', 'N', 'p', 'P', 'q', 'Q', 'x', 'z', 'F':
		return script[1:], true
	}
	return "", false
}

// cutFlags splits the flags of a substitution from the text after them.
func cutFlags(s string) (flags, rest string) {
	rest = strings.TrimLeft(s, "gpiIMm0123456789ew")
	return s[:len(s)-len(rest)], rest
}

// cutDelimited returns the text after the next delimiter that isn't escaped with a backslash; false if there is none. It
// also stops at a delimiter inside a bracket expression, which at worst makes a script unreadable.
func cutDelimited(s string, delimiter byte) (rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case delimiter:
			return s[i+1:], true
		}
	}
	return "", false
}
