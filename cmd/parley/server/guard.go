package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"parley/cmd/parley/config"
	"parley/cmd/parley/crash"
	"parley/cmd/parley/home"
	"parley/tools"
	"parley/tools/askuser"
	"parley/tools/delegate"
	"parley/tools/files"
	"parley/tools/guard"
	"parley/tools/image"
	"parley/tools/memory"
	"parley/tools/message"
	"parley/tools/redact"
	"parley/tools/schedule"
	"parley/tools/skills"
	"parley/tools/todo"
)

// ToolNames returns the names that a rule may use: the tools that there always are, and
// those that only some machines have.
func ToolNames() []string {
	all := slices.Concat(files.New(nil, nil), memory.New(nil, nil), todo.New(nil), image.New(nil), []tools.Tool{message.New(nil), askuser.New(), schedule.New(nil), skills.New(nil)}, delegate.New(nil), crash.Tools())
	names := guard.Names()
	for _, tool := range all {
		if name := tool.Spec().Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckRule checks a rule: unknown is the tool that the rule names, if there is no such tool among
// those that known returns, and err says why the rule cannot be read.
func CheckRule(text string, known func() []string) (unknown string, err error) {
	rule, err := guard.ParseRule(text)
	if err != nil {
		return "", err
	}
	return rule.UnknownTool(known()), nil
}

// CheckHook returns why a command line cannot be used as a hook, a program that is asked
// about calls.
func CheckHook(command string) error {
	_, err := guard.ParseHook(command)
	return err
}

// A callGuard decides whether a tool call may run, by the rules and by the programs that the
// operator has named, and removes secrets from everything that leaves an agent.
type callGuard struct {
	*guard.Guard
	redact *redact.Redactor
	before []func(context.Context, tools.Call) tools.Verdict
	after  []func(context.Context, tools.Call, tools.Result) tools.Review
}

// setGuard puts the rules and programs of the settings c into force.
func (s *Server) setGuard(c *config.Config) error {
	agents := make(map[string]guard.Policy, len(c.Agents))
	for name, a := range c.Agents {
		agents[name] = guard.Policy(a.Rules)
	}
	g, err := guard.New(guard.Config{
		All: guard.Policy(c.Tools.Rules), Agents: agents,
		Path: s.pathName, Addresses: s.reachedAddresses, Patched: files.PatchPaths,
		AskUntrusted: c.Tools.Untrusted != "allow", Networked: s.reachesNetwork, NetworkedReader: s.jobs.NetworkedJob,
	})
	if err != nil {
		return fmt.Errorf("read the rules for tools: %w", err)
	}
	redactor, err := redact.New(append(c.Secrets(), s.ownToken()...), c.Tools.Redact)
	if err != nil {
		return fmt.Errorf("tools.redact: %w", err)
	}
	all := &callGuard{Guard: g, redact: redactor}
	for _, command := range c.Tools.Before {
		h, err := s.newHook(command)
		if err != nil {
			return fmt.Errorf("tools.before: %w", err)
		}
		all.before = append(all.before, h.Before)
	}
	for _, command := range c.Tools.After {
		h, err := s.newHook(command)
		if err != nil {
			return fmt.Errorf("tools.after: %w", err)
		}
		all.after = append(all.after, h.After)
	}
	s.guard.Store(all)
	if s.secrets != nil {
		s.secrets.Store(redactor)
	}
	return nil
}

// ownToken returns, as a list of one, the token that the home has for its API, so that it can be
// redacted; nil if there is none.
func (s *Server) ownToken() []string {
	raw, err := os.ReadFile(filepath.Join(s.home.Dir, home.TokenFile))
	if err != nil {
		return nil
	}
	return []string{string(raw)}
}

// newHook makes a hook, a program that is asked about calls. When the program fails, the
// owners are notified.
func (s *Server) newHook(command string) (guard.Hook, error) {
	h, err := guard.ParseHook(command)
	h.Failed = func(ctx context.Context, why string) {
		s.log.Error("a program that is asked about tool calls failed, so the call is refused", slog.String("why", why))
		s.notifyOwners(ctx, "hook "+h.Path, "A program that decides about my tools has failed, so I use none of them until it is mended: "+why)
	}
	return h, err
}

// decide returns what the rules in force decide about a call.
func (s *Server) decide(ctx context.Context, call tools.Call) tools.Verdict {
	return underBoth(call, func(call tools.Call) tools.Verdict { return s.guard.Load().Decide(ctx, call) })
}

// underBoth decides about a call of a sub-agent by its own rules and by those of the agent for
// which it works, and returns the stricter of the two decisions.
func underBoth(call tools.Call, decide func(tools.Call) tools.Verdict) tools.Verdict {
	v := decide(call)
	above := agentName(call.Parent)
	if above == "" || above == call.Agent || v.Decision == tools.Deny {
		return v
	}
	call.Agent = above
	if other := decide(call); other.Decision == tools.Deny || other.Decision == tools.Ask && v.Decision != tools.Ask {
		return other
	}
	return v
}

// checkRedirect returns why the tool web_fetch may not follow a page's redirect to another URL;
// nil if it may.
func (s *Server) checkRedirect(call tools.Call, to string) error {
	switch v := underBoth(call, func(call tools.Call) tools.Verdict { return s.guard.Load().Redirect(call, to) }); v.Decision {
	case tools.Deny:
		return tools.Errorf(tools.PermissionDenied, "%s", v.Reason)
	case tools.Ask:
		return tools.Errorf(tools.PermissionDenied, "that needs an approval (%s). Fetch it by a call of its own, and people are asked.", v.Reason)
	default:
		return nil
	}
}

// pathName returns the name that a path has within the workspace of a call's session.
func (s *Server) pathName(call tools.Call, path string) string {
	dir, err := s.home.Workspace(call.Session)
	if err != nil {
		return path
	}
	name, err := dir.Name(path)
	if err != nil {
		return path // the tool refuses it as well
	}
	return name
}

// reachedAddresses returns the addresses to which a message would go that the model sends to a
// channel and a chat.
func (s *Server) reachedAddresses(channel, chat string) []string {
	to, failed := s.addresses(message.Letter{Channel: channel, Chat: chat})
	if failed != nil {
		return nil // the tool refuses it as well
	}
	var all []string
	for _, a := range to {
		all = append(all, a.String())
	}
	return all
}

// marker returns what records which files of a workspace may hold text that strangers have
// written.
func (s *Server) marker() guard.Marker {
	return guard.Marker{
		Open:    func(ctx context.Context, call tools.Call) (guard.Dir, error) { return s.openUntil(ctx, call) },
		Patched: files.PatchPaths,
	}
}

// promptUntrusted reports whether a file that is part of a session's prompt may hold text that
// strangers have written.
func (s *Server) promptUntrusted(_ context.Context, session string) bool {
	files, err := s.home.WorkspaceFiles(session)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(guard.PromptedFiles(), guard.ReadMarks(files).Has)
}
