package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// maxSecretFile bounds what ${file:…} reads.
const maxSecretFile = 64 << 10

// An expander replaces ${VAR} and ${file:PATH} in the strings of one value, and
// remembers what it was made of.
type expander struct {
	l        *loader
	verbatim bool     // from the environment: taken as it is
	refs     []string // what was replaced
	fromFile bool
}

// expand gives the text and what of it the file itself holds.
func (x *expander) expand(s string) (whole, own string, f *fault) {
	if x.verbatim || !strings.Contains(s, "${") {
		return s, s, nil
	}
	var all, literal strings.Builder
	for s != "" {
		i := strings.Index(s, "${")
		if i < 0 {
			i = len(s)
		}
		if i > 0 && i < len(s) && s[i-1] == '$' { // $${ stands for ${
			all.WriteString(s[:i-1] + "${")
			literal.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		all.WriteString(s[:i])
		literal.WriteString(s[:i])
		if s = s[i:]; s == "" {
			break
		}
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return "", "", &fault{wrong: "a ${ without its }", remedy: "close it, or write $${ for the characters themselves"}
		}
		text, f := x.lookUp(s[2:end])
		if f != nil {
			return "", "", f
		}
		all.WriteString(text)
		s = s[end+1:]
	}
	return all.String(), literal.String(), nil
}

func (x *expander) lookUp(ref string) (string, *fault) {
	if name, ok := strings.CutPrefix(ref, "file:"); ok {
		x.refs = append(x.refs, "${file:"+name+"}")
		x.fromFile = true
		return x.l.secretFile(name)
	}
	if !variable(ref) {
		// What stands there may be a secret put in the wrong place: it is not repeated.
		return "", &fault{wrong: "${…} holds no variable's name", remedy: "write ${VAR} or ${file:PATH}, or $${ for the characters themselves"}
	}
	x.refs = append(x.refs, "${"+ref+"}")
	text, ok := x.l.opts.Env(ref)
	if !ok {
		return "", &fault{wrong: "${" + ref + "} is not set", remedy: "set the environment variable " + ref + ", or read a file with ${file:PATH}"}
	}
	return text, nil
}

// variable says that a name can be an environment variable's.
func variable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return name != ""
}

// secretFile reads a file that a value refers to, less one newline at its end.
func (l *loader) secretFile(name string) (string, *fault) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.folder, path)
	}
	body, err := readBounded(path, maxSecretFile)
	what := "the file " + path + " "
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &fault{wrong: what + "does not exist", remedy: "create it with mode 0600, or correct the path in ${file:…}"}
	case err != nil:
		return "", &fault{wrong: what + "cannot be read: " + reason(err), remedy: "let the user that runs parley read it, and nobody else"}
	}
	if mode, open := l.openToOthers(path); open {
		return "", &fault{wrong: what + "can be read by others (mode " + mode + ")", remedy: "run: chmod 600 " + path}
	}
	text := string(body)
	if cut, ok := strings.CutSuffix(text, "\n"); ok {
		text = strings.TrimSuffix(cut, "\r")
	}
	return text, nil
}
