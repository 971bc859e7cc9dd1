// Package recall finds, for people, what was said to the bot and by it, and what it remembers, as far as the person
// who asks may see it.
//
// recall.go answers the tool's questions, facts.go knows the chats and who is in them, passages.go shows what was
// found, links.go adds links to the platforms, doubt.go finds out which passages strangers may have written in
// part, notes.go searches memories and the knowledge folder, and command.go answers the command /recall.
package recall

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/search/sight"
	"parley/tools"
	"parley/tools/recall"
)

// The limits for one search.
const (
	maxLinkedAccounts = 20 // accounts of the asker, in the order in which they were linked
	maxSessionsHere   = 50 // other sessions in the chat where somebody asks
)

// A Book is the part of the channels' book that a Finder reads.
type Book interface {
	LinkedWith(ctx context.Context, person string) ([]channels.Link, error)
	// ChatAt returns what is known about the chat at an address; false if nobody has talked there.
	ChatAt(ctx context.Context, at bus.Address) (chat channels.Chat, known bool, err error)
	Memory(ctx context.Context, scope, owner string) (content string, untrusted bool, err error)
}

// Sessions gives access to the logs, and knows which sessions a place has.
type Sessions interface {
	sessions.Reader
	RecentIn(ctx context.Context, place string, limit int) ([]sessions.Info, error)
}

// Config holds what a Finder needs.
type Config struct {
	Index    search.Index
	Sessions Sessions
	Book     Book
	Members  *Members
	// Files, if set, returns the files in a session's workspace. It is nil in processes without workspaces.
	Files func(session string) (fs.FS, error)
	// Knowledge, if set, returns the operator's folder; nil if there is none, or if the session's agent may not
	// read it.
	Knowledge func(session string) fs.FS
	// Page, if set, returns the address at which browsers on other machines reach the page; nil if they can't.
	Page func() *url.URL
	// SessionOf returns the session that a message belongs to; "" where no agent listens.
	SessionOf func(ctx context.Context, in bus.Inbound) (session string, err error)
	Bus       bus.Bus
	Prefix    func(channel string) string // returns what commands begin with on a channel, such as "/"
	Log       *slog.Logger
}

// A Finder finds what was said and what is remembered, as far as whoever asks may see it. It answers the tool recall and the
// command /recall.
type Finder struct{ cfg Config }

// New makes a Finder.
func New(c Config) *Finder { return &Finder{c} }

// Find answers an agent's question, and implements recall.Finder.
func (f *Finder) Find(ctx context.Context, q recall.Question) (recall.Answer, error) {
	who := sight.Asker{Session: q.Call.Session, Private: q.Call.Private}
	if q.Call.Parent == "" { // a sub-agent finds only what was said in its own session
		var err error
		if who.Accounts, err = f.accounts(ctx, q.Call.Person); err != nil {
			return recall.Answer{}, f.modelError(ctx, err)
		}
	}
	answer, err := f.find(ctx, f, who, request{Words: q.Words, Since: q.Since, Until: q.Until, Limit: q.Limit, Agent: q.Call.Agent, Person: q.Call.Person, Turn: q.Call.Turn})
	if err != nil {
		return recall.Answer{}, f.modelError(ctx, err)
	}
	return answer, nil
}

// modelError returns an error that the model may read in place of one that it may not.
func (f *Finder) modelError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.cfg.Log.Warn("what was said could not be searched", slog.Any("error", err))
	return tools.Errorf(tools.ExecutionFailed, "the conversations cannot be searched now: try again")
}

// A request says what to find.
type request struct {
	Words        string
	Since, Until time.Time
	Limit        int
	Agent        string // whose memory is searched
	Person       string // whose memory is searched too, if the asker is alone with the bot; "" means nobody's
	Turn         string // the turn in which the agent asks, in which nothing is found; "" if there is none
}

// find finds what an asker may see.
func (f *Finder) find(ctx context.Context, facts sight.Facts, who sight.Asker, r request) (recall.Answer, error) {
	candidates, err := f.candidates(ctx, who)
	if err != nil {
		return recall.Answer{}, err
	}
	seen, err := sight.ViewOf(ctx, factsWithDeadline{facts, time.Now().Add(askAllTimeout)}, who, candidates)
	if err != nil {
		return recall.Answer{}, err
	}
	// Otherwise the question itself would be found first: it contains its own words closer together than any
	// answer.
	hits, err := f.cfg.Index.Search(ctx, search.Query{Words: r.Words, Sessions: seen.Sessions, Since: r.Since, Until: r.Until, Limit: r.Limit, ExcludedTurn: r.Turn})
	if err != nil {
		return recall.Answer{}, err
	}
	found, err := f.passages(ctx, who, hits)
	if err != nil {
		return recall.Answer{}, err
	}
	notes, cut, err := f.notes(ctx, who, r)
	if err != nil {
		return recall.Answer{}, err
	}
	var lacks []string
	if seen.Unknown {
		lacks = append(lacks, textNotAsked)
	}
	if cut {
		lacks = append(lacks, textKnowledgeCut)
	}
	// What was stored on purpose comes first, so that it is not cut off to make room for what was said.
	return recall.Answer{Found: append(notes, found...), Note: strings.Join(lacks, " ")}, nil
}

// candidates returns the sessions in which something may be found, before it is checked whether the asker may see
// them: the session where they ask, others in the same chat, and those in which they have spoken. For an asker
// without accounts, such as a sub-agent, it is only the first of these.
func (f *Finder) candidates(ctx context.Context, who sight.Asker) ([]string, error) {
	keys := []string{who.Session}
	here, err := sessions.ParseKey(who.Session)
	if err != nil || len(who.Accounts) == 0 {
		return keys, nil //nolint:nilerr // nothing else can be seen from there
	}
	place, err := sessions.Key(here.Agent, here.Channel, here.Chat, "")
	if err != nil {
		return nil, err
	}
	others, err := f.cfg.Sessions.RecentIn(ctx, place, maxSessionsHere)
	if err != nil {
		return nil, err
	}
	for _, s := range others {
		keys = append(keys, s.Key)
	}
	spoken, err := f.cfg.Index.SessionsSpokenIn(ctx, here.Agent, who.Accounts, search.MaxSessions)
	if err != nil {
		return nil, err
	}
	keys = append(keys, spoken...)
	return keys[:min(len(keys), search.MaxSessions)], nil
}

// accounts returns a person's accounts: the given one, and those that are linked with it, but no more than maxLinkedAccounts of
// these; none if person is "".
func (f *Finder) accounts(ctx context.Context, person string) ([]string, error) {
	if person == "" {
		return nil, nil
	}
	all := []string{person}
	links, err := f.cfg.Book.LinkedWith(ctx, person)
	if err != nil {
		return nil, fmt.Errorf("look up linked accounts: %w", err)
	}
	for _, l := range links[:min(len(links), maxLinkedAccounts)] {
		if l.Person != person {
			all = append(all, l.Person)
		}
	}
	return all, nil
}
