package guard

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/guard/shellline"
	"parley/tools/target"
)

// The tools whose arguments the rules understand. Of other tools they only see the arguments as
// JSON.
const (
	execShell  = "exec_shell"
	spawn      = "spawn"
	webFetch   = "web_fetch"
	webSearch  = "web_search"
	message    = "message"
	applyPatch = "apply_patch"
)

// A subject is what a call acts on, as far as the rules look at it.
type subject struct {
	texts  []part
	denied string // why the call is not run, whatever the rules say; "" otherwise
	opaque string // why not everything that it does can be seen; "" if it can
}

// A part is one thing that a call acts on: a command, an address, a path.
type part struct {
	text string
	// also are other forms of the text, by which a rule may deny it.
	also   []string
	writes bool
}

// anyText reports whether the function holds returns true for one of the texts, in any of its
// forms.
func (s subject) anyText(holds func(string) bool) bool {
	return slices.ContainsFunc(s.texts, func(p part) bool { return holds(p.text) || slices.ContainsFunc(p.also, holds) })
}

// arguments are the arguments of those tools that the guard knows.
type arguments struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	URL     string   `json:"url"`
	Method  string   `json:"method"`
	Path    string   `json:"path"`
	Channel string   `json:"channel"`
	ChatID  string   `json:"chat_id"`
	Patch   string   `json:"patch"`
	Scope   string   `json:"scope"`
	Action  string   `json:"action"`
	Files   []string `json:"files"`

	Headers map[string]string `json:"headers"`
}

// readArguments decodes those arguments of a call that the guard knows.
func readArguments(call tools.Call) arguments {
	var a arguments
	_ = json.Unmarshal(call.Args, &a) // they fit the tool's schema; those of other tools are not looked at
	return a
}

// subjectOf returns what a call acts on, as far as the rules look at it.
func (g *Guard) subjectOf(call tools.Call) subject {
	switch call.Name {
	case execShell:
		return subjectOfLine(shellline.Parse(readArguments(call).Command))
	case spawn:
		a := readArguments(call)
		return subjectOfLine(shellline.ParseArgs(a.Command, a.Args))
	case webFetch:
		return subjectOfURL(readArguments(call).URL)
	case message:
		return subject{texts: g.addressedParts(readArguments(call))}
	case applyPatch:
		var s subject
		if g.cfg.Patched != nil {
			for _, p := range g.cfg.Patched(readArguments(call).Patch) {
				s.texts = append(s.texts, part{text: g.workspaceName(call, p)})
			}
		}
		return s
	case "read_file", "write_file", "edit_file", "list_directory", "glob", "grep", "image":
		return subject{texts: []part{{text: g.workspaceName(call, readArguments(call).Path)}}}
	}
	return subject{texts: []part{{text: string(call.Args)}}}
}

// subjectOfLine returns what a shell line acts on: its commands.
func subjectOfLine(line shellline.Line) subject {
	s := subject{denied: line.Denied, opaque: line.Opaque}
	for _, c := range line.Commands {
		s.texts = append(s.texts, part{c.Text, c.Also, c.Writes})
	}
	return s
}

// workspaceName returns the name of a path in the session's workspace.
func (g *Guard) workspaceName(call tools.Call, p string) string {
	if g.cfg.Path != nil {
		return g.cfg.Path(call, p)
	}
	return path.Clean(p)
}

// addressedParts returns where a message goes: each address that it reaches. The words with which
// the model named the place count as another form of each.
func (g *Guard) addressedParts(a arguments) []part {
	named := a.Channel
	if a.ChatID != "" {
		named += ":" + a.ChatID
	}
	if g.cfg.Addresses != nil {
		var all []part
		for _, address := range g.cfg.Addresses(a.Channel, a.ChatID) {
			all = append(all, part{text: address, also: []string{named}})
		}
		if len(all) > 0 {
			return all
		}
	}
	return []part{{text: named}}
}

// subjectOfURL returns a URL in the one form in which it is fetched, of the many in which it can
// be written. A URL that cannot be fetched has no such form, and is denied.
func subjectOfURL(raw string) subject {
	u, err := target.Parse(raw)
	if err != nil {
		return subject{denied: err.Error()}
	}
	host := u.Host
	if port := u.Port(); u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	trailing := strings.HasSuffix(u.Path, "/")
	where := path.Clean("/" + u.Path)
	if trailing && where != "/" {
		where += "/"
	}
	text := u.Scheme + "://" + host + where
	if u.RawQuery != "" || u.ForceQuery {
		text += "?" + u.RawQuery
	}
	return subject{texts: []part{{text: text}}}
}

// normalizePattern returns the pattern of a rule about URLs with the host in the form that
// subjectOfURL uses, as far as the pattern has the host's name.
func normalizePattern(pattern string) string {
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		return pattern
	}
	end := strings.IndexAny(rest, "/:?[")
	if end < 0 {
		end = len(rest)
	}
	labels := strings.Split(rest[:end], ".")
	for i, label := range labels {
		if strings.Trim(label, "0123456789") == "" || strings.Contains(label, "*") {
			continue
		}
		if plain, err := target.Host(label); err == nil {
			labels[i] = plain
		}
	}
	return strings.ToLower(scheme) + "://" + strings.Join(labels, ".") + rest[end:]
}

// Names returns the tools that a rule may name although this machine may not have them: those
// that run commands, and those that reach the web.
func Names() []string {
	return append(commandTools(), webFetch, webSearch, applyPatch)
}

// commandTools returns the tools that run commands.
func commandTools() []string {
	return []string{execShell, spawn, "git_status", "git_diff", "git_log", "git_commit", "git_branch"}
}
