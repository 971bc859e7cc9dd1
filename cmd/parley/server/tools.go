package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"parley/agent/jobs"
	"parley/agent/schedules"
	"parley/agent/subagents"
	"parley/channels"
	chathistory "parley/channels/history"
	"parley/channels/onbehalf"
	"parley/cmd/parley/data/attachments"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/voices"
	"parley/tools"
	"parley/tools/askuser"
	"parley/tools/canvas"
	"parley/tools/changes"
	"parley/tools/code"
	"parley/tools/crash"
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
	toolnodes "parley/tools/nodes"
	recalltool "parley/tools/recall"
	"parley/tools/sandbox"
	scheduletools "parley/tools/schedules"
	"parley/tools/shell"
	"parley/tools/skills"
	"parley/tools/speak"
	subagenttools "parley/tools/subagents"
	"parley/tools/todo"
	"parley/tools/web"
)

// A toolbox makes the tools of agents.
type toolbox struct {
	foundation
	sandbox      *commandSandbox
	workspaces   *home.CallWorkspaces
	knowledge    *knowledgeFolder
	commands     *home.CommandPlaces
	files        *attachments.Keeper
	onBehalf     *onbehalf.Sender
	liveChannels liveChannels
	recall       recalltool.Finder
	schedules    *schedules.Scheduler
	subagents    *subagents.Service
	jobs         *jobs.Runner
	undoing      *undoHistory
	skills       *agentSkills
	voices       *voices.Voices
	guard        *guarding
	marks        guard.Marker
	code         code.Indexes
	browser      *canvas.Browser

	set    func() (*tools.Set, error) // makes all tools, once; see makeSet
	grants sync.Map                   // sets of tools that were already made, by permissions
}

// Run creates the tools before anybody asks for them. It returns an error, which ends the server, if it cannot find
// out which sandbox commands run in.
func (t *toolbox) Run(ctx context.Context) error {
	if _, err := t.set(); err != nil && !errors.Is(err, context.Canceled) { // a canceled context means a shutdown
		return err
	}
	<-ctx.Done()
	return nil
}

// makeSet makes all tools. It waits until it is known whether a sandbox works.
func (t *toolbox) makeSet() (*tools.Set, error) {
	all := t.makeTools(t.sandbox) // while the sandbox is being tested
	works, err := t.sandbox.open()
	if works == nil {
		all = t.makeTools(nil)
	}
	t.skills.warnOfPrograms(works)
	return all, err
}

// makeTools makes all tools that can work on this machine. Commands run in box; if it is nil, no
// tool runs commands.
func (t *toolbox) makeTools(box sandbox.Sandbox) *tools.Set {
	documents := t.documentReader(box)
	all := append(files.New(t.openFiles, documents), code.New(t.openFiles, &t.code)...)
	all = append(all, memory.New(func(ctx context.Context, call tools.Call) (memory.Dir, error) {
		return t.workspaces.Open(ctx, call)
	}, t.home.Book)...)
	all = append(all, todo.New(func(ctx context.Context, call tools.Call) (todo.Dir, error) { return t.workspaces.Open(ctx, call) })...)
	all = append(all, t.commandTools(box)...)
	all = append(all, image.New(t.files.Show)...)
	all = append(all, message.New(t.onBehalf.Send), askuser.New(), speak.New(t.voices), history.New(t.readChat), recalltool.New(t.recall, tools.Paths{memory.File}), scheduletools.New(schedules.Backend{Scheduler: t.schedules}))
	all = append(all, web.New(web.Config{Settings: t.webSettings, Redirect: t.guard.checkRedirect, Documents: documents, Refuse: refusedAddresses()})...)
	all = append(all, subagenttools.New(t.subagents)...)
	all = append(all, newCanvasTool(t.workspaces, t.canvases, t.browser))
	all = append(all, changes.New(t.undoing.Changes))
	all = append(all, crash.Tools()...)
	return tools.NewSet(t.marks.Watch(all)...)
}

// ToolNames returns the names that a rule may use: those of all tools that a toolbox may make, whether or not this
// machine can run them, and of the tools that read skills and reach nodes. Making a tool only to get its name needs nothing that
// its calls need, so an empty toolbox makes them.
func ToolNames() []string {
	empty := &toolbox{foundation: foundation{home: &home.Home{}}, undoing: &undoHistory{}}
	var names []string
	for _, spec := range empty.makeTools(&commandSandbox{}).With(skills.New(nil), toolnodes.New(nil, "")).Specs() {
		names = append(names, spec.Name)
	}
	return names
}

// refusedAddresses returns the function that says why web_fetch may not connect to an address; nil means
// web.Refuse, which allows only the public web. The build for tests also allows loopback.
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

// webSettings returns the operator's current settings for the web.
func (t *toolbox) webSettings() web.Settings {
	c := t.settings.Load().Web
	return web.Settings{
		Allow: c.Allow, Deny: c.Deny,
		Search: web.Search{Service: c.Search, APIKey: string(c.APIKey), BaseURL: c.BaseURL},
	}
}

// openFiles opens a session's workspace for the file tools, with the operator's knowledge folder in it, if there is
// one.
func (t *toolbox) openFiles(ctx context.Context, call tools.Call) (files.Dir, error) {
	dir, err := t.workspaces.Open(ctx, call)
	if err != nil {
		return nil, err
	}
	if t.knowledge.base == nil {
		return dir, nil
	}
	return t.knowledge.base.Overlay(dir), nil
}

// granted returns the tools that an agent with these permissions may use. All turns with the same permissions share
// one set.
func (t *toolbox) granted(all *tools.Set, capabilities []tools.Permission) *tools.Set {
	key := fmt.Sprint(capabilities)
	if set, ok := t.grants.Load(key); ok {
		return set.(*tools.Set)
	}
	set, _ := t.grants.LoadOrStore(key, all.Granted(capabilities))
	return set.(*tools.Set)
}

// documentReader returns the reader of files that are not text, such as PDF; nil without a sandbox, because only a
// sandbox keeps the parser of a stranger's file from doing harm.
func (t *toolbox) documentReader(box sandbox.Sandbox) pages.Reader {
	if box == nil {
		return nil
	}
	return documents.Reader{Sandbox: box, Log: t.log}
}

// readChat reads the messages of a chat for the person who asks.
func (t *toolbox) readChat(ctx context.Context, q history.Question) (history.Answer, error) {
	return t.liveChannels.chatReader(t.foundation).Read(ctx, q)
}

// chatReader returns the reader of chats, which knows who may read them.
func (all liveChannels) chatReader(on foundation) chathistory.Reader {
	r := chathistory.Reader{Channels: map[string]chathistory.Source{}, Log: on.home.Store}
	for _, l := range all {
		r.Channels[l.name] = chathistory.Source{Channel: l.channel, Listens: func(chat string) bool { return l.gate.Mention(chat) != channels.MentionNowhere }}
	}
	return r
}

// commandTools returns the tools that run commands; none without a sandbox.
func (t *toolbox) commandTools(box sandbox.Sandbox) []tools.Tool {
	if box == nil {
		return nil
	}
	return slices.Concat(
		jobtools.New(t.jobs),
		shell.New(shell.Config{Sandbox: box, Changed: t.workspaces.MarkChanged, Background: t.jobs, Place: t.commands.ForWorkspace}),
		git.New(git.Config{Sandbox: box, Changed: t.workspaces.MarkChanged, Place: t.commands.ForGit}))
}
