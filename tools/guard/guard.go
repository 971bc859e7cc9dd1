// Package guard decides which tool calls run: by rules, by what a call would do outside the conversation, and by
// asking the operator's own programs.
//
// A rule denies all or some calls of a tool, allows them, or says that a person is asked about them; a denial
// anywhere wins. Rules look at what a call acts on: the commands of a shell line, an address, a path.
//
// The files: guard.go decides by the rules; rule.go reads rules and matches texts; subject.go reads what a call
// acts on; rate.go says how many calls people may have; judged.go finds the calls that a model judges; words.go lists the words by which a call may name files;
// outward.go asks about calls that act on the outside, and spending.go about too many requests; reads.go says
// which calls read only files that they name; marks.go remembers which files contain text that strangers may have
// written, and marking.go updates these marks around tool calls; hook.go asks the operator's programs.
//
// Tools declare what their calls touch (tools.Touch); the guard knows no tool by name.
package guard

import (
	"context"
	"fmt"
	"slices"

	"parley/tools"
)

// A Policy holds the rules for one agent, or for all agents, as the operator wrote them.
type Policy struct{ Deny, Ask, Allow []string }

// Config holds what a Guard bases its decisions on.
type Config struct {
	AllAgents Policy
	Agents    map[string]Policy // rules that agents have in addition to All
	Judge     []string          // rules for the calls that a model judges: see Guard.Judges
	Rates     []string          // how many calls people may have: see ParseRate
	// Path returns the name that a path has in the session of a call; nil leaves the path as it is written.
	Path func(call tools.Call, path string) string
	// Addresses returns the addresses that a message to a channel and a chat reaches,
	// CHANNEL:CHAT or CHANNEL:CHAT/THREAD. If Addresses is nil, the message reaches CHANNEL:CHAT
	// only.
	Addresses func(channel, chat string) []string
	// ReadingCall returns the call by which the agent would read a file itself. If a call passes a file on, the rules
	// about reading it apply, too. If Reading is nil, any file may be passed on.
	ReadingCall func(call tools.Call, path string) tools.Call
	// AskUntrusted says to ask a person about a call that acts on the outside after something untrusted was read.
	AskUntrusted bool
	// ReachesNetwork reports whether a program that a call runs, a command or git, can reach the network. If
	// ReachesNetwork is nil, every such call counts as reaching it.
	ReachesNetwork func(call tools.Call) bool
	// SubAgentMayFetch reports whether a sub-agent that gets a task from a call may fetch pages. If Fetches is nil, every
	// sub-agent may.
	SubAgentMayFetch func(call tools.Call) bool
	// NetworkedReader returns the name of a job that can read the files of a call's session and reach the network,
	// so that it could leak what the call writes; "" if there is none. If NetworkedReader is nil, there is none.
	NetworkedReader func(ctx context.Context, call tools.Call) (string, error)
}

// A Guard decides whether tool calls run. It may be used by several goroutines at once.
type Guard struct {
	cfg    Config
	all    rules
	agents map[string]rules
	judge  []Rule
	rates  []Rate
}

// rules are the rules that apply to one agent.
type rules struct{ deny, ask, allow []Rule }

// New makes a Guard. It returns an error if a rule or a rate cannot be read.
func New(cfg Config) (*Guard, error) {
	all, err := parsePolicy(cfg.AllAgents)
	if err != nil {
		return nil, err
	}
	judge, err := parsePolicy(Policy{Ask: cfg.Judge})
	if err != nil {
		return nil, err
	}
	g := &Guard{cfg: cfg, all: all, agents: make(map[string]rules, len(cfg.Agents)), judge: judge.ask}
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
	for _, text := range cfg.Rates {
		rate, err := ParseRate(text)
		if err != nil {
			return nil, err
		}
		g.rates = append(g.rates, rate)
	}
	return g, nil
}

// parsePolicy reads the rules of a policy.
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

// Decide returns what happens to a call: it runs, a person is asked, or it is denied. It takes the stricter of two
// decisions: the one by the rules, and the one because something was read that strangers may have written.
func (g *Guard) Decide(ctx context.Context, call tools.Call) tools.Verdict {
	t := call.Touch()
	v := g.decide(call, t, false)
	if v.Decision == tools.Deny || v.Decision == tools.Ask {
		return v
	}
	if what := g.describeNetworkedReader(ctx, call, t); what != "" {
		return askBecauseUntrusted(what)
	}
	return v
}

// Redirect decides whether a call that fetches a page may follow a redirect. A call for the new address would have
// to pass the same rules, except those about every call of the tool, which this call has passed already. It doesn't
// check whether the request may carry information out, because the new address comes from a server's answer and not
// from the model. An address that a model judges needs a call of its own.
func (g *Guard) Redirect(call tools.Call, to string) tools.Verdict {
	t := call.Touch()
	t.Subject, t.Outward = tools.URL(to), tools.NothingOutward{}
	call.Seen = func(address string) tools.Sighting { return tools.Sighting{Found: address == to} }
	call.Spent = nil
	v := g.decide(call, t, true)
	if v.Decision == "" && slices.ContainsFunc(g.judge, func(r Rule) bool { return !r.coversAll() && r.matches(call.Name, g.subjectOf(call, t.Subject)) }) {
		return askVerdict("a model has to judge a call to that address first")
	}
	return v
}

// decide does the work of Decide for a call that touches t; asked says that a person was already asked about this
// call because of a rule about every call of the tool.
func (g *Guard) decide(call tools.Call, t tools.Touch, asked bool) tools.Verdict {
	v := g.decideByRules(call, t, asked)
	if v.Decision == tools.Deny {
		return v
	}
	outward := g.applyRuleOfTwo(call, t)
	if outward.Decision != "" {
		return outward
	}
	v.Spends = outward.Spends
	return v
}

// decideByRules decides by the rules about a call and, if it passes files on, by the rules about reading those: an
// agent that may not read a file may not send it, or hand it to a sub-agent, either.
func (g *Guard) decideByRules(call tools.Call, t tools.Touch, asked bool) tools.Verdict {
	v := g.decideWithoutFiles(call, t, asked)
	if g.cfg.ReadingCall == nil {
		return v
	}
	for _, path := range t.Passes {
		if v.Decision == tools.Deny {
			return v
		}
		reading := g.cfg.ReadingCall(call, path)
		if of := g.decideWithoutFiles(reading, reading.Touch(), false); of.Decision == tools.Deny || v.Decision != tools.Ask {
			v = of
		}
	}
	return v
}

// decideWithoutFiles decides by the rules about a call itself, without the files that it passes on. It also denies
// calls that no rule can allow.
func (g *Guard) decideWithoutFiles(call tools.Call, t tools.Touch, asked bool) tools.Verdict {
	r, ok := g.agents[call.Agent]
	if !ok {
		r = g.all
	}
	subject := g.subjectOf(call, t.Subject)
	if subject.deniedReason != "" {
		return tools.Verdict{Decision: tools.Deny, Reason: "Refused before it ran: " + subject.deniedReason + "."}
	}
	for _, rule := range r.deny {
		if rule.matches(call.Name, subject) {
			return tools.Verdict{Decision: tools.Deny, Reason: fmt.Sprintf("%s was refused: the operator's deny rule %q forbids it.", call.Name, rule.text)}
		}
	}
	for _, rule := range r.deny {
		if rule.mayMatch(call.Name, subject) {
			return askVerdict("the deny rule %q may forbid it, but there's no way to tell without running it", rule.text)
		}
	}
	for _, rule := range r.ask {
		if asked && rule.pattern == nil {
			continue
		}
		if rule.matches(call.Name, subject) {
			return askVerdict("the ask rule %q", rule.text)
		}
		if rule.mayMatch(call.Name, subject) {
			return askVerdict("the ask rule %q may apply, but there's no way to tell without running it", rule.text)
		}
	}
	return r.checkAllowed(call.Name, subject)
}

// checkAllowed says to ask a person about a call that no rule allows, if there are rules that allow other calls of
// the same tool.
func (r rules) checkAllowed(tool string, s subject) tools.Verdict {
	var about []Rule
	for _, rule := range r.allow {
		if !rule.appliesTo(tool) {
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
	case s.opaqueReason != "":
		return askVerdict("no rule allows commands that can't be inspected: %s", s.opaqueReason)
	}
	for _, one := range s.parts {
		if !slices.ContainsFunc(about, func(rule Rule) bool { return rule.alwaysMatches(one, s) }) {
			return askVerdict("no rule allows %q", tools.OneLine(one.text))
		}
	}
	return tools.Verdict{}
}

// askVerdict returns the verdict that a person is asked, with the reason.
func askVerdict(format string, args ...any) tools.Verdict {
	return tools.Verdict{Decision: tools.Ask, Reason: fmt.Sprintf(format, args...)}
}
