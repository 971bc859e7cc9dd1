package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley/cmd/parley/crash"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/askuser"
	"parley/tools/files"
	"parley/tools/guard"
	"parley/tools/memory"
	"parley/tools/message"
	"parley/tools/web"
)

func (s *Server) newTools() *tools.Set {
	all := files.New(func(ctx context.Context, call tools.Call) (files.Dir, error) { return s.openUntil(ctx, call) })
	all = append(all, memory.New(func(ctx context.Context, call tools.Call) (memory.Dir, error) { return s.openUntil(ctx, call) })...)
	all = append(all, s.commandTools()...)
	all = append(all, message.New(s.deliver), askuser.New())
	all = append(all, web.New(web.Config{Settings: s.webSettings})...)
	all = append(all, crash.Tools()...)
	return tools.NewSet(s.marker().Watch(all)...)
}

// webSettings is what the operator has set of the web, as it is now.
func (s *Server) webSettings() web.Settings {
	c := s.settings.Load().Web
	return web.Settings{
		Allow: c.Allow, Deny: c.Deny,
		Search: web.Search{Service: c.Search, APIKey: string(c.APIKey), BaseURL: c.BaseURL},
	}
}

// mostWriting is how long after the lease was asked for a tool's write may take
// effect in a fleet. It is less than what is left of a lease that is held.
const mostWriting = 3 * time.Second

// openUntil opens a session's directory for one call. In a fleet others may have
// the session by the time that a paused process goes on, so a write ends before
// the lease and the call's deadline.
func (s *Server) openUntil(ctx context.Context, call tools.Call) (*workspace.Dir, error) {
	if call.Held.IsZero() {
		call.Held = time.Now()
	}
	until := call.Held.Add(mostWriting)
	dir, err := s.home.Workspace(call.Session)
	if err != nil {
		return nil, err
	}
	dir = dir.Within(ctx)
	if s.settings.Load().Bus.URL == "" {
		return dir, nil
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return dir.Until(until), nil
}

// keep stores a result that is too long for the model in the session's workspace.
func (s *Server) keep(ctx context.Context, call tools.Call, content json.RawMessage) (string, error) {
	dir, err := s.openUntil(ctx, call)
	if err != nil {
		return "", err
	}
	path := ".agent/out/" + call.ID + ".json"
	if call.Untrusted {
		if err := guard.ChangeMarks(dir, false, []string{path}, nil); err != nil {
			return "", err
		}
	}
	return path, dir.Write(path, content)
}

// granted is the set of tools that capabilities allow, one for all turns.
func (s *Server) granted(capabilities []tools.Permission) *tools.Set {
	key := fmt.Sprint(capabilities)
	if set, ok := s.grants.Load(key); ok {
		return set.(*tools.Set)
	}
	set, _ := s.grants.LoadOrStore(key, s.tools.Granted(capabilities))
	return set.(*tools.Set)
}
