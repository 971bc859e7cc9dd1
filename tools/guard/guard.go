// Package guard decides which calls of tools run: by rules, by what a call would do to the outside, and by what other programs say.
//
// Rules say of a tool, or of some of its calls, that they are denied, asked about or
// allowed; a denial anywhere wins. What they look at is what a call acts on: the
// commands of a shell line, an address, a path.
//
// The files: guard.go decides by the rules; rule.go reads them and matches texts;
// subject.go says what of a call they look at; words.go by which words it may name
// files; outward.go knows what acts on the
// outside; marks.go remembers which files hold what strangers may have written;
// hook.go asks programs of the operator's.
package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"parley/tools"
)

// A Policy is the rules for one agent or for all, as they are written.
type Policy struct{ Deny, Ask, Allow []string }

// Config is what a Guard decides by.
type Config struct {
	All    Policy
	Agents map[string]Policy // what agents have beside All
	// Path gives the name by which a call's session knows a path; nil leaves it as
	// it is written.
	Path func(call tools.Call, path string) string
	// Addresses gives the addresses that a message to a channel and a chat reaches,
	// CHANNEL:CHAT or CHANNEL:CHAT/THREAD. Nil knows none but that.
	Addresses func(channel, chat string) []string
	// Patched gives the paths that a patch touches; nil knows none.
	Patched func(patch string) []string
	// AskUntrusted asks about what acts on the outside after something untrusted was
	// read.
	AskUntrusted bool
	// Networked tells whether what a call runs, a command or git, reaches the network;
	// nil takes it that each does.
	Networked func(call tools.Call) bool
	// Carrier names what runs in the background, reads the files of a call's session and
	// reaches the network; "" if nothing does. Nil knows none.
	Carrier func(ctx context.Context, call tools.Call) (string, error)
}

// A Guard decides about calls. It may be asked from many goroutines.
type Guard struct {
	cfg    Config
	all    rules
	agents map[string]rules
	plain  map[string]*regexp.Regexp // see harmlessHeaders
}

// rules are those that hold for an agent.
type rules struct{ deny, ask, allow []Rule }

// New makes a guard. Its error is about the first rule that cannot be read.
func New(cfg Config) (*Guard, error) {
	all, err := parsePolicy(cfg.All)
	if err != nil {
		return nil, err
	}
	g := &Guard{cfg: cfg, all: all, agents: make(map[string]rules, len(cfg.Agents)), plain: harmlessHeaders()}
	for name, policy := range cfg.Agents {
		own, err := parsePolicy(policy)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %w", name, err)
		}
		g.agents[name] = rules{
			deny:  slices.Concat(all.deny, own.deny),
			ask:   slices.Concat(all.ask, own.ask),
			allow: slices.Concat(all.allow, own.allow),
		}
	}
	return g, nil
}

func parsePolicy(p Policy) (rules, error) {
	var r rules
	for _, list := range []struct {
		texts []string
		into  *[]Rule
	}{{p.Deny, &r.deny}, {p.Ask, &r.ask}, {p.Allow, &r.allow}} {
		for _, text := range list.texts {
			rule, err := ParseRule(text)
			if err != nil {
				return rules{}, err
			}
			*list.into = append(*list.into, rule)
		}
	}
	return r, nil
}

// Decide says what becomes of a call: the strictest of what the rules say and of what
// holds after something untrusted was read.
func (g *Guard) Decide(ctx context.Context, call tools.Call) tools.Verdict {
	v := g.decide(call, false)
	if v.Decision == tools.Deny || v.Decision == tools.Ask {
		return v
	}
	if what := g.carried(ctx, call); what != "" {
		return askUntrusted(what)
	}
	return v
}

// Redirect says whether a call of web_fetch may go on to where a page sends it. It is
// held against all that a call of its own would be, but for rules that are about every
// call of the tool: this one has passed them. What it reads there it has sent nothing to:
// the address is a server's, and stood in what that answered.
func (g *Guard) Redirect(call tools.Call, to string) tools.Verdict {
	args, err := json.Marshal(map[string]string{"url": to})
	if err != nil { // a text always marshals
		panic(err)
	}
	call.Args = args
	call.Seen = func(text string, _ func(string) bool) bool { return text == to }
	return g.decide(call, true)
}

// decide is Decide; asked says that what is asked about every call of the tool has been.
func (g *Guard) decide(call tools.Call, asked bool) tools.Verdict {
	v := g.byRules(call, asked)
	if v.Decision == tools.Deny {
		return v
	}
	if outward := g.ruleOfTwo(call); outward.Decision != "" {
		return outward
	}
	return v
}

// byRules is what the rules say of a call, and of the files that it reads to send them.
func (g *Guard) byRules(call tools.Call, asked bool) tools.Verdict {
	v := g.ofItself(call, asked)
	for _, file := range filesSent(call) {
		if v.Decision == tools.Deny {
			return v
		}
		if of := g.ofItself(file, false); of.Decision == tools.Deny || v.Decision != tools.Ask {
			v = of
		}
	}
	return v
}

// filesSent are the calls that would read the files that a call sends: who may not read
// a file may not send it either.
func filesSent(call tools.Call) []tools.Call {
	if call.Name != message {
		return nil
	}
	var all []tools.Call
	for _, p := range read(call).Files {
		args, err := json.Marshal(map[string]string{"path": p})
		if err != nil { // a text always marshals
			panic(err)
		}
		reading := call
		reading.Name, reading.Args = "read_file", args
		all = append(all, reading)
	}
	return all
}

// ofItself is what the rules say of a call, and what is denied whatever they say.
func (g *Guard) ofItself(call tools.Call, asked bool) tools.Verdict {
	r, ok := g.agents[call.Agent]
	if !ok {
		r = g.all
	}
	subject := g.subject(call)
	if subject.denied != "" {
		return tools.Verdict{Decision: tools.Deny, Reason: "Refused before it ran: " + subject.denied + "."}
	}
	for _, rule := range r.deny {
		if rule.matches(call.Name, subject) {
			return tools.Verdict{Decision: tools.Deny, Reason: fmt.Sprintf("%s was refused: the operator's rule deny %q says so.", call.Name, rule.text)}
		}
	}
	for _, rule := range r.deny {
		if rule.mayMatch(call.Name, subject) {
			return ask("it may be what the rule deny %q forbids, which only running it would tell", rule.text)
		}
	}
	for _, rule := range r.ask {
		if asked && rule.pattern == nil {
			continue
		}
		if rule.matches(call.Name, subject) {
			return ask("the rule ask %q", rule.text)
		}
		if rule.mayMatch(call.Name, subject) {
			return ask("it may be what the rule ask %q is about, which only running it would tell", rule.text)
		}
	}
	return r.allows(call.Name, subject)
}

// allows asks about what no rule allows, where there are rules that allow something
// of that tool.
func (r rules) allows(tool string, s subject) tools.Verdict {
	var about []Rule
	for _, rule := range r.allow {
		if !rule.of(tool) {
			continue
		}
		if rule.pattern == nil {
			return tools.Verdict{}
		}
		about = append(about, rule)
	}
	switch {
	case len(about) == 0:
		return tools.Verdict{}
	case s.opaque != "":
		return ask("no rule allows what cannot be seen: %s", s.opaque)
	}
	for _, one := range s.texts {
		if !slices.ContainsFunc(about, func(rule Rule) bool { return rule.covers(one) }) {
			return ask("no rule allows %q", shown(one.text))
		}
	}
	return tools.Verdict{}
}

func ask(format string, args ...any) tools.Verdict {
	return tools.Verdict{Decision: tools.Ask, Reason: fmt.Sprintf(format, args...)}
}
