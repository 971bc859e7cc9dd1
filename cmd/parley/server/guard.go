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

// ToolNames are the tools that a rule can be about: those that there always are, and
// those that only some machines have.
func ToolNames() []string {
	all := slices.Concat(files.New(nil, nil), memory.New(nil, nil), todo.New(nil), image.New(nil), []tools.Tool{message.New(nil), askuser.New(), schedule.New(nil), skills.New(nil)}, crash.Tools())
	names := guard.Names()
	for _, tool := range all {
		if name := tool.Spec().Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckRule says which tool a rule names that there is not, and why a rule cannot be read.
func CheckRule(text string) (unknown string, err error) {
	rule, err := guard.ParseRule(text)
	if err != nil {
		return "", err
	}
	return rule.UnknownTool(ToolNames()), nil
}

// CheckHook says why a program cannot be asked about calls.
func CheckHook(command string) error {
	_, err := guard.ParseHook(command)
	return err
}

// A guarding is what decides about calls: rules, and the operator's programs; and what
// takes secrets out of all that leaves.
type guarding struct {
	*guard.Guard
	redact *redact.Redactor
	before []func(context.Context, tools.Call) tools.Verdict
	after  []func(context.Context, tools.Call, tools.Result) tools.Review
}

// setGuard puts the rules and the programs of settings into force.
func (s *Server) setGuard(c *config.Config) error {
	agents := make(map[string]guard.Policy, len(c.Agents))
	for name, a := range c.Agents {
		agents[name] = guard.Policy(a.Rules)
	}
	g, err := guard.New(guard.Config{
		All: guard.Policy(c.Tools.Rules), Agents: agents,
		Path: s.pathName, Addresses: s.reached, Patched: files.PatchPaths,
		AskUntrusted: c.Tools.Untrusted != "allow", Networked: s.networked, Carrier: s.jobs.Carrier,
	})
	if err != nil {
		return fmt.Errorf("read the rules for tools: %w", err)
	}
	redactor, err := redact.New(append(c.Secrets(), s.ownToken()...), c.Tools.Redact)
	if err != nil {
		return fmt.Errorf("tools.redact: %w", err)
	}
	all := &guarding{Guard: g, redact: redactor}
	for _, command := range c.Tools.Before {
		h, err := s.hook(command)
		if err != nil {
			return fmt.Errorf("tools.before: %w", err)
		}
		all.before = append(all.before, h.Before)
	}
	for _, command := range c.Tools.After {
		h, err := s.hook(command)
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

// ownToken is the home's token, if there is one.
func (s *Server) ownToken() []string {
	raw, err := os.ReadFile(filepath.Join(s.home.Dir, home.TokenFile))
	if err != nil {
		return nil
	}
	return []string{string(raw)}
}

// hook is a program that is asked about calls. Where it fails the owners are told.
func (s *Server) hook(command string) (guard.Hook, error) {
	h, err := guard.ParseHook(command)
	h.Failed = func(ctx context.Context, why string) {
		s.log.Error("a program that is asked about tool calls failed, so the call is refused", slog.String("why", why))
		s.tellOwners(ctx, "hook "+h.Path, "A program that decides about my tools has failed, so I use none of them until it is mended: "+why)
	}
	return h, err
}

// decide is what the rules in force say of a call.
func (s *Server) decide(ctx context.Context, call tools.Call) tools.Verdict {
	return s.guard.Load().Decide(ctx, call)
}

// mayRedirect says why a call of web_fetch may not go on to where a page sends it.
func (s *Server) mayRedirect(call tools.Call, to string) error {
	switch v := s.guard.Load().Redirect(call, to); v.Decision {
	case tools.Deny:
		return tools.Errorf(tools.PermissionDenied, "%s", v.Reason)
	case tools.Ask:
		return tools.Errorf(tools.PermissionDenied, "that needs an approval (%s). Fetch it by a call of its own, and people are asked.", v.Reason)
	default:
		return nil
	}
}

// pathName is the name by which a session's workspace knows a path.
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

// reached are the addresses that a message to a channel and a chat would reach.
func (s *Server) reached(channel, chat string) []string {
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

// marker remembers which files of a workspace hold what strangers may have written.
func (s *Server) marker() guard.Marker {
	return guard.Marker{
		Open:    func(ctx context.Context, call tools.Call) (guard.Dir, error) { return s.openUntil(ctx, call) },
		Patched: files.PatchPaths,
	}
}

// promptUntrusted tells whether a file that is in a session's prompt may hold what
// strangers have written.
func (s *Server) promptUntrusted(_ context.Context, session string) bool {
	dir, err := s.home.Workspace(session)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(guard.Prompted(), guard.ReadMarks(dir).Has)
}
