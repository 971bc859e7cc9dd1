package home

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"parley/agent/ownfiles"
	"parley/cmd/parley/config"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/sandbox"
)

// CallWorkspaces opens sessions' workspaces for tool calls, and marks in them what strangers may have written.
type CallWorkspaces struct {
	Home     *Home
	Settings func() *config.Config // the current settings
	Log      *slog.Logger
}

// writeWindow is, in a fleet, how long after the check of the session's lease a tool may still write
// files. It is less than the remaining time of a lease that has just been checked.
const writeWindow = 3 * time.Second

// Open opens a session's workspace for one call. In a fleet, a process that was paused for a while may have lost
// the session to another process when it continues. So the workspace can be written to for at most writeWindow after
// the lease was checked, and not after the call's deadline.
func (w *CallWorkspaces) Open(ctx context.Context, call tools.Call) (*workspace.Dir, error) {
	if call.HeldAt.IsZero() {
		call.HeldAt = time.Now()
	}
	until := call.HeldAt.Add(writeWindow)
	dir, err := w.Home.Workspace(call.Session)
	if err != nil {
		return nil, err
	}
	dir = dir.WithContext(ctx)
	if w.Settings().Bus.URL == "" {
		return dir, nil
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return dir.WritableUntil(until), nil
}

// KeepResult stores a result that is too long for the model in the session's workspace, and returns
// its path.
func (w *CallWorkspaces) KeepResult(ctx context.Context, call tools.Call, content json.RawMessage) (string, error) {
	dir, err := w.Open(ctx, call)
	if err != nil {
		return "", err
	}
	path := ownfiles.Results + "/" + call.ID + ".json"
	if call.Untrusted {
		if err := guard.ChangeMarks(dir, false, []string{path}, nil); err != nil {
			return "", err
		}
	}
	return path, dir.Write(path, content)
}

// KeepServerFile stores a file from an MCP server in the session's workspace, marked as written by
// strangers, and returns its path.
func (w *CallWorkspaces) KeepServerFile(ctx context.Context, call tools.Call, name string, content []byte) (string, error) {
	dir, err := w.Open(ctx, call)
	if err != nil {
		return "", err
	}
	path := ownfiles.Foreign + "/" + name
	if err := guard.ChangeMarks(dir, false, []string{path}, nil); err != nil {
		return "", err
	}
	return path, dir.Write(path, content)
}

// MarkChanged records that a command may have changed files of a call's session, so that the workspace is measured
// again. If that fails, it only logs the error.
func (w *CallWorkspaces) MarkChanged(call tools.Call) {
	dir, err := w.Home.Workspace(call.Session)
	if err == nil {
		err = dir.MarkChanged()
	}
	if err != nil {
		w.Log.Warn("a workspace cannot be measured", slog.Any("error", err))
	}
}

// MarkAfterJob records that a program that a call used may have changed files of its session, and marks the files if
// they may now contain text written by strangers; see guard.MarkAfterJob. If that fails, it only logs the error.
func (w *CallWorkspaces) MarkAfterJob(call tools.Call) {
	w.MarkChanged(call)
	settings := w.Settings()
	dir, err := w.Home.Workspace(call.Session)
	if err == nil {
		err = guard.MarkAfterJob(dir, call.Untrusted, settings.Jobs.Write || settings.Sandbox.Mode == string(sandbox.None))
	}
	if err != nil {
		w.Log.Error("which files hold what strangers may have written could not be noted after a job", slog.String("session", call.Session), slog.Any("error", err))
	}
}

// NameInside returns the name of a path within the workspace of a call's session; the path itself if it isn't in there.
func (w *CallWorkspaces) NameInside(call tools.Call, path string) string {
	dir, err := w.Home.Workspace(call.Session)
	if err != nil {
		return path
	}
	name, err := dir.Name(path)
	if err != nil {
		return path // the tool refuses it, too
	}
	return name
}

// IsPromptUntrusted reports whether a file that is part of a session's prompt may contain text written by strangers. It
// returns true if that can't be found out.
func (w *CallWorkspaces) IsPromptUntrusted(_ context.Context, session string) bool {
	files, err := w.Home.WorkspaceFiles(session)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(guard.PromptedFiles(), guard.ReadMarks(files).Has)
}
