package server

import (
	"context"

	"parley/bus"
	"parley/channels/people"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/data/owndata"
)

// ownData carries out the commands of people about the data that is kept about them, such as /forget or
// /export.
type ownData struct {
	*owndata.Commands
	personal *people.Commands
}

// newOwnData makes what carries out these commands.
func newOwnData(on foundation, e *erasing, all endpoints) *ownData {
	return &ownData{
		Commands: owndata.New(owndata.Config{
			Notes: on.home.Book, Ratings: on.home.Book, Memories: on.home.Book, Schedules: on.home.Store.Schedules(), Bus: on.home.Bus, Store: on.home.Store,
			Eraser: func() owndata.Eraser { return e.eraser() }, Prefix: all.prefix, Log: on.log,
		}),
		personal: &people.Commands{Book: rewrittenLater{on.home.Book, e.rewriter}, Bus: on.home.Bus, Prefix: all.prefix},
	}
}

// Handle carries out a command.
func (o *ownData) Handle(ctx context.Context, in bus.Inbound) error {
	if people.IsPersonal(in) {
		return o.personal.Handle(ctx, in)
	}
	return o.Commands.Handle(ctx, in)
}

// rewrittenLater is the book, whose file is rewritten some time after a memory was erased from it.
type rewrittenLater struct {
	*sqlbook.Book
	rewriter *erase.Rewriter
}

// Forget erases a memory.
func (b rewrittenLater) Forget(ctx context.Context, scope, owner string) error {
	return b.rewriter.Erase(ctx, func(ctx context.Context) (bool, error) {
		content, _, err := b.Memory(ctx, scope, owner)
		if err != nil {
			return false, err
		}
		return content != "", b.Book.Forget(ctx, scope, owner)
	})
}
