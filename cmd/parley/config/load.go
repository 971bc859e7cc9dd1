package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"parley/cmd/parley/config/positions"
)

// maxFile is the largest size of the configuration file, in bytes.
const maxFile = 1 << 20

// A value is what a setting is set to, with where that was written.
type value struct {
	path   string // "channels.telegram.access"
	set    *setting
	v      any // string, int64, time.Duration, []string or []Route
	from   origin
	refs   []string // the references ${…} of which it was made
	hidden bool     // not to be shown, though its setting is not a secret one
}

// A loader collects the values of all settings, and what is wrong with them, until a Config can
// be made.
type loader struct {
	opts     Options
	sections []section
	retired  []retiredKey

	document
	home       string
	fileSearch FileSearch

	values  map[string]*value
	places  map[string]origin // of every table and key that is mentioned, including wrong ones
	names   map[string][]string
	found   []Problem // what stops every command
	serving []Problem // what stops only "parley serve"
	// answering has the problems that stop a server only if it runs agents.
	answering []Problem
	warnings  []string
}

// A document is the configuration file after it was read.
type document struct {
	file      string // the path as the operator wrote it; "" when there is none
	folder    string // its folder, absolute
	positions *positions.Positions
	literals  []origin // where the file itself holds a secret
}

func load(o Options, sections []section, retired []retiredKey) (*Config, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	l := &loader{
		opts: o, sections: sections, retired: retired,
		values: map[string]*value{}, places: map[string]origin{}, names: map[string][]string{},
		document: document{positions: &positions.Positions{}},
	}
	l.findHome()
	l.fileSearch = l.seek()
	if tree, ok := l.readFile(); ok {
		l.take(tree)
		l.checkMode()
	}
	l.takeEnv()
	l.complete()
	l.check()
	if err := problems(l.found); err != nil {
		return nil, err
	}
	return l.build()
}

// env returns the value of an environment variable; false if it is not set, or empty.
func (l *loader) env(name string) (string, bool) {
	v, ok := l.opts.Env(name)
	return v, ok && v != ""
}

func (l *loader) wrong(o origin, key, what, remedy string) {
	l.found = append(l.found, o.problemAt(key, &fault{wrong: what, remedy: remedy}))
}

// lineOf returns the place in the file at which the key at this path is written.
func (l *loader) lineOf(path ...string) origin {
	return origin{file: l.file, line: l.positions.LineOf(path...)}
}

func (l *loader) findHome() {
	home, from := l.opts.Home, origin{}
	if home == "" {
		if v, ok := l.env("PARLEY_HOME"); ok {
			home, from = v, origin{env: "PARLEY_HOME"}
		} else if v, ok := l.env("HOME"); ok {
			home = filepath.Join(v, ".parley")
		}
	}
	if home == "" {
		l.wrong(from, "", "there is no place for the home: neither $HOME nor $PARLEY_HOME is set", "give --home DIR")
		return
	}
	abs, err := filepath.Abs(home)
	if err != nil {
		l.wrong(from, "", "the home's place cannot be told: "+reason(err), "give --home an absolute path")
		return
	}
	l.home = abs
}

// findFile returns the path of the configuration file, whether the operator has named it, so that
// it must exist, and if so where.
func (l *loader) findFile() (file string, named bool, from origin) {
	if l.opts.File != "" {
		return l.opts.File, true, origin{}
	}
	if v, ok := l.env("PARLEY_CONFIG"); ok {
		return v, true, origin{env: "PARLEY_CONFIG"}
	}
	if l.opts.LookLocal {
		if _, err := os.Stat("parley.toml"); !errors.Is(err, fs.ErrNotExist) {
			return "parley.toml", false, origin{}
		}
	}
	if l.home == "" {
		return "", false, origin{}
	}
	return filepath.Join(l.home, "parley.toml"), false, origin{}
}

// Place returns the path at which a command's configuration file is, or would be: the one that
// was named, else that of the home.
func Place(o Options) (string, error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	l := &loader{opts: o}
	l.findHome()
	if err := problems(l.found); err != nil && o.File == "" {
		return "", err
	}
	file, _, _ := l.findFile()
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("find the configuration's place: %w", err)
	}
	return abs, nil
}

// FileSearch says where the configuration file was looked for. It is printed for somebody who
// expected another file.
type FileSearch struct {
	// Places lists the places that were looked at, in words, if no file was found; empty
	// if one was found.
	Places []string
	// Unread is a ./parley.toml that exists and was ignored on purpose; "" if there is
	// none, or if a file was named.
	Unread string
}

// seek returns where the configuration file is looked for, and whether a parley.toml in the
// working directory is left unread.
func (l *loader) seek() (s FileSearch) {
	file, named, _ := l.findFile()
	if named {
		return s
	}
	const local = "parley.toml"
	if !l.opts.LookLocal && !sameFile(file, local) {
		if info, err := os.Stat(local); err == nil && info.Mode().IsRegular() {
			s.Unread = local
			if abs, err := filepath.Abs(local); err == nil {
				s.Unread = abs
			}
		}
	}
	if _, err := os.Stat(file); file == "" || err == nil {
		return s
	}
	s.Places = []string{"$PARLEY_CONFIG (not set)"}
	if l.opts.LookLocal {
		s.Places = append(s.Places, "./"+local)
	}
	if file != local {
		s.Places = append(s.Places, file)
	}
	return s
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// String says that no file was found and where it was looked for; it is empty if one was
// found.
func (s FileSearch) String() string {
	if len(s.Places) == 0 {
		return ""
	}
	return "no configuration file was found; looked at --config (not given), " + strings.Join(s.Places, ", ")
}

// readFile reads and parses the configuration file into a tree of tables. It returns false if
// there is no file, or it cannot be read.
func (l *loader) readFile() (map[string]any, bool) {
	file, named, from := l.findFile()
	if file == "" {
		return nil, false
	}
	doc, err := readBounded(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, false
	}
	if err != nil {
		remedy := "give the path of a file that is there and can be read"
		if !named {
			remedy = "make it readable, or move it away"
		}
		l.wrong(from, "", "cannot read the configuration "+file+": "+reason(err), remedy)
		return nil, false
	}
	l.file = file
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		l.wrong(origin{file: file}, "", "the file's folder cannot be told: "+reason(err), "give an absolute path")
		return nil, false
	}
	l.folder = folder
	return l.parse(doc)
}

func (l *loader) parse(doc []byte) (map[string]any, bool) {
	tree := map[string]any{}
	if err := toml.Unmarshal(doc, &tree); err != nil {
		at, what := origin{file: l.file}, "it cannot be read"
		if de, ok := errors.AsType[*toml.DecodeError](err); ok {
			at.line, _ = de.Position()
			what = parserMessage(de)
		}
		l.wrong(at, "", "not valid TOML: "+what, `a line is [table], or key = value with texts in "quotes"`)
		return nil, false
	}
	l.positions = positions.Find(doc)
	return tree, true
}

// parserMessage returns what the parser says about a mistake. It names keys and single
// characters, but it quotes a number that it cannot read, and that may be a secret whose
// quotation marks were forgotten. So everything from the message's first quotation mark on is
// left out.
func parserMessage(err *toml.DecodeError) string {
	words, _, cut := strings.Cut(strings.TrimPrefix(err.Error(), "toml: "), `"`)
	if cut {
		words = strings.TrimRight(words, " :")
	}
	return words
}

// readBounded returns the content of a regular file; its error is errTooLarge if the file has
// more than most bytes.
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

// reason returns the text of an error about a file, without the path, which the caller names
// itself.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// openToOthers reports whether others than the owner can read the file, and returns its mode in
// digits. What a container or a service manager mounts for its programs is exempt, because access
// to the mount is restricted already.
func (l *loader) openToOthers(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o044 == 0 {
		return "", false
	}
	// The second is where systemd keeps its services' credentials, also for a command
	// that is called with a service's configuration.
	mounts := []string{"/run/secrets", "/run/credentials"}
	if dir, ok := l.env("CREDENTIALS_DIRECTORY"); ok {
		mounts = append(mounts, dir)
	}
	places := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		places = append(places, real)
	}
	for _, mount := range mounts {
		if slices.ContainsFunc(places, func(p string) bool { return within(mount, p) }) {
			return "", false
		}
	}
	return fmt.Sprintf("%04o", info.Mode().Perm()), true
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(filepath.Clean(dir), path)
	return err == nil && filepath.IsLocal(rel)
}

// checkMode reports that the configuration file holds secrets and that others than its owner can
// read it.
func (l *loader) checkMode() {
	if len(l.literals) == 0 {
		return
	}
	path := filepath.Join(l.folder, filepath.Base(l.file))
	if mode, open := l.openToOthers(path); open {
		l.wrong(l.literals[0], "", "the file holds a secret, and others can read it (mode "+mode+")", "run: chmod 600 "+path)
	}
}
