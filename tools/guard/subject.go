package guard

import (
	"path"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/guard/shellline"
	"parley/tools/target"
)

// A subject is what a call acts on, in the form in which the rules see it.
type subject struct {
	parts         []part
	isURL         bool     // texts is the address of a page
	deniedReason  string   // why the call is denied, whatever the rules say; "" if it isn't
	opaqueReason  string   // why some of its effects can't be seen; "" if all can
	maybeCommands []string // commands that it might run
}

// A part is one thing that a call acts on: a command, an address, a path.
type part struct {
	text string
	// otherForms are other forms of the text; a rule that matches one of them may deny the call.
	otherForms []string
	writes     bool
}

// anyText reports whether holds returns true for one of the texts, in any of its forms.
func (s subject) anyText(holds func(string) bool) bool {
	return slices.ContainsFunc(s.parts, func(p part) bool { return holds(p.text) || slices.ContainsFunc(p.otherForms, holds) })
}

// subjectOf returns what a call acts on, in the form in which the rules see it.
func (g *Guard) subjectOf(call tools.Call, of tools.Subject) subject {
	switch of := of.(type) {
	case tools.ShellLine, tools.Command:
		return subjectOfLine(lineOf(of))
	case tools.URL:
		return subjectOfURL(string(of))
	case tools.Chat:
		return subject{parts: g.addressedParts(of)}
	case tools.Paths:
		var s subject
		for _, p := range of {
			s.parts = append(s.parts, part{text: g.workspaceName(call, p)})
		}
		return s
	}
	return subject{parts: []part{{text: string(call.Args)}}}
}

// lineOf reads the commands of a subject that is a ShellLine or a Command. For any other subject it returns an
// empty Line.
func lineOf(of tools.Subject) shellline.Line {
	switch of := of.(type) {
	case tools.ShellLine:
		return shellline.Parse(string(of))
	case tools.Command:
		if len(of) > 0 {
			return shellline.ParseArgs(of[0], of[1:])
		}
	}
	return shellline.Line{}
}

// subjectOfLine returns what a shell line acts on: its commands.
func subjectOfLine(line shellline.Line) subject {
	s := subject{deniedReason: line.Denied, opaqueReason: line.Opaque, maybeCommands: line.MaybeCommands}
	for _, c := range line.Commands {
		s.parts = append(s.parts, part{c.Text, c.OtherTexts, c.Writes})
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

// addressedParts returns where a message goes: each address that it reaches. The words with which the model named
// the place are another form of each.
func (g *Guard) addressedParts(to tools.Chat) []part {
	named := to.Channel
	if to.Chat != "" {
		named += ":" + to.Chat
	}
	if g.cfg.Addresses != nil {
		var all []part
		for _, address := range g.cfg.Addresses(to.Channel, to.Chat) {
			all = append(all, part{text: address, otherForms: []string{named}})
		}
		if len(all) > 0 {
			return all
		}
	}
	return []part{{text: named}}
}

// subjectOfURL returns a URL in a single form, of the many in which it can be written. A URL that cannot be fetched
// is denied.
func subjectOfURL(raw string) subject {
	u, err := target.Parse(raw)
	if err != nil {
		return subject{deniedReason: err.Error()}
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
	return subject{parts: []part{{text: text}}, isURL: true}
}

// normalizePattern returns the pattern of a rule about URLs with the host in the form that subjectOfURL uses, if
// the pattern contains the host's name.
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
