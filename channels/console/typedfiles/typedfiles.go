// Package typedfiles finds the files that a person names in a typed line, so that they can be sent with it.
//
// A file is named by @ and its path: @notes.txt, @~/plan.png, @"my notes.txt", @my\ notes.txt,
// @file:///home/ann/plan.png. Only what a person has typed after an @, or has dropped onto the terminal, counts as
// a name: words in a text that was pasted from elsewhere never make a file leave the machine.
package typedfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"parley/bus"
)

// How much may go with one message.
const (
	MaxFiles = 10
	MaxBytes = 10 << 20
)

// A mention is an @ in a text, with the path that follows it.
type mention struct {
	begin, end int // in bytes
	path       string
	quote      byte // the quotation mark around the path; 0 if there is none
	open       bool // whether it extends to the end of the text, so that more may follow
}

// mentionsIn returns the mentions in a text, whether or not such files exist.
func mentionsIn(text string) []mention {
	var all []mention
	before := ' '
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == '@' && (unicode.IsSpace(before) || before == '(') {
			n := mentionAt(text, i)
			all = append(all, n)
			if i = n.end; i < len(text) {
				before = ' '
			}
			continue
		}
		before = r
		i += size
	}
	return all
}

// mentionAt reads the mention that begins at an index in a text.
func mentionAt(text string, at int) mention {
	n := mention{begin: at, end: len(text), open: true}
	var path strings.Builder
	rest := text[at+1:]
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		n.quote, rest = rest[0], rest[1:]
	}
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case n.quote != 0 && c == n.quote:
			n.end, n.open = len(text)-len(rest)+i+1, false
		case n.quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			n.end, n.open = len(text)-len(rest)+i, false
		case n.quote == 0 && c == '\\' && i+1 < len(rest):
			i++
			path.WriteByte(rest[i])
		default:
			path.WriteByte(c)
		}
		if !n.open {
			break
		}
	}
	n.path = path.String()
	return n
}

// expandPath returns the location that a typed path leads to.
func expandPath(path string) string {
	if strings.HasPrefix(path, "file://") {
		if u, err := url.Parse(path); err == nil && (u.Host == "" || u.Host == "localhost") {
			path = u.Path
		}
	}
	if rest, is := strings.CutPrefix(path, "~/"); is {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// lookUp looks up what a mention leads to; ok is false if there is nothing. Punctuation after the path that belongs to
// the sentence is not part of the path.
func (n mention) lookUp() (path string, info fs.FileInfo, ok bool) {
	tries := []string{n.path}
	if n.quote == 0 {
		tries = append(tries, strings.TrimRight(n.path, ".,;:!?)"))
	}
	for _, try := range tries {
		if try == "" || strings.ContainsRune(try, 0) {
			continue
		}
		if info, err := os.Stat(expandPath(try)); err == nil {
			return expandPath(try), info, true
		}
	}
	return "", nil, false
}

// Find returns the files that a typed text names, with their paths as references. wrong says why one of them can't
// be sent; the text should then not be sent. A name that leads nowhere is ordinary text.
func Find(text string) (found []bus.Attachment, wrong string) {
	var bytes int64
	for _, n := range mentionsIn(text) {
		path, info, ok := n.lookUp()
		if !ok {
			continue
		}
		path, err := filepath.Abs(path)
		if err == nil {
			err = check(path, info)
		}
		if err != nil {
			return nil, err.Error()
		}
		if slices.ContainsFunc(found, func(a bus.Attachment) bool { return a.Ref == path }) {
			continue
		}
		if bytes += info.Size(); bytes > MaxBytes {
			return nil, fmt.Sprintf("with %s, the files take up more than the %d MB that one message can have: send some in another message", path, MaxBytes>>20)
		}
		if len(found) == MaxFiles {
			return nil, fmt.Sprintf("one message can have at most %d files: send the rest in another message", MaxFiles)
		}
		found = append(found, bus.Attachment{Kind: bus.Document, Name: filepath.Base(path), Size: info.Size(), Ref: path})
	}
	return found, ""
}

// check returns an error if whatever is at a path can't be sent.
func check(path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s isn't a regular file: name another", path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", path, errors.Unwrap(err))
	}
	return f.Close()
}

// Pasted returns a pasted text in the form in which it goes into the line. A file that was dropped onto the
// terminal arrives as its path, which becomes a name. In any other text, a \ is put in front of each name of an
// existing file, so that it isn't a name: text by strangers must not choose which files are sent.
func Pasted(text string) string {
	if named, ok := droppedNames(text); ok {
		return named
	}
	var b strings.Builder
	at := 0
	for _, n := range mentionsIn(text) {
		if _, _, ok := n.lookUp(); ok {
			b.WriteString(text[at:n.begin] + `\`)
			at = n.begin
		}
	}
	return b.String() + text[at:]
}

// droppedNames returns the names of the files whose paths make up a text, in the forms in which terminals paste
// what is dropped onto them: quoted, with \ before special characters, or as a URL. ok is false for any other text.
func droppedNames(text string) (named string, ok bool) {
	var all []string
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		n := mentionAt("@"+rest, 0)
		path := expandPath(n.path)
		if !filepath.IsAbs(path) && rest == strings.TrimSpace(text) { // it may be a path with unescaped spaces
			return "", false
		}
		if info, err := os.Stat(path); !filepath.IsAbs(path) || err != nil || !info.Mode().IsRegular() {
			whole := expandPath(strings.TrimSpace(text))
			if info, err := os.Stat(whole); !filepath.IsAbs(whole) || strings.ContainsAny(whole, "\n\x00") || err != nil || !info.Mode().IsRegular() {
				return "", false
			}
			return "@" + escaped(whole) + " ", true
		}
		all = append(all, "@"+escaped(path))
		rest = rest[n.end-1:]
	}
	return strings.Join(all, " ") + " ", len(all) > 0
}

// escaped returns a path with a \ in front of each character that would end or change a name.
func escaped(path string) string {
	var b strings.Builder
	for _, r := range path {
		if unicode.IsSpace(r) || strings.ContainsRune(`\"'`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// maxListed is the number of files in a folder that are looked at to complete a name.
const maxListed = 5000

// Complete returns where the name that may still grow begins in a typed text, and what it may become, sorted; none
// if the text does not end in a name.
func Complete(text string) (at int, may []string) {
	all := mentionsIn(text)
	if len(all) == 0 || !all[len(all)-1].open {
		return 0, nil
	}
	n := all[len(all)-1]
	folder, begun := filepath.Split(n.path)
	in := expandPath(folder)
	if folder == "" {
		in = "."
	}
	dir, err := os.Open(in)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = dir.Close() }() // it was only read
	listed, _ := dir.ReadDir(maxListed)
	for _, e := range listed {
		if !strings.HasPrefix(e.Name(), begun) || begun == "" && strings.HasPrefix(e.Name(), ".") || !bus.IsClean(e.Name()) {
			continue
		}
		path, after := folder+e.Name(), ""
		if isFolder(in, e) {
			path += "/"
		} else if n.quote != 0 {
			after = string(n.quote)
		}
		if n.quote == 0 {
			may = append(may, "@"+escaped(path))
		} else {
			may = append(may, "@"+string(n.quote)+path+after)
		}
	}
	slices.Sort(may)
	return n.begin, may
}

// isFolder reports whether an entry of a folder is itself a folder, or a link to one. It looks at the disk only for
// links, because it is called at each keystroke.
func isFolder(in string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(in, e.Name()))
	return err == nil && info.IsDir()
}
