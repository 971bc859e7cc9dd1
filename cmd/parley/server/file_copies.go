package server

import (
	"context"
	"errors"
	"math"
	"slices"

	"parley/bus"
	"parley/channels"
	"parley/channels/files/copies"
	"parley/cmd/parley/config"
	"parley/tools"
	"parley/tools/message"
)

// fileCopies copies the files that go with messages; the copies are kept until the messages are
// sent.
type fileCopies struct {
	foundation
	liveChannels liveChannels
	rights       *rights
	copies       copies.Files
}

// Run removes, until ctx is done, copies that will never be sent because a process died.
func (f *fileCopies) Run(ctx context.Context) error {
	return copies.Sweeper{Files: f.copies, Bus: f.home.Bus, Book: f.home.Book, Log: f.log}.Run(ctx, f.home.Bus)
}

// attach copies the files of a request out of its session's workspace and attaches the copies to
// its messages. It records that every message needs the copies before the first message is
// published, so that no copy is removed too early.
func (f *fileCopies) attach(ctx context.Context, r message.Request, outs []bus.Outbound) error {
	if len(r.Files) == 0 {
		return nil
	}
	if !slices.Contains(f.rights.capabilities(r.Session), tools.FileRead) {
		return tools.Errorf(tools.PermissionDenied, "files cannot be sent without the file_read capability, which this agent does not have")
	}
	dir, err := f.home.Workspace(r.Session)
	if err != nil {
		return err
	}
	of := copies.Messages{Session: r.Session, Call: r.ID, MaxBytes: math.MaxInt64}
	for _, out := range outs {
		of.IDs = append(of.IDs, out.ID)
		of.MaxBytes = min(of.MaxBytes, f.mostFileBytes(out.To.Channel))
	}
	kept, err := f.copies.Keep(ctx, of, dir, r.Files)
	if _, refused := errors.AsType[*tools.Error](err); refused && r.Attempt > 1 {
		return tools.Errorf(tools.OutcomeUnknown, "OUTCOME UNKNOWN: an earlier attempt at this call was cut off, and what it may have sent cannot be sent again: %v", err)
	}
	if err != nil {
		return err
	}
	for i := range outs {
		outs[i].Files = kept
	}
	if f.point != nil {
		f.point("files:kept")
	}
	return f.home.OwnOutgoing()
}

// mostFileBytes returns the largest size, in bytes, of a file that is sent to a channel.
func (f *fileCopies) mostFileBytes(channel string) int64 {
	most := int64(config.DefaultFilesMB)
	if c, ok := f.settings.Load().Channels[channel]; ok && c.FilesMB > 0 {
		most = int64(c.FilesMB)
	}
	if l := f.liveChannels.named(channel); l != nil {
		return channels.MaxFileBytes(l.channel, most<<20)
	}
	return most << 20
}
