package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// str returns the text of the setting at this path; "" if it has none.
func (l *loader) str(path string) string {
	if v, ok := l.values[path]; ok {
		return v.v.(string)
	}
	return ""
}

// mentioned reports whether the file or the environment has something for a path, valid
// or not.
func (l *loader) mentioned(path string) bool {
	_, ok := l.places[path]
	return ok
}

// takeEnv takes from the environment the settings that the file leaves out.
func (l *loader) takeEnv() {
	for i := range l.sections {
		sec := &l.sections[i]
		for j := range sec.settings {
			set := &sec.settings[j]
			if set.env == "" || l.mentioned(sec.name+"."+set.key) {
				continue
			}
			if sec.name == "model" && (l.str("model.name") == demoName || l.withholdsKey(set)) {
				continue
			}
			l.takeVar(set, sec.name+"."+set.key, set.env)
		}
	}
	if l.file == "" {
		l.addChannels()
	}
	l.fillTokens()
}

// withholdsKey reports whether a key from the environment must not be used, because the file
// names another server than the one to which the key belongs.
func (l *loader) withholdsKey(set *setting) bool {
	base, ok := l.places["model.base_url"]
	if !set.secret || !ok || base.file == "" {
		return false
	}
	if _, ok := l.env(set.env); ok {
		l.warnings = append(l.warnings, Problem{
			Var: set.env, Key: "model.api_key", Wrong: "not sent to the base_url of the file",
			Remedy: `write api_key = "${` + set.env + `}" there if that is meant`,
		}.String())
	}
	return true
}

// takeVar takes the value of a setting from the environment variable name. If other programs use
// this variable too, a mistake in it stops "parley serve" only, because a chat may not need it.
func (l *loader) takeVar(set *setting, path, name string) {
	text, ok := l.env(name)
	if !ok {
		return
	}
	at := origin{env: name}
	l.places[path] = at
	d := decoder{set: set, key: set.key, x: &expander{l: l, verbatim: true}}
	v, f := d.decode(text)
	switch {
	case f == nil:
		l.values[path] = &value{path: path, set: set, v: v, from: at}
	case set.inChat:
		l.found = append(l.found, at.problemAt(path, f))
	default:
		l.serving = append(l.serving, at.problemAt(path, f))
	}
}

func (l *loader) section(name string) *section {
	i := slices.IndexFunc(l.sections, func(s section) bool { return s.name == name })
	return &l.sections[i]
}

// complete gives its default to every setting that has an effect and was left out.
func (l *loader) complete() {
	if l.str("model.name") == demoName {
		delete(l.values, "model.base_url")
		delete(l.values, "model.api_key")
	}
	if !slices.Contains(l.names["agents"], MainAgent) {
		l.names["agents"] = append(l.names["agents"], MainAgent)
		slices.Sort(l.names["agents"])
	}
	for i := range l.sections {
		sec := &l.sections[i]
		if !sec.named {
			l.fill(sec, sec.name)
			continue
		}
		for _, name := range l.names[sec.name] {
			if sec.keysAreNames() {
				continue
			}
			if sec.name == "agents" {
				l.inherit(sec, name)
			}
			l.fill(sec, sec.name+"."+name)
			l.fillName(sec, name)
		}
	}
}

func (l *loader) fill(sec *section, prefix string) {
	for i := range sec.settings {
		set := &sec.settings[i]
		path := prefix + "." + set.key
		if l.mentioned(path) || l.values[path] != nil || set.def == nil || set.hasNoEffectYet() {
			continue
		}
		def := set.def
		if name, ok := def.(homePath); ok {
			def = filepath.Join(l.home, string(name))
		}
		l.values[path] = &value{path: path, set: set, v: def}
	}
}

// inherit gives an agent the values of [agents.defaults] that it does not set itself.
func (l *loader) inherit(sec *section, name string) {
	for i := range sec.settings {
		key := sec.settings[i].key
		path := "agents." + name + "." + key
		if v, ok := l.values["agents."+defaults+"."+key]; ok && !l.mentioned(path) {
			v := *v
			v.path = path
			l.values[path] = &v
		}
	}
}

// fillName uses a table's own name as the value of the key that the section's byName says, if it
// is left out: a channel named telegram has the platform telegram.
func (l *loader) fillName(sec *section, name string) {
	path := sec.name + "." + name + "." + sec.byName
	if set := sec.find(sec.byName); set != nil && !l.mentioned(path) && slices.Contains(set.words(), name) {
		l.values[path] = &value{path: path, set: set, v: name}
	}
}

// maxSecretFile is the largest file, in bytes, that ${file:…} reads.
const maxSecretFile = 64 << 10

// An expander replaces ${VAR} and ${file:PATH} in the strings of one value by what they refer to,
// and records which it has replaced.
type expander struct {
	l        *loader
	verbatim bool     // from the environment: taken as it is
	refs     []string // the references that were replaced
	fromFile bool
}

// expand returns a text with its references replaced (whole), and of that only what the file
// itself holds (own).
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
	if !isVariable(ref) {
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

// secretFile returns the content of a file to which a value refers, without one newline at its
// end.
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
