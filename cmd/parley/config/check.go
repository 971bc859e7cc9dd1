package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/bus"
	"parley/cmd/parley/outbox"
	"parley/tools/spelling"
)

// check reports settings that are right one by one but do not fit together. It is called once all
// values are known.
func (l *loader) check() {
	seen := map[string]string{}
	for _, name := range l.names["channels"] {
		l.checkChannel(name)
		l.checkTwin(name, seen)
	}
	l.checkBusNeedsStore()
	for _, name := range l.names["targets"] {
		l.checkPlaces("targets."+name, false)
		l.checkMany("targets."+name, l.places["targets."+name], l.list("targets."+name))
	}
	for _, name := range append([]string{defaults}, l.names["agents"]...) {
		l.checkPlaces("agents."+name+".may_message", true)
		l.checkRules("agents." + name)
	}
	l.checkRules("tools")
	l.checkHooks()
	l.checkExpressions()
	l.checkPlaces("approvals.to", true)
	l.checkPlaces("notices.to", true)
	l.checkHTTP()
	l.checkSandbox()
	l.checkJobs()
	l.checkMCP()
	l.checkWeb()
	l.checkModel()
	l.checkSchedule()
	l.checkHeartbeat()
	l.checkModels()
	l.checkBudget()
	l.checkAgentFolders()
}

// list returns a setting's texts; nil if it has none.
func (l *loader) list(path string) []string {
	if v, ok := l.values[path]; ok {
		return v.v.([]string)
	}
	return nil
}

// report records a problem of the setting key: what is wrong and how it is remedied. If the value
// comes from the environment alone, the problem stops "parley serve" but no other command.
func (l *loader) report(at origin, key, what, remedy string) {
	p := at.problemAt(key, &fault{wrong: what, remedy: remedy})
	if at.env != "" {
		l.serving = append(l.serving, p)
		return
	}
	l.found = append(l.found, p)
}

// element returns where the i-th element of a list was written.
func (l *loader) element(path string, i int) origin {
	at := l.places[path]
	if at.file != "" {
		return l.lineOf(append(strings.Split(path, "."), strconv.Itoa(i))...)
	}
	return at
}

// writeKey returns the remedy for a key whose value must be one of a few words.
func (l *loader) writeKey(section, key string) string {
	words := l.section(section).find(key).words()
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(word)
	}
	remedy := "write " + key + " = " + quoted[0]
	if len(quoted) > 1 {
		remedy += ", or " + strings.Join(quoted[1:], " or ")
	}
	return remedy
}

// checkBusNeedsStore refuses a bus that several processes share without a store that they share: the workers would
// have the same messages but not the same logs.
func (l *loader) checkBusNeedsStore() {
	at, ok := l.places["bus.url"]
	if !ok || l.mentioned("store.url") {
		return
	}
	l.report(at, "bus.url", "[bus] url without [store] url: workers would share mail but not logs",
		"set [store] url or DATABASE_URL, or leave the bus out")
}

// checkPlaces reports entries of the list at this path that are no address and, if targets is
// set, no name of a target either.
func (l *loader) checkPlaces(path string, targets bool) {
	v, ok := l.values[path]
	if !ok || v.from == (origin{}) {
		return
	}
	if !l.mentioned(path) {
		return // inherited, and reported there
	}
	for i, s := range l.list(path) {
		if f := l.place(s, targets); f != nil {
			l.report(l.element(path, i), path, f.wrong, f.remedy)
		}
	}
}

// checkMany reports a list of targets and addresses that stand for more addresses than one
// message may have.
func (l *loader) checkMany(path string, at origin, to []string) {
	addresses := map[string]bool{}
	for _, s := range to {
		places, isTarget := l.values["targets."+s]
		if !isTarget {
			addresses[s] = true
			continue
		}
		for _, address := range places.v.([]string) {
			addresses[address] = true
		}
	}
	if n := len(addresses); n > outbox.MaxDestinations {
		l.report(at, path, fmt.Sprintf("leads to %d addresses, and a message may have %d", n, outbox.MaxDestinations), "make several targets")
	}
}

// place returns what is wrong with s, which must be an address or, if targets is set, may be the
// name of a target; nil if nothing is wrong.
func (l *loader) place(s string, targets bool) *fault {
	directory := outbox.Directory{Channels: l.names["channels"]}
	if targets {
		directory.Targets = map[string][]bus.Address{}
		for _, name := range l.names["targets"] {
			directory.Targets[name] = nil
		}
	}
	_, err := directory.Find(s)
	if err == nil {
		return nil
	}
	unknown, ok := errors.AsType[*outbox.UnknownError](err)
	if !ok || unknown.What == "target" && !targets {
		return &fault{wrong: fmt.Sprintf("%q is not an address", s), remedy: "write CHANNEL:CHAT or CHANNEL:CHAT/THREAD"}
	}
	f := &fault{wrong: fmt.Sprintf("no %s is called %q", unknown.What, unknown.Name)}
	switch {
	case unknown.Nearest != "":
		f.remedy = fmt.Sprintf("write %q", unknown.Nearest+strings.TrimPrefix(s, unknown.Name))
	case unknown.What == "target":
		f.remedy = "add it to [targets], or write an address: CHANNEL:CHAT"
	default:
		f.remedy = "add [channels." + unknown.Name + "]"
		if len(unknown.Known) > 0 {
			f.remedy += ", or use one of " + strings.Join(unknown.Known, ", ")
		}
	}
	return f
}

// needsModel returns the path of a table that is of no use without a model, such as a receiving
// channel, and the fault to report if no model is configured; "" if no table needs a model.
func (l *loader) needsModel() (path string, without *fault) {
	const remedy = `set OPENAI_API_KEY; or [model] base_url for a server of your own; or [model] name = "demo"; or `
	for _, name := range l.names["channels"] {
		if path := "channels." + name; l.str(path+".mode") == "chat" && slices.ContainsFunc(l.agentsOf(path), func(agent string) bool { return !l.hasOwnModel(agent) }) {
			return path, &fault{wrong: "it hears people, and no model answers them", remedy: remedy + `mode = "send" here`}
		}
	}
	for _, name := range l.names["webhooks"] {
		if path := "webhooks." + name; l.str(path+".agent") != "" && !l.hasOwnModel(l.str(path+".agent")) {
			return path, &fault{wrong: "it has an agent, and no model that answers", remedy: remedy + "remove agent here"}
		}
	}
	return "", nil
}

// checkModel reports channels or webhooks that nothing would answer because no model is
// configured.
func (l *loader) checkModel() {
	hears, what := l.needsModel()
	name, base, key := l.str("model.name"), l.str("model.base_url"), l.str("model.api_key")
	if hears == "" || name == demoName {
		return
	}
	u, err := url.Parse(base)
	own := base == "" || err == nil && u.Hostname() == "api.openai.com"
	switch {
	case !own || key != "":
	case base == "" && name == "":
		l.answering = append(l.answering, l.places[hears].problemAt(hears, what))
	case base == "":
		l.answering = append(l.answering, l.places["model.name"].problemAt("model.name", &fault{
			wrong:  "the model at the default URL wants a key, and there is none",
			remedy: "set OPENAI_API_KEY, or write [model] base_url for a server of your own",
		}))
	default:
		l.answering = append(l.answering, l.places["model.base_url"].problemAt("model.base_url", &fault{
			wrong:  "the server named here wants a key, and the environment's is not sent to it unasked",
			remedy: `write api_key = "${OPENAI_API_KEY}" beside it`,
		}))
	}
}

// A Problem is one mistake in the configuration, and what to do about it. It never holds
// a secret.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Var    string `json:"env,omitempty"` // the environment variable whose value is wrong, if it is one
	Key    string `json:"key,omitempty"`
	Wrong  string `json:"wrong"`
	Remedy string `json:"remedy"`
}

// String returns "file:line: key: what is wrong: remedy".
func (p Problem) String() string {
	var parts []string
	for _, part := range []string{origin{p.File, p.Line, p.Var}.inWords(), p.Key, p.Wrong, p.Remedy} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// An Error has every problem that was found, in the order of the file.
type Error struct {
	Problems []Problem `json:"problems"`
}

// Error returns one problem on each line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// A SettingError says which setting keeps the server from starting although the
// configuration itself is valid, and what to do.
type SettingError struct {
	Where  string // file:line, or in words where else the value comes from; may be empty
	Key    string
	Remedy string
}

// Error returns where the setting is, its name and what to do.
func (e *SettingError) Error() string {
	if e.Where == "" {
		return e.Key + ": " + e.Remedy
	}
	return e.Where + ": " + e.Key + ": " + e.Remedy
}

// problems returns an *Error of the problems; nil if there are none.
func problems(found []Problem) error {
	if len(found) == 0 {
		return nil
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return &Error{Problems: slices.Compact(found)}
}

// An origin is the place where a value was written: a line of the file, or an environment
// variable. The zero origin means that the value is the default.
type origin struct {
	file string
	line int
	env  string
}

// inWords returns the origin in words; "" for a default.
func (o origin) inWords() string {
	switch {
	case o.env != "":
		return o.env + " (environment)"
	case o.file != "" && o.line > 0:
		return fmt.Sprintf("%s:%d", o.file, o.line)
	}
	return o.file
}

// problemAt returns a Problem for a fault in the value of the setting key that was written at
// this origin.
func (o origin) problemAt(key string, f *fault) Problem {
	return Problem{File: o.file, Line: o.line, Var: o.env, Key: key, Wrong: f.wrong, Remedy: f.remedy}
}

// A fault says what is wrong with a value, before it is known where the value was written.
type fault struct {
	wrong  string
	remedy string
	index  int // which element of a list is wrong, counted from 1; 0 means the whole value
}

// oneOf returns the remedy for a word that is not among the known ones: it names the nearest of
// them, or all.
func oneOf(word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return fmt.Sprintf("write %q", near)
	}
	quoted := make([]string, len(known))
	for i, k := range known {
		quoted[i] = fmt.Sprintf("%q", k)
	}
	if len(quoted) == 1 {
		return "write " + quoted[0]
	}
	return "write one of " + strings.Join(quoted, ", ")
}
