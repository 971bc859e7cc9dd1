package schema

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// A Source says where settings are read from.
type Source struct {
	File    string // the path of the file, as the operator wrote it; "" means none
	Named   bool   // whether the operator has named the file, which means that it must exist
	NamedAt Origin // where the operator named it
	// Wrong lists the problems that the caller found while it searched for the file.
	Wrong []Problem
	// Env looks up an environment variable.
	Env func(name string) (string, bool)
	// WithoutSecrets says that a secret that cannot be read is not a mistake. Its value must not be
	// used.
	WithoutSecrets bool
	// Retired are the keys that were given up.
	Retired []Retired
}

// A document is the parsed configuration file.
type document struct {
	name     string // its path as the operator wrote it; "" if there is none
	lines    *lines
	literals []Origin // the places where the file itself contains a secret instead of a reference to one
}

// maxFile is the largest size of the configuration file, in bytes.
const maxFile = 1 << 20

// lineOf returns the place in the file at which the key at this path is written.
func (d *document) lineOf(path ...string) Origin {
	return Origin{File: d.name, Line: d.lines.lineOf(path...)}
}

// open reads and parses the file of the source into a tree of tables. It returns false if there is
// no file, or it can't be read.
func (v *Values) open(src Source) (map[string]any, bool) {
	if src.File == "" {
		return nil, false
	}
	doc, err := readBounded(src.File, maxFile)
	if errors.Is(err, fs.ErrNotExist) && !src.Named {
		return nil, false
	}
	if err != nil {
		remedy := "give the path of a file that exists and can be read"
		if !src.Named {
			remedy = "make it readable, or move it away"
		}
		v.refuse(src.NamedAt, "", "can't read the configuration "+src.File+": "+Reason(err), remedy)
		return nil, false
	}
	v.file.name = src.File
	folder, err := filepath.Abs(filepath.Dir(src.File))
	if err != nil {
		v.refuse(Origin{File: src.File}, "", "the file's folder can't be determined: "+Reason(err), "give an absolute path")
		return nil, false
	}
	v.lookup.folder = folder
	return v.parse(doc)
}

func (v *Values) parse(doc []byte) (map[string]any, bool) {
	tree := map[string]any{}
	if err := toml.Unmarshal(doc, &tree); err != nil {
		at, what := Origin{File: v.file.name}, "it can't be read"
		if de, ok := errors.AsType[*toml.DecodeError](err); ok {
			at.Line, _ = de.Position()
			what = parserMessage(de)
		}
		v.refuse(at, "", "not valid TOML: "+what, `each line has to be [table], or key = value with strings in "quotes"`)
		return nil, false
	}
	v.file.lines = findLines(doc)
	return tree, true
}

// parserMessage returns what the parser says about a mistake. It names keys and single characters,
// but it quotes a number that it cannot parse, and that may be a secret with missing quotation
// marks. So everything from the message's first quotation mark on is left out.
func parserMessage(err *toml.DecodeError) string {
	words, _, cut := strings.Cut(strings.TrimPrefix(err.Error(), "toml: "), `"`)
	if cut {
		words = strings.TrimRight(words, " :")
	}
	return words
}

// path returns the absolute path of the file; "" if there is none.
func (v *Values) path() string {
	if v.file.name == "" {
		return ""
	}
	return filepath.Join(v.lookup.folder, filepath.Base(v.file.name))
}

// checkMode reports that the configuration file contains secrets and that people other than its
// owner can read it.
func (v *Values) checkMode() {
	if len(v.file.literals) == 0 {
		return
	}
	path := v.path()
	if mode, open := v.lookup.openToOthers(path); open {
		v.refuse(v.file.literals[0], "", "the file contains a secret, and others can read it (mode "+mode+")", "run: chmod 600 "+path)
	}
}

// refuse records a problem that stops every command.
func (v *Values) refuse(at Origin, key, wrong, remedy string) {
	v.found = append(v.found, at.Problem(key, &Fault{Wrong: wrong, Remedy: remedy}))
}
