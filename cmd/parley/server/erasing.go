package server

import (
	"context"
	"log/slog"

	"parley/agent/undo"
	"parley/channels/files/copies"
	"parley/cmd/parley/data/backup"
	"parley/cmd/parley/data/erase"
)

// erasing erases what people have said, from everywhere: the home, the servers used in its place, and this
// process's memory.
type erasing struct {
	foundation
	audit    *auditing
	copies   copies.Files
	rewriter *erase.Rewriter
	requests *erase.Requests
	memories []forgetter // the parts of this process that hold such data in memory
}

// newErasing returns the part that erases what people have said.
func newErasing(on foundation, a *auditing, c copies.Files) *erasing {
	e := &erasing{foundation: on, audit: a, copies: c, rewriter: erase.NewRewriter(on.home.Store, on.settings.Load().Store.URL != "", on.log)}
	e.requests = erase.NewRequests(erase.RequestsConfig{Eraser: e.reportingEraser, Notes: on.home.Book, Holder: on.home.Bus, Resumes: on.role.Serves(), Log: on.log})
	return e
}

// eraser returns an eraser for the current settings.
func (e *erasing) eraser() *erase.Eraser { return e.reportingEraser(nil) }

// reportingEraser returns an eraser for the current settings that reports its progress.
func (e *erasing) reportingEraser(progress func(erase.Progress)) *erase.Eraser {
	c := e.settings.Load()
	asides, err := backup.OldDataDirs(e.home.Dir)
	if err != nil {
		e.log.Warn("old homes cannot be looked for", slog.Any("error", err))
	}
	return erase.New(erase.Config{
		Bus: e.home.Bus, Store: e.home.Store, Book: e.home.Book, Workspaces: undo.Dirs{Workspaces: e.home.Workspaces, Store: e.home.Snapshots},
		Files: undo.Files{Sent: e.copies, Store: e.home.Snapshots}, Audit: e.audit.files(), Rewriter: e.rewriter, Before: e.home.RemoveBefore, Memory: e.clearMemory,
		SubAgents: e.home.Store.SubAgents().SessionsFor, Kept: erase.Beyond(asides, c.Audit.Archive != "", c.Audit.File != "", c.Store.URL != ""), Progress: progress, Log: e.log,
	})
}

// Run erases what is old, if the settings say how long it is kept.
func (e *erasing) Run(ctx context.Context) error {
	days := e.settings.Load().Retention.Days
	if days <= 0 {
		return nil
	}
	return e.eraser().Run(ctx, e.home.Bus, days)
}

// rewrite rewrites the databases after erasures, so their files contain nothing that was erased. The process of a
// single command does that when it ends, so its user doesn't wait for it.
func (e *erasing) rewrite(ctx context.Context) error {
	if e.role.Serves() || e.role.Works() {
		return e.rewriter.Run(ctx)
	}
	return e.rewriter.Finish(ctx)
}

// meet implements host.
func (e *erasing) meet(all []part) { e.memories = having[forgetter](all) }

// clearMemory clears what this process remembers about conversations and people.
func (e *erasing) clearMemory() {
	for _, m := range e.memories {
		m.Clear()
	}
}
