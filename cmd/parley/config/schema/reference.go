package schema

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A lookup resolves the references in texts: to the environment, and to files.
type lookup struct {
	env    func(name string) (string, bool)
	folder string // the folder from which relative paths of files start
}

// variable returns the value of an environment variable; false if it is unset or empty.
func (l lookup) variable(name string) (string, bool) {
	v, ok := l.env(name)
	return v, ok && v != ""
}

// path makes a path absolute; relative paths begin at the folder of the configuration file.
func (l lookup) path(s string) string {
	if !filepath.IsAbs(s) {
		s = filepath.Join(l.folder, s)
	}
	return s
}

// maxSecretFile is the largest file, in bytes, that ${file:…} reads.
const maxSecretFile = 64 << 10

// An expander replaces ${VAR} and ${file:PATH} in the strings of one value with what they refer to,
// and records which ones it has replaced.
type expander struct {
	lookup   lookup
	verbatim bool     // whether it replaces nothing, because the text comes from the environment
	refs     []string // the references that were replaced
	fromFile bool     // whether one of them names a file
	headers  Hidden   // which headers are secret, if the value is a list of headers
	secrets  []string // the secret texts that references stand for
}

// expand returns a text with its references replaced (whole), and the part of it that the file
// itself contains (own).
func (x *expander) expand(s string) (whole, own string, f *Fault) {
	if x.verbatim || !strings.Contains(s, "${") {
		return s, s, nil
	}
	var all, literal strings.Builder
	for s != "" {
		i := strings.Index(s, "${")
		if i < 0 {
			i = len(s)
		}
		if i > 0 && i < len(s) && s[i-1] == '$' { // $${ means ${
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
			return "", "", &Fault{Wrong: "a ${ has no }", Remedy: "add the }, or write $${ for a literal ${"}
		}
		text, f := x.find(s[2:end])
		if f != nil {
			return "", "", f
		}
		all.WriteString(text)
		s = s[end+1:]
	}
	return all.String(), literal.String(), nil
}

// find returns the value of a reference, which is the text inside ${…}.
func (x *expander) find(ref string) (string, *Fault) {
	if name, ok := strings.CutPrefix(ref, "file:"); ok {
		x.refs = append(x.refs, "${file:"+name+"}")
		x.fromFile = true
		text, f := x.lookup.secretFile(name)
		x.secrets = append(x.secrets, text)
		return text, f
	}
	if !isVariable(ref) {
		// The text may be a secret put in the wrong place: it is not repeated.
		return "", &Fault{Wrong: "${…} contains no variable name", Remedy: "write ${VAR} or ${file:PATH}, or $${ for a literal ${"}
	}
	x.refs = append(x.refs, "${"+ref+"}")
	text, ok := x.lookup.env(ref)
	if !ok {
		return "", &Fault{Wrong: "${" + ref + "} isn't set", Remedy: "set the environment variable " + ref + ", or read a file with ${file:PATH}"}
	}
	if x.headers >= References {
		x.secrets = append(x.secrets, text)
	}
	return text, nil
}

// isVariable reports whether a text can be the name of an environment variable.
func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return name != ""
}

// secretFile returns the content of a file that a value refers to, without one trailing newline.
func (l lookup) secretFile(name string) (string, *Fault) {
	path := l.path(name)
	body, err := readBounded(path, maxSecretFile)
	what := "the file " + path + " "
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &Fault{Wrong: what + "doesn't exist", Remedy: "create it with mode 0600, or correct the path in ${file:…}"}
	case err != nil:
		return "", &Fault{Wrong: what + "can't be read: " + Reason(err), Remedy: "let the user that runs parley read it, but nobody else"}
	}
	if mode, open := l.openToOthers(path); open {
		return "", &Fault{Wrong: what + "can be read by others (mode " + mode + ")", Remedy: "run: chmod 600 " + path}
	}
	text := string(body)
	if cut, ok := strings.CutSuffix(text, "\n"); ok {
		text = strings.TrimSuffix(cut, "\r")
	}
	return text, nil
}

// readBounded returns the content of a regular file. Its error is errTooLarge if the file has more than most bytes, and
// errNoFile if it isn't a regular file.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	if info.Size() > most {
		return nil, errTooLarge
	}
	return os.ReadFile(path)
}

var (
	errNoFile   = errors.New("not a regular file")
	errTooLarge = errors.New("too large")
)

// Reason returns the text of an error about a file, without the path, which the caller names
// itself.
func Reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// openToOthers reports whether anybody other than the owner can read the file, and returns its mode
// in digits. Files that a container or a service manager mounts for its programs are exempt,
// because access to the mount is already restricted.
func (l lookup) openToOthers(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o044 == 0 {
		return "", false
	}
	// The second is where systemd puts its services' credentials, even for a command that is called
	// with a service's configuration.
	mounts := []string{"/run/secrets", "/run/credentials"}
	if dir, ok := l.variable("CREDENTIALS_DIRECTORY"); ok {
		mounts = append(mounts, dir)
	}
	places := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		places = append(places, real)
	}
	for _, mount := range mounts {
		if slices.ContainsFunc(places, func(p string) bool { return Within(mount, p) }) {
			return "", false
		}
	}
	return fmt.Sprintf("%04o", info.Mode().Perm()), true
}

// Within reports whether a path is folder itself or is inside it.
func Within(folder, path string) bool {
	rel, err := filepath.Rel(filepath.Clean(folder), path)
	return err == nil && filepath.IsLocal(rel)
}
