package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"parley/agent/jobs"
	"parley/agent/judge"
	"parley/channels/onbehalf"
	"parley/channels/owners"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/nodelinks"
	"parley/sessions"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/guard"
)

// CheckRule checks a rule: unknown is the tool that the rule names, if it is not among those that known returns,
// and err says why the rule cannot be parsed.
func CheckRule(text string, known func() []string) (unknown string, err error) {
	rule, err := guard.ParseRule(text)
	if err != nil {
		return "", err
	}
	return rule.UnknownTool(known()), nil
}

// CheckRate does for a rate what CheckRule does for a rule.
func CheckRate(text string, known func() []string) (unknown string, err error) {
	rate, err := guard.ParseRate(text)
	if err != nil {
		return "", err
	}
	return rate.UnknownTool(known()), nil
}

// CheckHook returns why a command line cannot be used as a hook, which is a program that is asked about calls.
func CheckHook(command string) error {
	_, err := guard.ParseHook(command)
	return err
}

// A callGuard decides whether a tool call may run, using the rules and the programs that the operator has named.
type callGuard struct {
	*guard.Guard
	before []func(context.Context, tools.Call) tools.Verdict
	after  []func(context.Context, tools.Call, tools.Result) tools.ResultReview
	judge  *judge.Judge // the judge without its model; nil if no call is judged
}

// guarding decides about tool calls by the operator's rules, and keeps secrets out of what leaves an agent.
type guarding struct {
	foundation
	nodes      *nodelinks.Nodes
	rights     *rights
	workspaces *home.CallWorkspaces
	onBehalf   *onbehalf.Sender
	jobs       *jobs.Runner
	owners     *owners.Owners
	secrets    *secrets
	inForce    atomic.Pointer[callGuard]
}

// newGuarding returns the part that decides about tool calls. It has no rules before Load.
func newGuarding(on foundation, n *nodelinks.Nodes, r *rights, w *home.CallWorkspaces, d *onbehalf.Sender, running *jobs.Runner, o *owners.Owners, hidden *secrets) *guarding {
	all := &guarding{foundation: on, nodes: n, rights: r, workspaces: w, onBehalf: d, jobs: running, owners: o, secrets: hidden}
	all.inForce.Store(&callGuard{Guard: &guard.Guard{}})
	return all
}

// Load applies the rules and programs in the settings.
func (g *guarding) Load(context.Context) error {
	apply, err := g.Reload(g.settings.Load())
	if err == nil {
		apply()
	}
	return err
}

// Reload reads the rules and programs of the next settings.
func (g *guarding) Reload(c *config.Config) (apply func(), err error) {
	rules, err := g.rules(c)
	if err != nil {
		return nil, fmt.Errorf("read the rules for tools: %w", err)
	}
	redactor, err := redactorOf(c, g.ownToken())
	if err != nil {
		return nil, err
	}
	all := &callGuard{Guard: rules, judge: judge.New(c.Guard.Judge, c.Guard.Timeout, rules)}
	for _, command := range c.Tools.Before {
		h, err := g.newHook(command)
		if err != nil {
			return nil, fmt.Errorf("tools.before: %w", err)
		}
		all.before = append(all.before, h.Before)
	}
	for _, command := range c.Tools.After {
		h, err := g.newHook(command)
		if err != nil {
			return nil, fmt.Errorf("tools.after: %w", err)
		}
		all.after = append(all.after, h.After)
	}
	return func() {
		g.inForce.Store(all)
		g.secrets.Store(redactor)
	}, nil
}

// rules reads the rules of these settings.
func (g *guarding) rules(c *config.Config) (*guard.Guard, error) {
	agents := make(map[string]guard.Policy, len(c.Agents))
	for name, a := range c.Agents {
		agents[name] = guard.Policy(a.Rules)
	}
	return guard.New(guard.Config{
		AllAgents: guard.Policy(c.Tools.Rules), Agents: agents, Judge: c.Guard.Judge, Rates: c.Tools.Rate,
		Path: g.workspaces.NameInside, Addresses: g.onBehalf.Destinations, ReadingCall: files.Reading,
		AskUntrusted: c.Tools.Untrusted != "allow", ReachesNetwork: g.rights.reachesNetwork,
		SubAgentMayFetch: func(call tools.Call) bool { return g.rights.mayUseNetwork(call.Session) },
		NetworkedReader:  g.jobs.NetworkedJob,
	})
}

// ownToken returns, as a list of one, the home's own token for its API, so that it can be redacted; nil if there is
// none. In a new home it is created here, so that it is redacted from the start; if that fails, the front reports
// it.
func (g *guarding) ownToken() []string {
	if g.role == Reader { // a Reader creates no token
		raw, err := os.ReadFile(filepath.Join(g.home.Dir, home.TokenFile))
		if err != nil {
			return nil
		}
		return []string{string(raw)}
	}
	token, err := g.home.Token()
	if err != nil {
		return nil
	}
	return []string{token}
}

// newHook returns a hook, which is a program that is asked about calls. When the program fails, the owners are
// notified.
func (g *guarding) newHook(command string) (guard.Hook, error) {
	h, err := guard.ParseHook(command)
	h.Failed = func(ctx context.Context, why string) {
		g.log.Error("a program that is asked about tool calls failed, so the call is refused", slog.String("why", why))
		g.owners.Notify(ctx, "hook "+h.Path, textHookFailed+why)
	}
	return h, err
}

// decide returns what the current rules decide about a call.
func (g *guarding) decide(ctx context.Context, call tools.Call) tools.Verdict {
	rules := g.inForce.Load()
	return g.nodes.Decide(call, rules.Judges, func(call tools.Call) tools.Verdict {
		return decideStricter(call, func(call tools.Call) tools.Verdict { return rules.Decide(ctx, call) })
	})
}

// decideStricter decides about a sub-agent's call by its own rules and by those of the agent that it works for, and
// returns the stricter of the two decisions.
func decideStricter(call tools.Call, decide func(tools.Call) tools.Verdict) tools.Verdict {
	v := decide(call)
	above := sessions.AgentOf(call.Parent)
	if above == "" || above == call.Agent || v.Decision == tools.Deny {
		return v
	}
	call.Agent = above
	if other := decide(call); other.Decision == tools.Deny || other.Decision == tools.Ask && v.Decision != tools.Ask {
		return other
	}
	return v
}

// checkRedirect returns why a call may not follow a page's redirect to another URL;
// nil if it may.
func (g *guarding) checkRedirect(call tools.Call, to string) error {
	switch v := decideStricter(call, func(call tools.Call) tools.Verdict { return g.inForce.Load().Redirect(call, to) }); v.Decision {
	case tools.Deny:
		return tools.Errorf(tools.PermissionDenied, "%s", v.Reason)
	case tools.Ask:
		return tools.Errorf(tools.PermissionDenied, "that needs approval (%s). Fetch it in a separate call, so that it can be approved.", v.Reason)
	default:
		return nil
	}
}

// newMarker returns the marker that records which files in a workspace may contain text written by strangers.
func newMarker(w *home.CallWorkspaces, running *jobs.Runner) guard.Marker {
	return guard.Marker{
		Open:       func(ctx context.Context, call tools.Call) (guard.Dir, error) { return w.Open(ctx, call) },
		JobRunning: running.HasRunningJob,
	}
}
