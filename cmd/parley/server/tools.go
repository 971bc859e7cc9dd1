package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"parley/agent/transcribe"
	"parley/channels"
	"parley/channels/console"
	"parley/cmd/parley/aging"
	"parley/cmd/parley/attachments"
	"parley/cmd/parley/clock"
	"parley/cmd/parley/config"
	"parley/cmd/parley/crash"
	"parley/cmd/parley/handover"
	"parley/cmd/parley/mcpservers"
	"parley/cmd/parley/reading"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/askuser"
	"parley/tools/changes"
	"parley/tools/delegate"
	"parley/tools/documents"
	"parley/tools/documents/pages"
	"parley/tools/files"
	"parley/tools/git"
	"parley/tools/guard"
	"parley/tools/history"
	"parley/tools/image"
	jobtools "parley/tools/jobs"
	"parley/tools/memory"
	"parley/tools/message"
	"parley/tools/sandbox"
	"parley/tools/schedule"
	"parley/tools/shell"
	"parley/tools/todo"
	"parley/tools/web"
)

// newTools makes all tools that can work on this machine. Commands run in box; if it is nil, no
// tool runs commands.
func (s *Server) newTools(box sandbox.Sandbox) *tools.Set {
	s.warnOfSkillPrograms(box)
	documents := s.documentReader(box)
	all := files.New(s.openFiles, documents)
	all = append(all, memory.New(func(ctx context.Context, call tools.Call) (memory.Dir, error) { return s.openUntil(ctx, call) }, s.home.Book)...)
	all = append(all, todo.New(func(ctx context.Context, call tools.Call) (todo.Dir, error) { return s.openUntil(ctx, call) })...)
	all = append(all, s.commandTools(box)...)
	all = append(all, image.New(s.files.Show)...)
	all = append(all, message.New(s.deliver), askuser.New(), history.New(s.readChat), schedule.New(clock.Backend{Clock: s.clock}))
	all = append(all, web.New(web.Config{Settings: s.webSettings, Redirect: s.checkRedirect, Documents: documents, Refuse: refusedAddresses()})...)
	all = append(all, delegate.New(s.handover)...)
	all = append(all, changes.New(s.history.Changes))
	all = append(all, crash.Tools()...)
	return tools.NewSet(s.marker().Watch(all)...)
}

// refusedAddresses returns the function that says why web_fetch may not connect to an address;
// nil means web.Refuse, which allows the public web alone. The build for tests allows loopback
// too.
func refusedAddresses() func(netip.Addr) string {
	if !crash.LocalWeb() {
		return nil
	}
	return func(addr netip.Addr) string {
		if addr.IsLoopback() {
			return ""
		}
		return web.Refuse(addr)
	}
}

// webSettings returns the operator's settings for the web, as they are now.
func (s *Server) webSettings() web.Settings {
	c := s.settings.Load().Web
	return web.Settings{
		Allow: c.Allow, Deny: c.Deny,
		Search: web.Search{Service: c.Search, APIKey: string(c.APIKey), BaseURL: c.BaseURL},
	}
}

// mostWriting bounds, in a fleet, how long after the check of the session's lease a tool may
// still write files. It is less than the time that a lease which has just been checked still
// lasts.
const mostWriting = 3 * time.Second

// newFiles makes the keeper of the files that models look at in the sessions' workspaces.
func (s *Server) newFiles() *attachments.Keeper {
	return attachments.New(attachments.Config{
		Workspace: s.home.Workspace, Writable: s.openUntil,
		Sees: func(session string) bool {
			model := s.models[agentName(session)]
			return model == nil || !model.Info().Blind
		},
		Fetcher: s.fetcher, Words: s.transcriber, Log: s.log,
	})
}

// transcriber returns what transcribes voice messages, by the settings in force; nil if
// none is configured.
func (s *Server) transcriber() attachments.Transcriber {
	c := s.settings.Load().Transcribe
	if c == (config.Transcribe{}) {
		return nil
	}
	return transcribe.New(transcribe.Config{BaseURL: c.BaseURL, APIKey: string(c.APIKey), Model: cmp.Or(c.Model, "whisper-1")})
}

// fetcher returns what fetches the files that came over a channel, and how many bytes one
// may have; nil if the channel has no files.
func (s *Server) fetcher(channel string) (channels.Fetcher, int64) {
	for _, l := range s.channels {
		if l.name != channel {
			continue
		}
		if f, ok := channels.AsFetcher(l.channel); ok {
			return f, int64(cmp.Or(s.settings.Load().Channels[channel].FilesMB, config.DefaultFilesMB)) << 20
		}
	}
	return nil, 0
}

// openUntil opens a session's directory for one call. In a fleet, a process that stands still for
// a while may have lost the session to another one when it goes on, so writing is refused some
// time before the lease, or the call's deadline, ends.
func (s *Server) openUntil(ctx context.Context, call tools.Call) (*workspace.Dir, error) {
	if call.Held.IsZero() {
		call.Held = time.Now()
	}
	until := call.Held.Add(mostWriting)
	dir, err := s.home.Workspace(call.Session)
	if err != nil {
		return nil, err
	}
	dir = dir.WithContext(ctx)
	if s.settings.Load().Bus.URL == "" {
		return dir, nil
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return dir.WritableUntil(until), nil
}

// openFiles opens a session's directory for the tools for files, as openUntil does, with
// the operator's knowledge folder in it.
func (s *Server) openFiles(ctx context.Context, call tools.Call) (files.Dir, error) {
	dir, err := s.openUntil(ctx, call)
	if err != nil || s.knowledge == nil {
		return dir, err
	}
	return s.knowledge.Overlay(dir), nil
}

// keepResult stores a result that is too long for the model in the session's workspace,
// and returns its path.
func (s *Server) keepResult(ctx context.Context, call tools.Call, content json.RawMessage) (string, error) {
	dir, err := s.openUntil(ctx, call)
	if err != nil {
		return "", err
	}
	path := aging.Results + "/" + call.ID + ".json"
	if call.Untrusted {
		if err := guard.ChangeMarks(dir, false, []string{path}, nil); err != nil {
			return "", err
		}
	}
	return path, dir.Write(path, content)
}

// grantedTools returns the tools that an agent with these capabilities may use. All turns with
// the same capabilities share one set.
func (s *Server) grantedTools(all *tools.Set, capabilities []tools.Permission) *tools.Set {
	key := fmt.Sprint(capabilities)
	if set, ok := s.grants.Load(key); ok {
		return set.(*tools.Set)
	}
	set, _ := s.grants.LoadOrStore(key, all.Granted(capabilities))
	return set.(*tools.Set)
}

// documentReader returns what reads files that are no text, such as PDF; nil without a
// sandbox, because only a sandbox keeps the parser of a stranger's file from doing harm.
func (s *Server) documentReader(box sandbox.Sandbox) pages.Reader {
	if box == nil {
		return nil
	}
	return documents.Reader{Sandbox: box, Log: s.log}
}

// commandTools returns the tools that run commands; none without a sandbox.
func (s *Server) commandTools(box sandbox.Sandbox) []tools.Tool {
	if box == nil {
		return nil
	}
	return slices.Concat(
		jobtools.New(s.jobs),
		shell.New(shell.Config{
			Sandbox: box, Changed: s.markChanged, Background: mainAgentJobs{s.jobs},
			Place: func(ctx context.Context, call tools.Call) (sandbox.Place, error) {
				return s.commandPlace(ctx, call, "")
			},
		}),
		git.New(git.Config{Sandbox: box, Changed: s.markChanged, Place: s.gitPlace}))
}

// commandPlace returns where the commands of a call run: in the folder path of the session's
// workspace, with the network if the agent may use it.
func (s *Server) commandPlace(ctx context.Context, call tools.Call, path string) (sandbox.Place, error) {
	dir, err := s.home.Workspace(call.Session)
	if err != nil {
		return sandbox.Place{}, err
	}
	bytes, items := dir.Quota()
	p := sandbox.Place{
		Workspace: dir.Path(), Quota: sandbox.Quota{Bytes: bytes, Items: items},
		Network: slices.Contains(s.capabilities(call.Session), tools.Network),
	}
	if path == "" {
		return p, nil
	}
	if p.Dir, err = dir.Name(path); err != nil {
		return p, tools.Errorf(tools.InvalidPath, "%v", err)
	}
	info, err := dir.WithContext(ctx).Stat(p.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, tools.Errorf(tools.FileNotFound, "%v: list_directory shows what there is", err)
	case err != nil:
		return p, tools.Errorf(tools.InvalidPath, "%v", err)
	case !info.IsDir():
		return p, tools.Errorf(tools.InvalidPath, "%q is a file: give the folder of the repository", path)
	}
	return p, nil
}

// gitPlace returns where git runs for a call, without the network. None of the git tools
// needs the network, and a program that an agent has written for git to run must not get
// it through them. Without a sandbox the network cannot be taken away.
func (s *Server) gitPlace(ctx context.Context, call tools.Call, path string) (sandbox.Place, error) {
	p, err := s.commandPlace(ctx, call, path)
	p.Network = p.Network && s.settings.Load().Sandbox.Mode == string(sandbox.None)
	return p, err
}

// skillPlace returns where a skill's program runs. The program has the network only if it
// wants it.
func (s *Server) skillPlace(ctx context.Context, call tools.Call, network bool) (sandbox.Place, error) {
	if network {
		return s.commandPlace(ctx, call, "")
	}
	return s.gitPlace(ctx, call, "")
}

// markChanged records that a command may have changed files of a call's session.
func (s *Server) markChanged(call tools.Call) {
	dir, err := s.home.Workspace(call.Session)
	if err == nil {
		err = dir.MarkChanged()
	}
	if err != nil {
		s.log.Warn("a workspace cannot be measured", slog.Any("error", err))
	}
}

// capabilities returns what a session's agent may do: what is configured for it or, in the
// owner's terminal, everything.
func (s *Server) capabilities(session string) []tools.Permission {
	if isOwnerTerminal(session) {
		return tools.Permissions()
	}
	own := s.settings.Load().Agents[agentName(session)].Capabilities
	if !handover.IsSubAgent(session) {
		return own
	}
	parent := s.parentOf(session)
	if parent == "" {
		return nil // nobody knows for whom it works
	}
	above := s.capabilities(parent)
	if agentName(parent) == agentName(session) {
		own = above
	}
	return slices.DeleteFunc(slices.Clone(own), func(p tools.Permission) bool {
		return p == tools.Session || !slices.Contains(above, p) // it has no sub-agents of its own
	})
}

// isOwnerTerminal reports whether a session is in the owner's terminal.
func isOwnerTerminal(session string) bool {
	parts := strings.Split(session, ":")
	return len(parts) > 1 && parts[1] == console.Name
}

// newMCP makes the MCP servers of the settings; they run in box.
func (s *Server) newMCP(c *config.Config, box sandbox.Sandbox) *mcpservers.Servers {
	return mcpservers.New(mcpservers.Config{
		Settings: c, Sandbox: box, Notes: s.home.Book, Bus: s.home.Bus, Changed: s.markChanged, Tell: s.notifyOwners, Elsewhere: s.role == Gateway, Version: s.version, Log: s.log,
		Place: func(ctx context.Context, call tools.Call) (sandbox.Place, error) {
			return s.commandPlace(ctx, call, "")
		},
		Keep: s.keepServerFile,
		Show: func(ctx context.Context, call tools.Call, path string) (tools.Picture, error) {
			p, err := s.files.Show(ctx, call, path)
			return p.Picture, err
		},
	})
}

// serversUp returns all MCP servers by name, and for each whether it is connected; it is empty if
// this process uses none.
func (s *Server) serversUp() map[string]bool {
	all := map[string]bool{}
	if !s.role.Works() {
		return all
	}
	for _, state := range s.mcp.States() {
		all[state.Name] = state.Up
	}
	return all
}

// keepServerFile stores a file that an MCP server gave in the session's workspace, marked
// as written by strangers, and returns its path.
func (s *Server) keepServerFile(ctx context.Context, call tools.Call, name string, content []byte) (string, error) {
	dir, err := s.openUntil(ctx, call)
	if err != nil {
		return "", err
	}
	path := aging.Foreign + "/" + name
	if err := guard.ChangeMarks(dir, false, []string{path}, nil); err != nil {
		return "", err
	}
	return path, dir.Write(path, content)
}

// reachesNetwork reports whether what a call runs, a command or git, can reach any of the
// network. Without a sandbox everything that runs can.
func (s *Server) reachesNetwork(call tools.Call) bool {
	if outward, known := s.mcp.IsOutward(call.Name); known {
		return outward
	}
	settings := s.settings.Load().Sandbox
	switch allowed := settings.Network; {
	case !slices.Contains(s.capabilities(call.Session), tools.Network):
		return false
	case settings.Mode == string(sandbox.None):
		return true
	case strings.HasPrefix(call.Name, "git_"), s.skills.Offline(call.Name):
		return false // see gitPlace and skillPlace
	default:
		return len(allowed) > 0 && !slices.Contains(allowed, config.NoNetwork)
	}
}

// readChat reads the messages of a chat for the person who asks.
func (s *Server) readChat(ctx context.Context, q history.Question) (history.Answer, error) {
	r := reading.Reader{Channels: map[string]reading.Channel{}, Log: s.home.Store}
	for _, l := range s.channels {
		r.Channels[l.name] = reading.Channel{Channel: l.channel, Listens: func(chat string) bool { return l.gate.Mention(chat) != channels.MentionNowhere }}
	}
	return r.Read(ctx, q)
}

// A deferredSandbox is a sandbox for commands that may still be looked for: a caller waits until
// it is known.
type deferredSandbox func() (sandbox.Sandbox, error)

// Run implements sandbox.Sandbox; it fails if no sandbox works on this machine.
func (b deferredSandbox) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	box, err := b()
	if err == nil && box == nil {
		err = errors.New("no sandbox works on this machine: parley doctor says what it lacks")
	}
	if err != nil {
		return sandbox.Result{}, err
	}
	return box.Run(ctx, c)
}
