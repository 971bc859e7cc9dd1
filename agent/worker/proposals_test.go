package worker_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/agent/proposals"
	"parley/bus"
	"parley/channels"
	"parley/channels/people"
	"parley/channels/sqlbook"
	"parley/sessions"
	"parley/tools"
	"parley/tools/redact"
)

// A testProposals is a proposals.Store over a real log and a real book, like the server's.
type testProposals struct {
	book *sqlbook.Book
	logs sessions.Reader
	tell *people.Commands
	// afterPropose, if set, is called after proposals were stored.
	afterPropose func()
}

func newProposing(book *sqlbook.Book, logs sessions.Reader, b bus.Bus) *testProposals {
	return &testProposals{book: book, logs: logs, tell: &people.Commands{Book: book, Bus: b, Prefix: func(string) string { return "/" }}}
}

func (s *testProposals) May(context.Context) (bool, error) { return true, nil }

func (s *testProposals) Last(ctx context.Context, session string) (int64, bool, error) {
	return s.book.LastProposed(ctx, session)
}

func (s *testProposals) Past(ctx context.Context, session string, after, upTo int64) (entries []sessions.Entry, whole bool, err error) {
	from := max(after, upTo-proposals.MostEntries) + 1
	for e, err := range s.logs.Read(ctx, session, from) {
		if errors.Is(err, sessions.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		if e.N <= upTo {
			entries = append(entries, e)
		}
	}
	return entries, from == after+1, nil
}

func (s *testProposals) Known(ctx context.Context, agent, person string) (proposals.Known, error) {
	ofAgent, ofPerson, err := s.book.MemoriesFor(ctx, agent, person)
	known := proposals.Known{OfPerson: ofPerson.Content, OfAgent: ofAgent.Content, Untrusted: ofAgent.Untrusted || ofPerson.Untrusted}
	all, listed := s.book.ProposalsTo(ctx, person)
	for _, p := range all {
		known.Proposed = append(known.Proposed, p.Text)
	}
	return known, errors.Join(err, listed)
}

func (s *testProposals) Propose(ctx context.Context, r proposals.Round) error {
	var all []channels.Proposal
	for _, f := range r.Facts {
		p := channels.Proposal{Scope: channels.ScopePerson, Owner: r.Person, Text: f.Text, Person: r.Person, At: r.At, Cause: r.Cause, Expires: time.Now().Add(time.Hour)}
		if f.OfAgent {
			p.Scope, p.Owner = channels.ScopeAgent, r.Agent
		}
		all = append(all, p)
	}
	err := s.book.StoreProposals(ctx, r.Session, r.Covers, all)
	if s.afterPropose != nil {
		s.afterPropose()
	}
	return err
}

func (s *testProposals) Forget(ctx context.Context, session string) error {
	return s.book.ForgetProposals(ctx, session)
}

func (s *testProposals) Tell(ctx context.Context, session string, covers int64) error {
	if err := s.tell.Propose(ctx, session, covers); err != nil {
		return err
	}
	return s.book.NoteProposalsTold(ctx, session, covers)
}

// isFinding reports whether a request asks the model for facts to remember.
func isFinding(r llm.Request) bool {
	return strings.HasPrefix(r.System, "You look for what is worth remembering")
}

// A rememberer is a bench whose agent proposes what to remember.
type rememberer struct {
	*bench
	store *testProposals
	asked atomic.Int64 // how often for facts
	next  int
}

// newRememberer returns a rememberer whose model uses answer if it is asked for facts.
func newRememberer(t *testing.T, answer model) *rememberer {
	t.Helper()
	r := &rememberer{}
	r.bench = newBench(t, func(ctx context.Context, q llm.Request) (llm.Answer, error) {
		if isFinding(q) {
			r.asked.Add(1)
			return answer(ctx, q)
		}
		if said := newestUserText(q); strings.HasSuffix(said, "look it up") && len(toolResults(q)) == 0 {
			return callsAnswer("lookup {}"), nil
		}
		return textAnswer("I heard you"), nil
	}, tools.New(tools.Spec{Name: "lookup", Description: "x", Effect: tools.Pure}, func(context.Context, tools.Call, struct{}) (any, error) {
		return tools.Untrusted{Value: "of a stranger"}, nil
	}))
	book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	r.store = newProposing(book, r.bench.store, r.bus)
	r.agent.Proposals = r.store
	return r
}

// says says something in a chat and waits for the answer. Chats of numbers below 100 are private.
func (r *rememberer) says(chat int, said string) {
	r.t.Helper()
	r.next++
	in := bus.Inbound{ID: fmt.Sprint("s", r.next), Kind: bus.Said, From: bus.Person{ID: fmt.Sprint("test:", chat), Owner: chat == 1}, At: bus.Address{Channel: "test", Chat: fmt.Sprint(chat)},
		Text: said, Group: chat >= 100, Private: chat < 100, Mentioned: true}
	if name, ok := strings.CutPrefix(said, "/"); ok {
		in.Kind, in.Text = bus.Command, name
	}
	r.publish(in)
	r.wantReply(in.ID, "")
}

// converses has a long conversation in a chat, and then begins a new one.
func (r *rememberer) converses(chat int, said ...string) {
	r.t.Helper()
	for i := range 5 {
		r.says(chat, fmt.Sprint("words ", i))
	}
	for _, words := range said {
		r.says(chat, words)
	}
	r.says(chat, "/new")
}

// proposed waits until no work is left, and returns the texts and states of the proposals to a chat's person.
func (r *rememberer) proposed(chat int) string {
	r.t.Helper()
	r.settled()
	all, err := r.store.book.ProposalsTo(r.t.Context(), fmt.Sprint("test:", chat))
	if err != nil {
		r.t.Fatal(err)
	}
	var texts []string
	for _, p := range all {
		texts = append(texts, p.Scope+" "+p.Text)
	}
	return strings.Join(texts, "|")
}

// Facts worth remembering of a long conversation that has ended are proposed to the person once, and are in no memory
// yet. The cost counts for the person.
func TestWhatIsWorthRememberingIsProposed(t *testing.T) {
	var read atomic.Value
	r := newRememberer(t, func(_ context.Context, q llm.Request) (llm.Answer, error) {
		read.Store(q.Messages[0].Blocks[0].Text)
		return textAnswer("person: Likes tea.\nagent: Deploys are on Mondays."), nil
	})
	r.run()
	r.converses(1, "I like tea")
	if out := r.reply(); out.To.Chat != "1" || !strings.Contains(out.Text, "1. Likes tea.") || !strings.Contains(out.Text, "everybody: Deploys are on Mondays.") || len(out.Buttons) != 4 {
		t.Errorf("the person is told %+v", out)
	}
	if got := r.proposed(1); got != "person Likes tea.|agent Deploys are on Mondays." {
		t.Errorf("proposed is %q", got)
	}
	if got, _ := read.Load().(string); !strings.Contains(got, "<message>\nI like tea\n</message>") || !strings.Contains(got, "<past>\nI heard you\n</past>") {
		t.Errorf("the model reads %q", got)
	}
	for scope, owner := range map[string]string{channels.ScopePerson: "test:1", channels.ScopeAgent: "main"} {
		if content, _, err := r.store.book.Memory(t.Context(), scope, owner); err != nil || content != "" {
			t.Errorf("of %s is remembered %q, %v", owner, content, err)
		}
	}
	spent, err := r.bench.store.Spent(t.Context(), "test:1", time.Now())
	if err != nil || spent != 7*15 {
		t.Errorf("%d tokens are spent, %v: those of six answers and of one question are 105", spent, err)
	}
	if reserved, err := r.bench.store.Reserved(t.Context(), "test:1", time.Now()); err != nil || reserved != 0 {
		t.Errorf("%d tokens are still set aside, %v", reserved, err)
	}
	r.says(1, "hello again")
	r.converses(1)
	if got := r.proposed(1); got != "person Likes tea.|agent Deploys are on Mondays." || r.asked.Load() != 2 {
		t.Errorf("after %d questions, proposed is %q", r.asked.Load(), got)
	}
	if d, err := r.bus.Depth(t.Context(), bus.OutboundTopic("test")); err != nil || d.Waiting > 0 {
		t.Errorf("more is said: %+v, %v", d, err)
	}
	// Who owns nothing is not told what would be for all.
	r.converses(2)
	if out := r.reply(); out.To.Chat != "2" || strings.Contains(out.Text, "Mondays") {
		t.Errorf("the person is told %+v", out)
	}
}

// A summary leaves a conversation behind, too.
func TestASummaryLeavesSomethingToPropose(t *testing.T) {
	r := newRememberer(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("person: Likes tea."), nil })
	r.agent.ContextTokens = 4000
	r.run()
	for range 7 {
		r.says(2, strings.Repeat("many words ", 200))
	}
	for range 3 { // what is covered grows with each summary
		if r.settled(); r.asked.Load() > 0 {
			break
		}
		r.says(2, strings.Repeat("many words ", 200))
	}
	if got := r.proposed(2); got != "person Likes tea." {
		t.Errorf("proposed is %q, after %d questions", got, r.asked.Load())
	}
}

// Nothing is proposed if proposals are off, in a group, or after a short conversation.
func TestWhereNothingIsProposed(t *testing.T) {
	for name, c := range map[string]struct {
		off, short bool
		chat       int
	}{"off": {off: true, chat: 2}, "in a group": {chat: 100}, "of a short conversation": {short: true, chat: 2}} {
		t.Run(name, func(t *testing.T) {
			r := newRememberer(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("person: Likes tea."), nil })
			if c.off {
				r.agent.Proposals = nil
			}
			r.run()
			if c.short {
				r.says(c.chat, "hello")
				r.says(c.chat, "/new")
			} else {
				r.converses(c.chat)
			}
			if got := r.proposed(c.chat); got != "" || r.asked.Load() > 0 {
				t.Errorf("proposed is %q, after %d questions", got, r.asked.Load())
			}
		})
	}
}

// If the budget is used up, the answer still comes, and the proposal later: the model is asked once there is budget
// again.
func TestABudgetIsNotExceededForProposals(t *testing.T) {
	r := newRememberer(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("person: Likes tea."), nil })
	r.run()
	for i := range 5 {
		r.says(2, fmt.Sprint("words ", i))
	}
	r.settled()
	r.limit.TokensDay = 80 // 75 are used
	r.says(2, "/new")
	if got := r.proposed(2); got != "" || r.asked.Load() > 0 {
		t.Errorf("proposed is %q, after %d questions", got, r.asked.Load())
	}
	r.wantNoneDead()
	r.limit.TokensDay = 1_000_000
	r.says(2, "hello")
	r.reply()
	if got := r.proposed(2); got != "person Likes tea." || r.asked.Load() != 1 {
		t.Errorf("proposed is %q, after %d questions", got, r.asked.Load())
	}
}

// If the model fails, or its answer contains no facts, the person's answer still comes. It is asked again after the
// next message only if it has failed.
func TestAFailedSearchForFactsCostsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer model
		again  int64
	}{
		"it fails": {func(context.Context, llm.Request) (llm.Answer, error) {
			return llm.Answer{}, &llm.Error{Fault: llm.Refused}
		}, 2},
		"there is none":   {func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("none"), nil }, 1},
		"it calls a tool": {func(context.Context, llm.Request) (llm.Answer, error) { return callsAnswer(`lookup {}`), nil }, 1},
		"it has a secret": {func(context.Context, llm.Request) (llm.Answer, error) {
			return textAnswer("person: Says swordfish."), nil
		}, 1},
		"it says too much": {func(context.Context, llm.Request) (llm.Answer, error) {
			return textAnswer("I think that tea is fine."), nil
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRememberer(t, c.answer)
			hide, err := redact.New([]string{"swordfish"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.agent.Redact = hide
			r.run()
			r.converses(2)
			r.settled()
			r.says(2, "hello")
			if got := r.proposed(2); got != "" || r.asked.Load() != c.again {
				t.Errorf("proposed is %q, after %d questions", got, r.asked.Load())
			}
			r.wantNoneDead()
		})
	}
}

// If a stranger may have written some of a conversation, the model reads only what the person said.
func TestNothingIsProposedOfWhatStrangersWrote(t *testing.T) {
	var read atomic.Value
	r := newRememberer(t, func(_ context.Context, q llm.Request) (llm.Answer, error) {
		read.Store(q.Messages[0].Blocks[0].Text)
		return textAnswer("none"), nil
	})
	r.run()
	r.converses(2, "look it up")
	r.settled()
	if got, _ := read.Load().(string); !strings.Contains(got, "look it up") || strings.Contains(got, "I heard you") || strings.Contains(got, "stranger") {
		t.Errorf("the model reads %q", got)
	}
}

// Nobody waits for proposals: the next message ends the model's request, which is made again after the answer.
func TestProposalsDelayNothing(t *testing.T) {
	asking := make(chan struct{}, 9)
	var r *rememberer
	r = newRememberer(t, func(ctx context.Context, _ llm.Request) (llm.Answer, error) {
		asking <- struct{}{}
		if r.asked.Load() == 1 {
			<-ctx.Done()
			return llm.Answer{}, ctx.Err()
		}
		return textAnswer("person: Likes tea."), nil
	})
	r.run()
	r.converses(2)
	<-asking
	r.says(2, "hello")
	<-asking
	if out := r.reply(); !strings.Contains(out.Text, "Likes tea.") {
		t.Errorf("the person is told %q", out.Text)
	}
}

// If a person is forgotten while a model reads their words, nothing is proposed, whenever that happens.
func TestAForgottenPersonGetsNoProposal(t *testing.T) {
	for _, when := range []string{"while the model is asked", "as it is stored"} {
		t.Run(when, func(t *testing.T) {
			var r *rememberer
			forget := func() {
				if _, err := r.bench.store.ErasePerson(context.Background(), "test:2"); err != nil {
					t.Error(err)
				}
				if _, err := r.store.book.Erase(context.Background(), sqlbook.Erasure{Person: "test:2", Sessions: []string{"main:test:2"}}); err != nil {
					t.Error(err)
				}
			}
			r = newRememberer(t, func(context.Context, llm.Request) (llm.Answer, error) {
				if when == "while the model is asked" {
					forget()
				}
				return textAnswer("person: Likes tea."), nil
			})
			r.point = func(name string) {
				if name == "propose:found" && when == "as it is stored" {
					forget()
				}
			}
			r.run()
			r.converses(2)
			if got := r.proposed(2); got != "" || r.asked.Load() != 1 {
				t.Errorf("proposed is %q, after %d questions", got, r.asked.Load())
			}
			r.wantNoneDead()
			if d, err := r.bus.Depth(t.Context(), bus.OutboundTopic("test")); err != nil || d.Waiting > 0 {
				t.Errorf("more is said: %+v, %v", d, err)
			}
		})
	}
}
