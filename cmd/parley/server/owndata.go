package server

import (
	"context"
	"io/fs"
	"net/url"

	"parley/bus"
	"parley/channels/people"
	"parley/channels/recall"
	"parley/channels/web"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/owndata"
	"parley/sessions/search"
	"parley/tools/memory"
)

// ownData carries out people's commands about the data that is stored about them, such as /forget or /export.
type ownData struct {
	*owndata.Commands
	personal  *people.Commands
	proposals owndata.Proposals
	finder    *recall.Finder
}

// newOwnData returns the part that carries out these commands. It calls relinked after accounts were linked or
// separated.
func newOwnData(on foundation, e *erasing, all liveChannels, page people.PageLink, relinked func()) *ownData {
	o := &ownData{
		Commands: owndata.New(owndata.Config{
			Notes: on.home.Book, Ratings: on.home.Book, Memories: on.home.Book, Schedules: on.home.Store.Schedules(), Bus: on.home.Bus, Store: on.home.Store,
			Eraser: func() owndata.Eraser { return e.eraser() }, Prefix: all.prefix, Log: on.log,
		}),
		personal: &people.Commands{Book: home.RewrittenBook{Book: on.home.Book, Erase: e.rewriter.Erase}, Bus: on.home.Bus, Prefix: all.prefix, Page: page, MaxMemory: memory.MaxStored, OnLinksChanged: relinked},
	}
	o.proposals = owndata.Proposals{Book: on.home.Book, Logs: on.home.Store, People: o.personal, MayPropose: on.home.MayPropose}
	return o
}

// join connects people's own data with the gateways, which pass on the commands, and with the agents.
func (o *ownData) join(gates *gateways, work *agentSide) {
	gates.ownData, work.answerer.link, o.finder = o.Handle, o.linkOnWeb, work.recall
	work.answerer.agents.proposals = o.proposals
}

// Handle carries out a command.
func (o *ownData) Handle(ctx context.Context, in bus.Inbound) error {
	if recall.IsCommand(in) {
		return o.finder.Handle(ctx, in)
	}
	if people.IsPersonal(in) {
		return o.personal.Handle(ctx, in)
	}
	return o.Commands.Handle(ctx, in)
}

// linkOnWeb carries out /link for the users of tokens, whose messages no gateway sees; "" for all others.
func (o *ownData) linkOnWeb(ctx context.Context, in bus.Inbound) (answer string, err error) {
	if in.At.Channel != web.Name {
		return "", nil
	}
	return o.personal.LinkHere(ctx, in)
}

// newRemembered returns the part through which programs read and edit what agents remember.
func newRemembered(on foundation, e *erasing, hidden *secrets) owndata.Remembered {
	return owndata.Remembered{
		Memories: home.EditedMemories{Home: on.home, Erase: e.rewriter.Erase}, Sessions: on.home.Store, Plain: hidden.text,
		HasAgent: func(name string) bool {
			_, has := on.settings.Load().Agents[name]
			return has
		},
	}
}

// newRecall returns the part that finds what was said and remembered.
func newRecall(on foundation, c *chatSide, k *knowledgeFolder, may *rights) *recall.Finder {
	return recall.New(recall.Config{
		Index: c.liveChannels.linked(on), Sessions: on.home.Store, Book: on.home.Book, Members: &recall.Members{Access: c.liveChannels.chatReader(on)},
		Files: on.home.WorkspaceFiles, Knowledge: func(session string) fs.FS { return k.base.For(may.capabilities(session)) }, Page: func() *url.URL { return on.settings.Load().HTTP.Page() },
		SessionOf: c.conversations.sessionOf, Bus: on.home.Bus, Prefix: c.liveChannels.prefix, Log: on.log,
	})
}

// linked returns the index of what was said; its hits include the addresses at which platforms show them.
func (all liveChannels) linked(on foundation) search.Index {
	return recall.LinkedIndex{Index: on.words, Platforms: all.chatReader(on)}
}
