package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/agent/journal"
	"parley/agent/model"
	"parley/agent/proposals"
	"parley/agent/route"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// proposalTimeout limits how long the search for facts worth remembering may take. Meanwhile, the session counts as
// busy.
const proposalTimeout = 30 * time.Second

// noteProposable remembers a message after which the run may propose facts to its sender: one in a private chat on a
// platform, where the person can decide.
func (r *sessionRun) noteProposable(it *item) {
	in := &it.in
	if r.Agent.Proposals == nil || in.Group || !in.Private || in.From.ID == "" || !it.isKind(bus.Said) && !it.isKind(bus.Command) {
		return
	}
	if r.Config.OwnData == nil || r.Config.OwnData(in.At.Channel) {
		r.proposeAfter = in
	}
}

// propose has a model look for facts worth remembering in the newest part of the conversation that a summary replaced,
// and tells the person. It does so only if there is nothing else to do, and once for each part. If a run is cut off or
// fails, the run after the session's next message tries again.
func (r *sessionRun) propose(ctx context.Context) error {
	in := r.proposeAfter
	r.proposeAfter = nil
	newest, _ := transcript.NewestSummary(r.Journal.Records())
	if in == nil || newest.Covers == 0 {
		return nil
	}
	p := proposer{r.Session, r.shared.askers, in}
	failed, err := r.askOutsideTurns(ctx, proposalTimeout, func(asking context.Context) error { return p.propose(asking, newest.Covers) })
	if ctx.Err() == nil && err != nil && !errors.Is(err, bus.ErrFenced) && !errors.Is(err, sessions.ErrFenced) && !errors.Is(err, sessions.ErrConflict) {
		failed, err = err, nil // the person already has an answer, and nobody waits for proposals
	}
	if failed != nil {
		r.Log.Info("nothing was proposed to be remembered", slog.Any("error", failed))
	}
	return err
}

// A proposer proposes to a person what to remember from a session.
type proposer struct {
	*turn.Session
	askers *model.Askers
	in     *bus.Inbound // the person's newest message
}

// propose asks a model about the session's log up to the entry covers, stores the facts that the model finds, and tells
// the person. It skips the steps that were done before, and does nothing while an older release serves.
func (p proposer) propose(ctx context.Context, covers int64) error {
	store, in := p.Agent.Proposals, p.in
	last, told, err := store.Last(ctx, p.Key())
	if err != nil || last >= covers && told {
		return err
	}
	if last < covers {
		if may, err := store.May(ctx); err != nil || !may {
			return err
		}
		found, err := p.findFacts(ctx, last, covers)
		if err != nil {
			return err
		}
		p.Point("propose:found")
		if err := p.Lease.Held(ctx); err != nil {
			return err
		}
		if err := store.Propose(ctx, proposals.Round{Session: p.Key(), Agent: p.Agent.Name, Covers: covers, Cause: in.ID, Person: in.From.ID, At: in.At, Facts: found}); err != nil {
			return err
		}
		p.Point("propose:kept")
		if len(found) == 0 {
			return nil
		}
		// An erasure of the person's words erases the log first, and then the proposals. If the log no longer has the
		// words, these proposals may have been stored too late to be erased with them.
		if left, _, err := store.Past(ctx, p.Key(), covers-1, covers); err != nil || len(left) == 0 {
			return errors.Join(err, store.Forget(ctx, p.Key()))
		}
	}
	if err := p.Lease.Held(ctx); err != nil {
		return err
	}
	if err := store.Tell(ctx, p.Key(), covers); err != nil {
		return err
	}
	p.Point("propose:told")
	return nil
}

// findFacts asks the model what is worth remembering from the session's log after one entry and up to another. It
// doesn't ask about a part in which the person said little.
func (p proposer) findFacts(ctx context.Context, after, covers int64) ([]proposals.Fact, error) {
	in := p.in
	entries, whole, err := p.Agent.Proposals.Past(ctx, p.Key(), after, covers)
	if err != nil {
		return nil, err
	}
	records := make([]journal.Record, len(entries))
	for i, e := range entries {
		if records[i], err = journal.Decode(e); err != nil {
			return nil, err
		}
	}
	known, err := p.Agent.Proposals.Known(ctx, p.Agent.Name, in.From.ID)
	if err != nil {
		return nil, err
	}
	trusted := whole && !known.Untrusted && !hasUntrusted(records, covers) && (p.Agent.Untrusted == nil || !p.Agent.Untrusted(ctx, p.Key()))
	conversation := proposals.Read(records, in.From.ID, trusted)
	if !conversation.IsLong() {
		return nil, nil
	}
	// The call's reservation has an id of its own, apart from those of the turn that has just ended.
	t := &turn.Turn{ID: bus.DerivedID(in.ID, "#memory"), Person: in.From.ID, Route: route.Of(*in)}
	p.Point("propose:ask")
	answer, err := p.askers.New(p.WithoutTurnState()).TextOutsideTurn(ctx, t, conversation.Request(known, in.From.Owner))
	if err != nil {
		return nil, err
	}
	return proposals.Facts(answer, in.From.Owner, known, p.Redactor().Text), nil
}

// hasUntrusted reports whether strangers may have written some of the text that the agent read in a part of the log, or
// before it, as far as a summary says so.
func hasUntrusted(records []journal.Record, covers int64) bool {
	words := slices.DeleteFunc(slices.Clone(records), func(r journal.Record) bool { return r.Kind == sessions.KindSummary })
	return slices.ContainsFunc(records, func(r journal.Record) bool {
		s, is := r.Data.(sessions.Summary)
		return is && s.Untrusted
	}) || transcript.Untrusted(words, "", covers+1)
}
