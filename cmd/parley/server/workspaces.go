package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"parley/agent/ownfiles"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/sandbox"
)

// workspaces opens the folders in which sessions' tools work.
type workspaces struct{ foundation }

// mostWriting limits, in a fleet, how long after the check of the session's lease a tool may still
// write files. It is less than the remaining time of a lease that has just been checked.
const mostWriting = 3 * time.Second

// openUntil opens a session's directory for one call. In a fleet, a process that was paused for a while may have lost
// the session to another process when it continues. So the directory can be written to for at most mostWriting after
// the lease was checked, and not after the call's deadline.
func (w *workspaces) openUntil(ctx context.Context, call tools.Call) (*workspace.Dir, error) {
	if call.Held.IsZero() {
		call.Held = time.Now()
	}
	until := call.Held.Add(mostWriting)
	dir, err := w.home.Workspace(call.Session)
	if err != nil {
		return nil, err
	}
	dir = dir.WithContext(ctx)
	if w.settings.Load().Bus.URL == "" {
		return dir, nil
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return dir.WritableUntil(until), nil
}

// keepResult stores a result that is too long for the model in the session's workspace, and returns
// its path.
func (w *workspaces) keepResult(ctx context.Context, call tools.Call, content json.RawMessage) (string, error) {
	dir, err := w.openUntil(ctx, call)
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

// keepServerFile stores a file from an MCP server in the session's workspace, marked as written by
// strangers, and returns its path.
func (w *workspaces) keepServerFile(ctx context.Context, call tools.Call, name string, content []byte) (string, error) {
	dir, err := w.openUntil(ctx, call)
	if err != nil {
		return "", err
	}
	path := ownfiles.Foreign + "/" + name
	if err := guard.ChangeMarks(dir, false, []string{path}, nil); err != nil {
		return "", err
	}
	return path, dir.Write(path, content)
}

// markChanged records that a command may have changed files of a call's session.
func (w *workspaces) markChanged(call tools.Call) {
	dir, err := w.home.Workspace(call.Session)
	if err == nil {
		err = dir.MarkChanged()
	}
	if err != nil {
		w.log.Warn("a workspace cannot be measured", slog.Any("error", err))
	}
}

// markAfterJob records that a program that a call used may have changed files of its session, and marks the files if
// they may now contain text written by strangers; see guard.MarkAfterJob.
func (w *workspaces) markAfterJob(call tools.Call) {
	w.markChanged(call)
	settings := w.settings.Load()
	dir, err := w.home.Workspace(call.Session)
	if err == nil {
		err = guard.MarkAfterJob(dir, call.Untrusted, settings.Jobs.Write || settings.Sandbox.Mode == string(sandbox.None))
	}
	if err != nil {
		w.log.Error("which files hold what strangers may have written could not be noted after a job", slog.String("session", call.Session), slog.Any("error", err))
	}
}

// pathName returns the name of a path within the workspace of a call's session; the path itself if it isn't in there.
func (w *workspaces) pathName(call tools.Call, path string) string {
	dir, err := w.home.Workspace(call.Session)
	if err != nil {
		return path
	}
	name, err := dir.Name(path)
	if err != nil {
		return path // the tool refuses it, too
	}
	return name
}

// promptUntrusted reports whether a file that is part of a session's prompt may contain text written by strangers. It
// returns true if that can't be found out.
func (w *workspaces) promptUntrusted(_ context.Context, session string) bool {
	files, err := w.home.WorkspaceFiles(session)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(guard.PromptedFiles(), guard.ReadMarks(files).Has)
}
