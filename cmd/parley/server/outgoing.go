package server

import (
	"context"
	"errors"
	"math"
	"slices"

	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/cmd/parley/outfiles"
	"parley/tools"
	"parley/tools/message"
)

// outgoing are the files that wait to be sent.
func (s *Server) outgoing() outfiles.Files { return outfiles.Files{Store: s.home.Outgoing} }

// sweeper removes what crashes have left of them.
func (s *Server) sweeper() outfiles.Sweeper {
	return outfiles.Sweeper{Files: s.outgoing(), Bus: s.home.Bus, Book: s.home.Book, Log: s.log}
}

// enclose copies the files of a letter out of its session's workspace and has its messages
// name them. Each message refers to the copies before the first is published.
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

// mostFileBytes is how large a file may be that goes to a channel.
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
