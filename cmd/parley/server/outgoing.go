package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"parley/agent"
	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/cmd/parley/config"
	"parley/cmd/parley/outfiles"
	"parley/cmd/parley/undo"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/message"
)

// outgoing returns the store of files that wait to be sent.
func (s *Server) outgoing() outfiles.Files { return outfiles.Files{Store: s.home.Outgoing} }

// sweeper returns what removes files that were to be sent but will not be, because a process has
// died.
func (s *Server) sweeper() outfiles.Sweeper {
	return outfiles.Sweeper{Files: s.outgoing(), Bus: s.home.Bus, Book: s.home.Book, Log: s.log}
}

// enclose copies the files of a letter out of its session's workspace and attaches the copies to
// its messages. It records that every message needs the copies before the first message is
// published, so that none is removed too early.
func (s *Server) enclose(ctx context.Context, l message.Letter, outs []bus.Outbound) error {
	if len(l.Files) == 0 {
		return nil
	}
	if !slices.Contains(s.capabilities(l.Session), tools.FileRead) {
		return tools.Errorf(tools.PermissionDenied, "files cannot be sent without the capability file_read, which this agent does not have")
	}
	dir, err := s.home.Workspace(l.Session)
	if err != nil {
		return err
	}
	of := outfiles.Letter{Session: l.Session, Call: l.ID, Most: math.MaxInt64}
	for _, out := range outs {
		of.IDs = append(of.IDs, out.ID)
		of.Most = min(of.Most, s.mostFileBytes(out.To.Channel))
	}
	kept, err := s.outgoing().Keep(ctx, of, dir, l.Files)
	if _, refused := errors.AsType[*tools.Error](err); refused && l.Attempt > 1 {
		return tools.Errorf(tools.OutcomeUnknown, "OUTCOME UNKNOWN: an earlier attempt at this call was cut off, and what it may have sent cannot be sent again: %v", err)
	}
	if err != nil {
		return err
	}
	for i := range outs {
		outs[i].Files = kept
	}
	if s.point != nil {
		s.point("files:kept")
	}
	return s.home.GiveOutgoing()
}

// encloseShown copies the files of the workspace that an answer shows as images. The
// result also has, for each file that is not sent, a sentence that says why.
func (s *Server) encloseShown(ctx context.Context, session, id string, at bus.Address, text string) (e agent.Enclosed) {
	paths := outfiles.ShownPaths(text)
	if len(paths) == 0 {
		return e
	}
	refuse := func(format string, args ...any) {
		e.Refused = append(e.Refused, fmt.Sprintf(format, args...))
	}
	if len(paths) > outfiles.MaxFiles {
		refuse("Of %d files only the first %d were sent.", len(paths), outfiles.MaxFiles)
		paths = paths[:outfiles.MaxFiles]
	}
	if why, err := s.home.MayEnclose(ctx); err != nil || why != "" {
		refuse("Files cannot be sent now: %s.", cmp.Or(why, "it is not known whether all processes know how"))
		return e
	}
	dir, err := s.home.Workspace(session)
	if err != nil {
		s.log.Error("files of an answer cannot be sent", slog.String("session", session), slog.Any("error", err))
		refuse("Files cannot be sent now: the workspace cannot be opened.")
		return e
	}
	l := outfiles.Letter{Session: session, Call: id, IDs: []string{id}, Most: s.mostFileBytes(at.Channel)}
	for _, path := range paths {
		kept, err := s.keepShown(ctx, l, dir, path)
		if refused, ok := errors.AsType[*tools.Error](err); ok && refused.Code == tools.FileNotFound {
			refuse("The file %s could not be sent: there is none of that name in the workspace.", markup.Verbatim(path))
			continue
		} else if ok {
			refuse("The file could not be sent: %s.", strings.TrimSuffix(refused.Message, "."))
			continue
		}
		if err != nil {
			s.log.Error("a file of an answer cannot be sent", slog.String("session", session), slog.Any("error", err))
			refuse("The file %s could not be sent: it cannot be copied now.", markup.Verbatim(path))
			continue
		}
		e.Files = append(e.Files, kept...)
	}
	if err := s.home.GiveOutgoing(); err != nil {
		s.log.Error("files of an answer may not be readable for who sends them", slog.Any("error", err))
	}
	return e
}

// keepShown copies a file that an answer shows, so that it can be sent, if the agent may read
// that file.
func (s *Server) keepShown(ctx context.Context, l outfiles.Letter, dir *workspace.Dir, path string) ([]bus.FileRef, error) {
	if !slices.Contains(s.capabilities(l.Session), tools.FileRead) {
		return nil, tools.Errorf(tools.PermissionDenied, "this agent does not have the capability file_read")
	}
	args, err := json.Marshal(map[string]string{"path": path})
	if err != nil { // a text always marshals
		panic(err)
	}
	reading := tools.Call{Name: "read_file", Args: args, Session: l.Session, Agent: agentName(l.Session)}
	if v := s.decide(ctx, reading); v.Decision == tools.Deny || v.Decision == tools.Ask {
		return nil, tools.Errorf(tools.PermissionDenied, "the operator's rules do not let %s be read unasked", markup.Verbatim(path))
	}
	return s.outgoing().Keep(ctx, l, dir, []string{path})
}

// mayShorten reports whether a long text may be sent as its beginning and a file. It may if every
// process that serves is of a release that can send such messages.
func (s *Server) mayShorten(ctx context.Context) bool {
	why, err := s.home.MayEnclose(ctx)
	return err == nil && why == ""
}

// mayGrow reports whether an answer may be shown by a message that grows while the answer is
// made. It may if every process that serves is of a release that can take over such a message.
func (s *Server) mayGrow(ctx context.Context) bool {
	may, err := s.home.MayGrow(ctx)
	return err == nil && may
}

// mostFileBytes returns how many bytes a file that is sent to a channel may have.
func (s *Server) mostFileBytes(channel string) int64 {
	most := int64(config.DefaultFilesMB)
	if c, ok := s.settings.Load().Channels[channel]; ok && c.FilesMB > 0 {
		most = int64(c.FilesMB)
	}
	for _, l := range s.channels {
		if l.name == channel {
			return channels.MostFileBytes(l.channel, most<<20)
		}
	}
	return most << 20
}

// newHistory makes the part that keeps the earlier versions of files that turns have changed, so
// that people can undo a turn.
func (s *Server) newHistory() *undo.History {
	return undo.New(undo.Config{
		Store: s.home.Snapshots, Log: s.log, Off: func() bool { return s.settings.Load().Workspace.UndoTurns == 0 },
		Open: func(session string) (*workspace.Dir, bool, error) {
			dir, err := s.home.Workspace(session)
			return dir, s.home.IsOwn(session), err
		},
	})
}

// discardFiles removes files that came with a message, and the copies of them that undo
// keeps.
func (s *Server) discardFiles(ctx context.Context, session string, paths []string) error {
	if _, err := s.home.Snapshots.Remove(ctx, session); err != nil {
		return err
	}
	return s.files.Discard(ctx, session, paths)
}
