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

// The tools whose calls are more to a rule than their arguments as JSON.
const (
	execShell  = "exec_shell"
	spawn      = "spawn"
	webFetch   = "web_fetch"
	webSearch  = "web_search"
	message    = "message"
	applyPatch = "apply_patch"
)

// A subject is what the rules look at in a call.
type subject struct {
	texts  []part
	denied string // why it is not run, whatever the rules say
	opaque string // why not all can be seen
}

// A part is one thing that a call acts on: a command, an address, a path.
type part struct {
	text string
	// also are other forms of it, by which a rule may deny it.
	also   []string
	writes bool
}

// any tells whether something holds for one of the texts, in any of its forms.
func (s subject) any(holds func(string) bool) bool {
	return slices.ContainsFunc(s.texts, func(p part) bool { return holds(p.text) || slices.ContainsFunc(p.also, holds) })
}

// arguments are those by which some tools are known.
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

func read(call tools.Call) arguments {
	var a arguments
	_ = json.Unmarshal(call.Args, &a) // they fit the tool's schema; of others nothing is asked
	return a
}

// subject is what the rules look at in a call.
func (g *Guard) subject(call tools.Call) subject {
	switch call.Name {
	case execShell:
		return ofLine(shellline.Parse(read(call).Command))
	case spawn:
		a := read(call)
		return ofLine(shellline.ParseArgs(a.Command, a.Args))
	case webFetch:
		return ofURL(read(call).URL)
	case message:
		return subject{texts: g.addressed(read(call))}
	case applyPatch:
		var s subject
		if g.cfg.Patched != nil {
			for _, p := range g.cfg.Patched(read(call).Patch) {
				s.texts = append(s.texts, part{text: g.path(call, p)})
			}
		}
		return s
	case "read_file", "write_file", "edit_file", "list_directory", "glob", "grep", "image":
		return subject{texts: []part{{text: g.path(call, read(call).Path)}}}
	}
	return subject{texts: []part{{text: string(call.Args)}}}
}

func ofLine(line shellline.Line) subject {
	s := subject{denied: line.Denied, opaque: line.Opaque}
	for _, c := range line.Commands {
		s.texts = append(s.texts, part{c.Text, c.Also, c.Writes})
	}
	return s
}

// path is the name of a path in the session's workspace.
func (g *Guard) path(call tools.Call, p string) string {
	if g.cfg.Path != nil {
		return g.cfg.Path(call, p)
	}
	return path.Clean(p)
}

// addressed is where a message goes: each address that it reaches, and the words by
// which it was named.
func (g *Guard) addressed(a arguments) []part {
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

// ofURL is a URL as it is fetched: one of the many ways in which it can be written.
// What cannot be fetched has no such way, and is denied.
func ofURL(raw string) subject {
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

// plainPattern writes the host of a rule about URLs as ofURL does, as far as the
// pattern says it.
func plainPattern(pattern string) string {
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

// Names are the tools that a rule can be about although a machine may lack them:
// those that run commands, and those that reach the web.
func Names() []string {
	return append(commandTools(), webFetch, webSearch, applyPatch)
}

// commandTools are the tools that run commands.
func commandTools() []string {
	return []string{execShell, spawn, "git_status", "git_diff", "git_log", "git_commit", "git_branch"}
}
