package office

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"parley/tools/documents/charset"
	"parley/tools/documents/pages"
)

// Limits of an archive, so that a small file cannot take much memory when it is unpacked.
const (
	maxParts    = 20_000
	maxPart     = 64 << 20  // bytes of a part, unpacked
	maxUnpacked = 192 << 20 // bytes of all parts that are read
)

// An archive is an office file: a ZIP archive of XML parts.
type archive struct {
	parts     map[string]*zip.File
	bytesLeft int64
}

// boundsError returns the error for a document that exceeds the limits; nil for any other error.
func boundsError(err error) error {
	if problem, ok := errors.AsType[*pages.Error](err); ok {
		return problem
	}
	return nil
}

// unpack opens an office file and finds its parts.
func unpack(content []byte) (*archive, error) {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, pages.Errorf(pages.Damaged, "it is no whole archive")
	}
	if len(z.File) > maxParts {
		return nil, pages.Errorf(pages.TooMuch, "it has %d parts", len(z.File))
	}
	a := &archive{parts: make(map[string]*zip.File, len(z.File)), bytesLeft: maxUnpacked}
	for _, f := range z.File {
		name := cleanName(f.Name)
		if _, twice := a.parts[name]; !twice {
			a.parts[name] = f
		}
	}
	return a, nil
}

// cleanName returns a part's name in the form used to look up parts, because programs write the
// names in different ways.
func cleanName(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/"))
}

// has reports whether the archive has a part of that name.
func (a *archive) has(name string) bool { return a.parts[cleanName(name)] != nil }

// read opens a part of the file and calls fn to read its XML. If there is no such part, the error
// is fs.ErrNotExist.
func (a *archive) read(name string, fn func(r *partReader) error) error {
	f := a.parts[cleanName(name)]
	if f == nil {
		return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	body, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = body.Close() }() // a wrong checksum does not matter here
	from := &boundedReader{from: body, left: min(maxPart, a.bytesLeft)}
	defer func() { a.bytesLeft -= from.read }()
	d := xml.NewDecoder(from)
	d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) { return charset.Reader(label, in) }
	return fn(&partReader{d: d})
}

// readOptional reads a part that may be missing.
func (a *archive) readOptional(name string, do func(r *partReader) error) error {
	err := a.read(name, do)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// rootElement returns the name of a part's first element.
func (a *archive) rootElement(name string) (root string, err error) {
	err = a.read(name, func(r *partReader) error {
		return r.eachChild(func(e xml.StartElement) error {
			root = e.Name.Local
			return io.EOF
		})
	})
	if errors.Is(err, io.EOF) && root != "" {
		err = nil
	}
	return root, err
}

// A boundedReader is a reader that fails if there are more bytes than it may read.
type boundedReader struct {
	from       io.Reader
	left, read int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.read += int64(n)
	if b.left -= int64(n); b.left < 0 {
		return 0, pages.Errorf(pages.TooMuch, "what it unpacks to is longer than %d MB", maxPart>>20)
	}
	return n, err
}

// A relation is a reference from one part of the document to another, or to a web address.
type relation struct{ kind, target string }

// relations returns the relations of a part, by id. Targets are names of parts, or addresses if
// they are external.
func (a *archive) relations(of string) (map[string]relation, error) {
	all := map[string]relation{}
	dir := path.Dir(of)
	err := a.readOptional(path.Join(dir, "_rels", path.Base(of)+".rels"), func(r *partReader) error {
		return r.walk(func(e xml.StartElement) error {
			if e.Name.Local != "Relationship" || len(all) > maxParts {
				return nil
			}
			target := attribute(e, "Target")
			if !strings.EqualFold(attribute(e, "TargetMode"), "External") {
				if !strings.HasPrefix(target, "/") {
					target = path.Join(dir, target)
				}
				target = strings.TrimPrefix(target, "/")
			}
			all[attribute(e, "Id")] = relation{path.Base(attribute(e, "Type")), target}
			return nil
		})
	})
	return all, err
}

// mainPart returns the name of the part that contains the document itself; "" if the archive is not
// an office file.
func (a *archive) mainPart() string {
	all, err := a.relations("")
	if err == nil {
		for _, r := range all {
			if r.kind == "officeDocument" && a.has(r.target) {
				return r.target
			}
		}
	}
	for _, name := range []string{"word/document.xml", "xl/workbook.xml", "ppt/presentation.xml"} {
		if a.has(name) {
			return name
		}
	}
	return ""
}
