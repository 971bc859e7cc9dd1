package channelstest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

// newProposal returns a proposal to the person c:1, from a private chat of theirs.
func newProposal(text string) channels.Proposal {
	return channels.Proposal{
		Scope: channels.ScopePerson, Owner: "c:1", Person: "c:1", Text: text, Session: proposingSession, Cause: "m1",
		At: bus.Address{Channel: "c", Chat: "1", Thread: "x"}, Expires: time.Now().Add(time.Hour).Truncate(time.Millisecond),
	}
}

const proposingSession = "main:c:1"

// mustPropose stores proposals up to an entry of proposingSession.
func mustPropose(t *testing.T, b Book, covers int64, all ...channels.Proposal) {
	t.Helper()
	requireNoError(t, b.StoreProposals(t.Context(), proposingSession, covers, all))
}

// wantProposals checks the texts and states of the proposals to a person, and returns them.
func wantProposals(t *testing.T, b Book, person string, want ...string) []channels.Proposal {
	t.Helper()
	all, err := b.ProposalsTo(t.Context(), person)
	requireNoError(t, err)
	var got []string
	for _, p := range all {
		got = append(got, p.Text+" "+p.State)
	}
	if !slices.Equal(got, want) {
		t.Errorf("to %s is proposed %q, want %q", person, got, want)
	}
	return all
}

// wantLastProposed checks up to which entry a model was asked, and whether the person was told.
func wantLastProposed(t *testing.T, b Book, covers int64, told bool) {
	t.Helper()
	if n, was, err := b.LastProposed(t.Context(), proposingSession); err != nil || n != covers || was != told {
		t.Errorf("proposed up to %d, told %v, %v; want %d, %v", n, was, err, covers, told)
	}
}

// decide decides about a proposal.
func decide(t *testing.T, b Book, p channels.Proposal, by string, keep bool) (channels.Proposal, error) {
	t.Helper()
	return b.DecideProposal(t.Context(), channels.ProposalDecision{ID: p.ID, By: by, Keep: keep, Append: func(old, text string) (string, error) {
		return old + "[" + text + "]", nil
	}})
}

// testProposals has subtests that build on each other.
func testProposals(t *testing.T, s suite) {
	b := s.open(t)
	t.Run("a part of the log is looked through once", func(t *testing.T) { testProposeOnce(t, b) })
	b = s.reopen(t, b)
	t.Run("proposals outlive the process", func(t *testing.T) { testProposalsAreKept(t, b) })
	t.Run("the first decision counts", func(t *testing.T) { testDecisions(t, b) })
	t.Run("others decide nothing", func(t *testing.T) { testOthersDecisions(t, b) })
	t.Run("an agent's memory is the owner's", func(t *testing.T) { testAgentsProposals(t, b) })
	t.Run("what has expired is gone", func(t *testing.T) { testExpiredProposals(t, b) })
	t.Run("forgetting takes proposals along", func(t *testing.T) { testForgetProposals(t, b) })
}

func testProposeOnce(t *testing.T, b Book) {
	wantLastProposed(t, b, 0, false)
	mustPropose(t, b, 10)
	wantLastProposed(t, b, 10, true) // there is nothing to tell
	mustPropose(t, b, 20, newProposal("likes tea"), newProposal("lives in\x00Ulm"))
	wantLastProposed(t, b, 20, false)
	mustPropose(t, b, 20, newProposal("of a repetition"))
	mustPropose(t, b, 19, newProposal("of an earlier part"))
	requireNoError(t, b.NoteProposalsTold(t.Context(), proposingSession, 19))
	wantLastProposed(t, b, 20, false)
	requireNoError(t, b.NoteProposalsTold(t.Context(), proposingSession, 20))
	wantLastProposed(t, b, 20, true)
	wantProposals(t, b, "c:2")
}

func testProposalsAreKept(t *testing.T, b Book) {
	wantLastProposed(t, b, 20, true)
	all := wantProposals(t, b, "c:1", "likes tea open", "lives in\x00Ulm open")
	of, err := b.ProposalsFrom(t.Context(), proposingSession, 20)
	requireNoError(t, err)
	want := newProposal("likes tea")
	if got := all[0]; len(of) != 2 || of[0] != got || got.ID == "" || got.ID == all[1].ID || got.At != want.At || got.Scope != want.Scope ||
		got.Owner != want.Owner || got.Cause != "m1" || got.Session != proposingSession || got.Covers != 20 || got.Made.IsZero() || time.Until(got.Expires) > time.Hour {
		t.Errorf("kept as %+v, and in its round as %+v", got, of)
	}
	if others, err := b.ProposalsFrom(t.Context(), proposingSession, 19); err != nil || len(others) > 0 {
		t.Errorf("of an earlier part: %+v, %v", others, err)
	}
	wantMemory(t, b, "c:1", "")
}

func testDecisions(t *testing.T, b Book) {
	all := wantProposals(t, b, "c:1", "likes tea open", "lives in\x00Ulm open")
	full := errors.New("full")
	if _, err := b.DecideProposal(t.Context(), channels.ProposalDecision{ID: all[0].ID, By: "c:1", Keep: true, Append: func(_, _ string) (string, error) { return "", full }}); !errors.Is(err, full) {
		t.Errorf("a memory that is full: %v", err)
	}
	for range 2 { // a press comes again
		for i, keep := range []bool{true, false} {
			if p, err := decide(t, b, all[i], "c:1", keep); err != nil || p.Text != all[i].Text || (p.State == channels.ProposalKept) != keep {
				t.Errorf("decided as %+v, %v", p, err)
			}
		}
	}
	if p, err := decide(t, b, all[1], "c:1", true); err != nil || p.State != channels.ProposalRefused {
		t.Errorf("what was refused is %+v, %v", p, err)
	}
	wantProposals(t, b, "c:1", "likes tea kept", "lives in\x00Ulm refused")
	wantMemory(t, b, "c:1", "[likes tea]")
}

func testOthersDecisions(t *testing.T, b Book) {
	mustPropose(t, b, 30, newProposal("is 30"))
	mine := wantProposals(t, b, "c:1", "likes tea kept", "lives in\x00Ulm refused", "is 30 open")[2]
	if p, err := decide(t, b, mine, "c:2", true); !errors.Is(err, channels.ErrNoProposal) {
		t.Errorf("another has decided: %+v, %v", p, err)
	}
	if _, err := decide(t, b, channels.Proposal{ID: "nosuch"}, "c:1", true); !errors.Is(err, channels.ErrNoProposal) {
		t.Errorf("about nothing: %v", err)
	}
	code, err := b.OfferLink(t.Context(), channels.LinkRequest{Person: "d:1", Chat: "d:D1", Cause: "l1"})
	requireNoError(t, err)
	_, err = b.Link(t.Context(), channels.Linking{Code: code, Person: "c:1", Chat: "c:1", Cause: "l2"})
	requireNoError(t, err)
	wantProposals(t, b, "d:1", "likes tea kept", "lives in\x00Ulm refused", "is 30 open")
	if p, err := decide(t, b, mine, "d:1", true); err != nil || p.State != channels.ProposalKept {
		t.Errorf("the same human elsewhere: %+v, %v", p, err)
	}
	wantMemory(t, b, "d:1", "[likes tea][is 30]")
}

func testAgentsProposals(t *testing.T, b Book) {
	p := newProposal("deploys are on Mondays")
	p.Scope, p.Owner = channels.ScopeAgent, "ops"
	mustPropose(t, b, 40, p)
	all, err := b.ProposalsFrom(t.Context(), proposingSession, 40)
	requireNoError(t, err)
	if p, err := decide(t, b, all[0], "c:1", true); !errors.Is(err, channels.ErrNoProposal) {
		t.Errorf("who owns nothing has decided: %+v, %v", p, err)
	}
	if _, err := b.DecideProposal(t.Context(), channels.ProposalDecision{ID: all[0].ID, By: "c:1", Owner: true, Keep: true, Append: func(old, text string) (string, error) { return old + text, nil }}); err != nil {
		t.Error(err)
	}
	if content, untrusted, err := b.Memory(t.Context(), channels.ScopeAgent, "ops"); err != nil || untrusted || content != "deploys are on Mondays" {
		t.Errorf("the agent remembers %q, %v, %v", content, untrusted, err)
	}
}

func testExpiredProposals(t *testing.T, b Book) {
	old := newProposal("is late")
	old.Expires = time.Now().Add(-time.Second)
	mustPropose(t, b, 50, old)
	all, err := b.ProposalsFrom(t.Context(), proposingSession, 50)
	requireNoError(t, err)
	if p, err := decide(t, b, all[0], "c:1", true); !errors.Is(err, channels.ErrNoProposal) {
		t.Errorf("what has expired is %+v, %v", p, err)
	}
	mustPropose(t, b, 60)
	if all, err := b.ProposalsFrom(t.Context(), proposingSession, 50); err != nil || len(all) > 0 {
		t.Errorf("what has expired is still there: %+v, %v", all, err)
	}
}

func testForgetProposals(t *testing.T, b Book) {
	other := newProposal("another's")
	other.Owner, other.Person = "c:2", "c:2"
	mustPropose(t, b, 70, newProposal("new"), other)
	requireNoError(t, b.Forget(t.Context(), channels.ScopePerson, "d:1"))
	wantProposals(t, b, "c:1", "deploys are on Mondays kept")
	wantProposals(t, b, "c:2", "another's open")
	requireNoError(t, b.Forget(t.Context(), channels.ScopeAgent, "ops"))
	wantProposals(t, b, "c:1")
	mustPropose(t, b, 80, newProposal("newer"))
	requireNoError(t, b.ForgetProposals(t.Context(), "main:c:2"))
	wantProposals(t, b, "c:1", "newer open")
	requireNoError(t, b.ForgetProposals(t.Context(), proposingSession))
	wantProposals(t, b, "c:1")
	wantLastProposed(t, b, 0, false)
}

// testProposalRace checks that only one of several concurrent decisions, made in several processes, succeeds.
func testProposalRace(t *testing.T, s suite) {
	b, other := s.open(t), s.open(t)
	mustPropose(t, b, 10, newProposal("likes tea"))
	p := wantProposals(t, b, "c:1", "likes tea open")[0]
	var wg sync.WaitGroup
	states := make([]string, 8)
	for i := range states {
		wg.Go(func() {
			end, err := decide(t, []Book{b, other}[i%2], p, "c:1", i%3 > 0)
			if err != nil {
				t.Error(err)
			}
			states[i] = end.State
		})
	}
	wg.Wait()
	if slices.ContainsFunc(states, func(state string) bool { return state != states[0] }) {
		t.Errorf("it is %q", states)
	}
	wantMemory(t, b, "c:1", map[string]string{channels.ProposalKept: "[likes tea]"}[states[0]])
}
