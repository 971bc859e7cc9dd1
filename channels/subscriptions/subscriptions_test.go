package subscriptions_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/channels/sqlbook"
	"parley/channels/subscriptions"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	kept "parley/sessions/subscriptions"
)

const secret = "a-secret-of-the-subscriber"

// A stage is a bus, a store and a book, of one home or of a fleet.
type stage struct {
	t     *testing.T
	bus   subscriptions.Bus
	store *sqlstore.Store
	book  *sqlbook.Book
}

// onBoth runs a test on a home, and on the servers of a fleet.
func onBoth(t *testing.T, test func(t *testing.T, s *stage)) {
	t.Run("home", func(t *testing.T) {
		h := hometest.Open(t, t.TempDir())
		h.Book.RecordEvents(h.Store.Subscriptions())
		test(t, &stage{t, h.Bus, h.Store, h.Book})
	})
	t.Run("fleet", func(t *testing.T) {
		url := os.Getenv("PARLEY_TEST_REDIS_URL")
		if url == "" {
			t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
		}
		place := sqldbtest.New(t)
		b, err := redisbus.Open(t.Context(), redisbus.Config{URL: url, Prefix: "subscriptions-" + rand.Text()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		store, err := sqlstore.Open(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		book, err := sqlbook.Open(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { book.Close() })
		book.RecordEvents(store.Subscriptions())
		test(t, &stage{t, b, store, book})
	})
}

// poster makes what a process posts with.
func (s *stage) poster(all ...kept.Subscription) *subscriptions.Poster {
	p := subscriptions.New(subscriptions.Config{
		Table: s.store.Subscriptions(), Bus: s.bus, Ask: s.book.LookupAsk, Notes: s.book, Agent: "Parley/test", Log: slog.New(slog.DiscardHandler),
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") },
	})
	p.Set(all)
	return p
}

// run runs a poster until end is called.
func (s *stage) run(p *subscriptions.Poster) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			s.t.Error(err)
		}
	}()
	end = sync.OnceFunc(func() { cancel(); <-done })
	s.t.Cleanup(end)
	return end
}

// up records that a channel is up, under a name that tells the event from others.
func (s *stage) up(names ...string) {
	s.t.Helper()
	for _, name := range names {
		err := s.store.Subscriptions().Add(s.t.Context(), kept.Event{ID: kept.NewID(name), Type: kept.ChannelUp, At: time.Now(), Data: kept.Data{ID: name, State: "up"}})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// A posted is what a subscriber got.
type posted struct {
	ID, Type  string
	Timestamp time.Time
	Data      kept.Data
}

// A subscriber is a program that events are posted to.
type subscriber struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	got    []posted
	answer func(n int, w http.ResponseWriter) // answers the n-th request; nil accepts all
}

func newSubscriber(t *testing.T, answer func(n int, w http.ResponseWriter)) *subscriber {
	s := &subscriber{t: t, answer: answer}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// ServeHTTP checks the signature as docs/http.md says.
func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut off
	}
	sign := func(text string) []byte {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	if want := "v1," + base64.StdEncoding.EncodeToString(sign(id+"."+stamp+"."+string(body))); r.Header.Get("webhook-signature") != want {
		s.t.Errorf("the signature is %q, want %q", r.Header.Get("webhook-signature"), want)
	}
	if want := "sha256=" + hex.EncodeToString(sign(string(body))); r.Header.Get("X-Hub-Signature-256") != want {
		s.t.Errorf("the other signature is %q, want %q", r.Header.Get("X-Hub-Signature-256"), want)
	}
	var one posted
	if err := json.Unmarshal(body, &one); err != nil || one.ID != id || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") != "Parley/test" {
		s.t.Errorf("%s %v %s: %v", r.Method, r.Header, body, err)
	}
	s.mu.Lock()
	s.got = append(s.got, one)
	n := len(s.got)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(n, w)
	}
}

// subscription returns the subscription through which the subscriber is told of these events.
func (s *subscriber) subscription(name, events string) kept.Subscription {
	return kept.Subscription{Name: name, URL: s.server.URL + "/hook?key=abc", Secret: secret, Events: events}
}

func (s *subscriber) all() []posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// wait waits until the subscriber got n requests, and returns them.
func (s *subscriber) wait(n int) []posted {
	s.t.Helper()
	waitFor(s.t, fmt.Sprintf("%d requests", n), func() bool { return len(s.all()) >= n })
	return s.all()
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// waitEmpty waits until nothing waits for a subscription.
func (s *stage) waitEmpty(name string) {
	s.t.Helper()
	waitFor(s.t, "an empty queue", func() bool {
		state, err := s.store.Subscriptions().State(s.t.Context(), name)
		return err == nil && state.Waiting == 0
	})
}

func subjects(all []posted) (names []string) {
	for _, p := range all {
		names = append(names, p.Data.ID)
	}
	return names
}

// Events are posted signed, in their order, as soon as they are recorded; those from before Run, too.
func TestEventsArriveInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		to := newSubscriber(t, nil)
		p := s.poster(to.subscription("a", "channel.*"))
		s.up("1", "2", "3")
		s.run(p)
		to.wait(3)
		s.up("4", "5")
		s.waitEmpty("a")
		got := to.all()
		if !slices.Equal(subjects(got), []string{"1", "2", "3", "4", "5"}) {
			t.Errorf("arrived are %v", subjects(got))
		}
		if p := got[0]; p.Type != "channel.up" || p.Data.State != "up" || time.Since(p.Timestamp) > time.Minute {
			t.Errorf("the first is %+v", p)
		}
	})
}

// What is not accepted, for whatever reason, is posted again under the same id before all that follows.
func TestARefusedEventComesAgainFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		to := newSubscriber(t, func(n int, w http.ResponseWriter) {
			switch n {
			case 1:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusNotFound)
			case 2:
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
		})
		s.run(s.poster(to.subscription("a", "channel.*")))
		s.up("1", "2")
		to.wait(2)
		waitFor(t, "the problem", func() bool {
			state, err := s.store.Subscriptions().State(t.Context(), "a")
			return err == nil && state.Tries == 2 && !state.Failing.IsZero() && strings.HasPrefix(state.Problem, "HTTP 307") && state.RetryAt.After(time.Now())
		})
		got := to.wait(4)
		s.waitEmpty("a")
		if !slices.Equal(subjects(got), []string{"1", "1", "1", "2"}) || got[0].ID != got[1].ID || got[0].ID != got[2].ID {
			t.Errorf("arrived are %+v", got)
		}
		if state, err := s.store.Subscriptions().State(t.Context(), "a"); err != nil || state.Tries != 0 || !state.Failing.IsZero() {
			t.Errorf("the state is %+v, %v", state, err)
		}
	})
}

// While one subscriber does not answer, others get theirs, and nobody who records events waits.
func TestASlowSubscriberDelaysNobody(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		answer := make(chan struct{})
		slow := newSubscriber(t, func(int, http.ResponseWriter) { <-answer })
		defer sync.OnceFunc(func() { close(answer) })()
		quick := newSubscriber(t, nil)
		s.run(s.poster(slow.subscription("slow", "channel.*"), quick.subscription("quick", "channel.*")))
		s.up("1", "2", "3")
		quick.wait(3)
		s.waitEmpty("quick")
		if n := len(slow.wait(1)); n != 1 {
			t.Errorf("before it has answered the slow one got %d", n)
		}
	})
}

// Another process continues where the one before has stopped, and only one posts at a time.
func TestAnotherProcessContinues(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		to := newSubscriber(t, nil)
		first := s.run(s.poster(to.subscription("a", "channel.*")))
		s.up("1")
		s.waitEmpty("a")
		s.run(s.poster(to.subscription("a", "channel.*")))
		s.up("2")
		s.waitEmpty("a")
		first()
		s.up("3")
		s.waitEmpty("a")
		if got := subjects(to.all()); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Errorf("arrived are %v", got)
		}
	})
}

// A subscription that is changed goes to its new place at once, and one that is removed ends.
func TestSubscriptionsAreChanged(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		dead := newSubscriber(t, func(_ int, w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		to := newSubscriber(t, nil)
		p := s.poster(dead.subscription("a", "channel.*"))
		s.run(p)
		s.up("1", "2")
		waitFor(t, "the long wait", func() bool {
			state, err := s.store.Subscriptions().State(t.Context(), "a")
			return err == nil && time.Until(state.RetryAt) > 59*time.Minute
		})
		p.Set([]kept.Subscription{to.subscription("a", "channel.*")})
		to.wait(2)
		s.waitEmpty("a")
		p.Set(nil)
		s.up("nobody wants it")
		p.Set([]kept.Subscription{to.subscription("a", "channel.*")})
		s.up("3")
		if got := subjects(to.wait(3)); !slices.Equal(got, []string{"1", "2", "3"}) || len(dead.all()) != 1 {
			t.Errorf("arrived are %v, and before %v", got, subjects(dead.all()))
		}
	})
}

// Texts come only where they are asked for, without secrets.
func TestTexts(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		const texts = "turn.ended message.* ask.* tool.*"
		plain, all := newSubscriber(t, nil), newSubscriber(t, nil)
		with := all.subscription("all", texts)
		with.Text = true
		s.run(s.poster(plain.subscription("plain", texts), with))
		l, err := s.store.Open(t.Context(), "main:telegram:1", 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []struct {
			kind sessions.Kind
			data any
		}{
			{sessions.KindUser, sessions.User{Text: "the password is hunter2"}}, {sessions.KindToolUse, sessions.ToolUse{Name: "shell", Args: []byte(`{}`)}},
			{sessions.KindToolResult, sessions.ToolResult{Content: []byte(`"hunter2"`)}},
			{sessions.KindTurnDone, sessions.TurnDone{State: "done", Outbound: []sessions.Reply{{Text: strings.Repeat("é", 40_000)}}}},
		} {
			e, err := sessions.NewEntry("t1", one.kind, one.data)
			if err != nil {
				t.Fatal(err)
			}
			if e.Call = "c1"; one.kind == sessions.KindUser {
				e.Cause, e.Person = "m1", "telegram:1"
			}
			if err := l.Append(t.Context(), l.Next(), e); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		for _, kind := range []string{bus.AskQuestion, bus.AskApproval} {
			ask := bus.Ask{ID: kind, Kind: kind, Session: "main:telegram:1", Turn: "t1", Call: "c1", Tool: "shell", Question: "Which hunter2?", Shown: "rm hunter2", Made: now, Expires: now.Add(time.Hour)}
			if kind == bus.AskApproval {
				ask.Question = ""
			}
			if err := s.book.OpenAsk(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			answer := bus.Answer{Text: bus.Deny, Reason: "no", By: bus.Person{ID: "telegram:1"}, Cause: "m2"}
			for range 2 {
				if _, _, err := s.book.EndAsk(t.Context(), kind, bus.AskAnswered, answer); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.waitEmpty("plain")
		s.waitEmpty("all")
		want := [][4]string{
			{"message.received", "the password is [redacted]", "", ""}, {"tool.completed", "", "done", "shell"}, {"turn.ended", strings.Repeat("é", 32<<10), "done", ""},
			{"ask.opened", "Which [redacted]?", "open", "shell"}, {"ask.decided", "deny", "answered", "shell"}, {"ask.opened", "rm [redacted]", "open", "shell"}, {"ask.decided", "no", "answered", "shell"},
		}
		for i, p := range all.all() {
			d := p.Data
			if got := [4]string{p.Type, d.Text, d.State, d.Tool}; got != want[i] || d.Cut != (p.Type == "turn.ended") {
				t.Errorf("event %d is %+v", i, p)
			}
		}
		got := plain.all()
		if len(got) != len(want) || got[6].Data.Code != bus.Deny || got[4].Data.Code != "" {
			t.Errorf("without texts there are %+v", got)
		}
		for _, p := range got {
			if p.Data.Text != "" {
				t.Errorf("a text is in %+v", p)
			}
		}
	})
}

// Each new dead letter is told, whoever dies after it was buried; those from before the subscription are not.
func TestDeadLettersAreTold(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		b := s.bus.(bus.Bus)
		bury := func(ids ...string) {
			t.Helper()
			for _, id := range ids {
				if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: "main:telegram:" + id, Body: []byte(id)}); err != nil {
					t.Fatal(err)
				}
			}
			for range ids {
				l, err := b.Claim(t.Context(), bus.InboundTopic)
				if err != nil {
					t.Fatal(err)
				}
				mail, err := l.Mail(t.Context(), 0)
				if err == nil {
					err = l.Settle(t.Context(), bus.End{Dead: mail[0].Seq, Reason: "a test"})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		to := newSubscriber(t, nil)
		bury("old")
		end := s.run(s.poster(to.subscription("a", "dead_letter.*")))
		waitFor(t, "the beginning", func() bool {
			n, err := s.book.Noted(t.Context(), "dead_letters_recorded", "since")
			return err == nil && n.Value != ""
		})
		bury("1")
		to.wait(1)
		end()
		bury("2", "3")
		s.run(s.poster(to.subscription("a", "dead_letter.*")))
		got := to.wait(3)
		slices.SortFunc(got[1:], func(a, b posted) int { return strings.Compare(a.Data.ID, b.Data.ID) })
		if !slices.Equal(subjects(got), []string{"1", "2", "3"}) || got[0].Data.Session != "main:telegram:1" || got[0].Data.Topic != "inbound" {
			t.Errorf("arrived are %+v", got)
		}
	})
}
