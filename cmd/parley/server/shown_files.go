package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/agent"
	"parley/bus"
	"parley/channels/files/copies"
	"parley/channels/markup"
	"parley/channels/web"
	"parley/sessions"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/files"
)

// shownFiles copies the files that go with answers.
type shownFiles struct {
	foundation
	fileCopies *fileCopies
	guard      *guarding
}

// copyFiles copies the files in the workspace that an answer shows as images, and those that its turn's calls enclose. The
// result also contains, for each file that is not sent, a sentence that says why.
func (f *shownFiles) copyFiles(ctx context.Context, session string, answer agent.AnswerWithFiles) (e agent.AnswerFiles) {
	paths := copies.ShownPaths(answer.Text)
	if answer.At.Channel != web.Name { // the web page shows these files next to the calls
		paths = append(paths, answer.Enclosed...)
	}
	if len(paths) == 0 {
		return e
	}
	refuse := func(format string, args ...any) {
		e.Refused = append(e.Refused, fmt.Sprintf(format, args...))
	}
	if why, _ := f.home.MaySendFiles(ctx); why != "" {
		refuse("%s.", why)
		return e
	}
	dir, err := f.home.Workspace(session)
	if err != nil {
		f.log.Error("files of an answer cannot be sent", slog.String("session", session), slog.Any("error", err))
		refuse(textNoWorkspace)
		return e
	}
	if paths = eachOnce(dir, paths); len(paths) > copies.MaxFiles {
		refuse(textTooManyFiles, len(paths), copies.MaxFiles)
		paths = paths[:copies.MaxFiles]
	}
	to := copies.Messages{Session: session, Call: answer.ID, IDs: []string{answer.ID}, MaxBytes: f.fileCopies.mostFileBytes(answer.At.Channel)}
	for _, path := range paths {
		kept, err := f.copyFile(ctx, to, dir, path)
		if refused, ok := errors.AsType[*tools.Error](err); ok && refused.Code == tools.FileNotFound {
			refuse(textNoSuchFile, markup.Verbatim(path))
			continue
		} else if ok {
			refuse(textFileNotSent, strings.TrimSuffix(refused.Message, "."))
			continue
		}
		if err != nil {
			f.log.Error("a file of an answer cannot be sent", slog.String("session", session), slog.Any("error", err))
			refuse(textFileNotCopied, markup.Verbatim(path))
			continue
		}
		e.Files = append(e.Files, kept...)
	}
	if err := f.home.OwnOutgoing(); err != nil {
		f.log.Error("files of an answer may not be readable for who sends them", slog.Any("error", err))
	}
	return e
}

// eachOnce returns the paths without those that name the same file in a directory as one before.
func eachOnce(dir *workspace.Dir, paths []string) []string {
	named := map[string]bool{}
	return slices.DeleteFunc(paths, func(path string) bool {
		if name, err := dir.Name(path); err == nil {
			path = name
		}
		again := named[path]
		named[path] = true
		return again
	})
}

// copyFile copies a file that an answer shows, so that it can be sent, if the agent may read that file.
func (f *shownFiles) copyFile(ctx context.Context, to copies.Messages, dir *workspace.Dir, path string) ([]bus.FileRef, error) {
	if !slices.Contains(f.fileCopies.rights.capabilities(to.Session), tools.FileRead) {
		return nil, tools.Errorf(tools.PermissionDenied, "I don't have the file_read capability")
	}
	reading := files.Reading(tools.Call{Session: to.Session, Agent: sessions.AgentOf(to.Session)}, path)
	if v := f.guard.decide(ctx, reading); v.Decision == tools.Deny || v.Decision == tools.Ask {
		return nil, tools.Errorf(tools.PermissionDenied, "the operator's rules don't let me read %s without asking", markup.Verbatim(path))
	}
	kept, err := f.fileCopies.copies.Keep(ctx, to, dir, []string{path})
	for i, file := range kept {
		if name, ok := canvas.SentName(file.Path); ok {
			kept[i].Name = name
		}
	}
	return kept, err
}
