package subscriptions_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/channels/subscriptions"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	kept "parley/sessions/subscriptions"
)

const secret = "a-secret-of-the-subscriber"

// A world is a bus, a store and a book, of one home or of a fleet.
type world struct {
	t     *testing.T
	bus   subscriptions.Bus
	store *sqlstore.Store
	book  *sqlbook.Book
}

// onHomeAndFleet runs a test on a home, and on the servers of a fleet.
func onHomeAndFleet(t *testing.T, test func(t *testing.T, s *world)) {
	t.Run("home", func(t *testing.T) {
		h := hometest.Open(t, t.TempDir())
		h.Book.RecordEvents(h.Store.Subscriptions())
		test(t, &world{t, h.Bus, h.Store, h.Book})
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
		test(t, &world{t, b, store, book})
	})
}

// newPoster makes a process's Poster.
func (s *world) newPoster(all ...kept.Subscription) *subscriptions.Poster {
	return s.newPosterWithPoint(nil, all...)
}

// newPosterWithPoint makes a Poster that calls a function where a test may kill the process.
func (s *world) newPosterWithPoint(point func(string), all ...kept.Subscription) *subscriptions.Poster {
	p := subscriptions.New(subscriptions.Config{
		Table: s.store.Subscriptions(), Bus: s.bus, Ask: s.book.LookupAsk, Notes: s.book, Agent: "Parley/test", Point: point, Log: slog.New(slog.DiscardHandler),
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") },
	})
	p.Set(all)
	return p
}

// run runs a poster until end is called.
func (s *world) run(p *subscriptions.Poster) (end func()) {
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

// recordChannelUp records that channels are up, under names that distinguish the events.
func (s *world) recordChannelUp(names ...string) {
	s.t.Helper()
	for _, name := range names {
		err := s.store.Subscriptions().Add(s.t.Context(), kept.Event{ID: kept.NewID(name), Type: kept.ChannelUp, At: time.Now(), Data: kept.Data{ID: name, State: "up"}})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// A receivedEvent is an event as a subscriber received it.
type receivedEvent struct {
	ID, Type  string
	Timestamp time.Time
	Data      kept.Data
}

// A subscriber is a program that events are posted to.
type subscriber struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	received []receivedEvent
	answer   func(n int, w http.ResponseWriter) // answers the n-th request; nil accepts all
}

func newSubscriber(t *testing.T, answer func(n int, w http.ResponseWriter)) *subscriber {
	s := &subscriber{t: t, answer: answer}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// ServeHTTP checks the signature in the way that docs/http.md describes.
func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the request was cut off
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
	var one receivedEvent
	if err := json.Unmarshal(body, &one); err != nil || one.ID != id || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") != "Parley/test" {
		s.t.Errorf("%s %v %s: %v", r.Method, r.Header, body, err)
	}
	s.mu.Lock()
	s.received = append(s.received, one)
	n := len(s.received)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(n, w)
	}
}

// subscription returns a subscription of these events for the subscriber.
func (s *subscriber) subscription(name, events string) kept.Subscription {
	return kept.Subscription{Name: name, URL: s.server.URL + "/hook?key=abc", Secret: secret, Events: events}
}

func (s *subscriber) all() []receivedEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// wait waits until the subscriber has received n requests, and returns them.
func (s *subscriber) wait(n int) []receivedEvent {
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

// waitEmpty waits until a subscription's queue is empty.
func (s *world) waitEmpty(name string) {
	s.t.Helper()
	waitFor(s.t, "an empty queue", func() bool {
		state, err := s.store.Subscriptions().State(s.t.Context(), name)
		return err == nil && state.Waiting == 0
	})
}

func subjects(all []receivedEvent) (names []string) {
	for _, p := range all {
		names = append(names, p.Data.ID)
	}
	return names
}

// Events are posted with a signature, in order, as soon as they are recorded, including those from before Run.
func TestEventsArriveInOrder(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		p := s.newPoster(to.subscription("a", "channel.*"))
		s.recordChannelUp("1", "2", "3")
		s.run(p)
		to.wait(3)
		s.recordChannelUp("4", "5")
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

// An event that is not accepted, for whatever reason, is posted again with the same id before all later ones.
func TestARefusedEventIsRetriedFirst(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
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
		s.run(s.newPoster(to.subscription("a", "channel.*")))
		s.recordChannelUp("1", "2")
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

// While one subscriber does not answer, other subscribers get their events, and recording an event does not
// wait.
func TestASlowSubscriberDelaysNobody(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		answer := make(chan struct{})
		slow := newSubscriber(t, func(int, http.ResponseWriter) { <-answer })
		defer sync.OnceFunc(func() { close(answer) })()
		quick := newSubscriber(t, nil)
		s.run(s.newPoster(slow.subscription("slow", "channel.*"), quick.subscription("quick", "channel.*")))
		s.recordChannelUp("1", "2", "3")
		quick.wait(3)
		s.waitEmpty("quick")
		if n := len(slow.wait(1)); n != 1 {
			t.Errorf("before it has answered the slow one got %d", n)
		}
	})
}

// Another process continues where the one before has stopped, and only one process posts at a time.
func TestAnotherProcessContinues(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		first := s.run(s.newPoster(to.subscription("a", "channel.*")))
		s.recordChannelUp("1")
		s.waitEmpty("a")
		s.run(s.newPoster(to.subscription("a", "channel.*")))
		s.recordChannelUp("2")
		s.waitEmpty("a")
		first()
		s.recordChannelUp("3")
		s.waitEmpty("a")
		if got := subjects(to.all()); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Errorf("arrived are %v", got)
		}
	})
}

// A changed subscription is posted to its new URL immediately, and a removed one ends.
func TestSubscriptionsAreChanged(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		dead := newSubscriber(t, func(_ int, w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		to := newSubscriber(t, nil)
		p := s.newPoster(dead.subscription("a", "channel.*"))
		s.run(p)
		s.recordChannelUp("1", "2")
		waitFor(t, "the long wait", func() bool {
			state, err := s.store.Subscriptions().State(t.Context(), "a")
			return err == nil && time.Until(state.RetryAt) > 59*time.Minute
		})
		p.Set([]kept.Subscription{to.subscription("a", "channel.*")})
		to.wait(2)
		s.waitEmpty("a")
		p.Set(nil)
		s.recordChannelUp("nobody wants it")
		p.Set([]kept.Subscription{to.subscription("a", "channel.*")})
		s.recordChannelUp("3")
		if got := subjects(to.wait(3)); !slices.Equal(got, []string{"1", "2", "3"}) || len(dead.all()) != 1 {
			t.Errorf("arrived are %v, and before %v", got, subjects(dead.all()))
		}
	})
}

// Events contain texts only if the subscription asks for them, and never secrets.
func TestTexts(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		const texts = "turn.ended message.* ask.* tool.*"
		plain, all := newSubscriber(t, nil), newSubscriber(t, nil)
		with := all.subscription("all", texts)
		with.Text = true
		s.run(s.newPoster(plain.subscription("plain", texts), with))
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

// If a process was paused right before a post, and another process has posted the event, it does not post the
// event when it continues.
func TestAPausedProcessPostsNothing(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		there, goOn := make(chan struct{}), make(chan struct{})
		stand := sync.OnceFunc(func() { close(there); <-goOn })
		s.run(s.newPosterWithPoint(func(name string) {
			if name == "subscription:due" {
				stand()
			}
		}, to.subscription("a", "channel.*")))
		s.recordChannelUp("1", "2")
		<-there
		q, _, err := s.store.Subscriptions().Take(t.Context(), "a") // as another process would
		if err != nil {
			t.Fatal(err)
		}
		next, err := q.Next(t.Context(), 9)
		if err == nil && len(next) == 2 {
			err = q.Remove(t.Context(), next...)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.recordChannelUp("3")
		close(goOn)
		s.waitEmpty("a")
		if got := subjects(to.all()); !slices.Equal(got, []string{"3"}) {
			t.Errorf("arrived are %v", got)
		}
	})
}

// An event that is erased after it was read for posting is not posted.
func TestErasedEventsAreNotPosted(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		due := 0
		p := s.newPosterWithPoint(func(name string) {
			if name != "subscription:due" {
				return
			}
			if due++; due == 2 {
				if _, err := s.store.EraseSession(t.Context(), "main:web:x"); err != nil && !errors.Is(err, sessions.ErrNotFound) {
					t.Error(err)
				}
			}
		}, to.subscription("a", "channel.*"))
		s.recordChannelUp("1")
		err := s.store.Subscriptions().Add(t.Context(), kept.Event{ID: kept.NewID("2"), Type: kept.ChannelUp, At: time.Now(), Data: kept.Data{ID: "2", Session: "main:web:x"}})
		if err != nil {
			t.Fatal(err)
		}
		s.recordChannelUp("3")
		s.run(p)
		s.waitEmpty("a")
		if got := subjects(to.all()); !slices.Equal(got, []string{"1", "3"}) {
			t.Errorf("arrived are %v", got)
		}
	})
}

// Forgetting one person in a shared conversation leaves the event, but its text is no longer posted.
func TestErasedTextsAreNotPosted(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		with := to.subscription("a", "message.*")
		with.Text = true
		p := s.newPosterWithPoint(func(name string) {
			if name != "subscription:due" {
				return
			}
			if _, err := s.store.ErasePerson(t.Context(), "telegram:1"); err != nil && !errors.Is(err, sessions.ErrNotFound) {
				t.Error(err)
			}
		}, with)
		l, err := s.store.Open(t.Context(), "main:telegram:g", 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, person := range []string{"telegram:1", "telegram:2"} {
			e, err := sessions.NewEntry("t1", sessions.KindUser, sessions.User{Text: "said by " + person})
			if err != nil {
				t.Fatal(err)
			}
			e.Cause, e.Person = fmt.Sprint("m", i), person
			if err := l.Append(t.Context(), l.Next(), e); err != nil {
				t.Fatal(err)
			}
		}
		s.run(p)
		s.waitEmpty("a")
		for _, got := range to.all() {
			if strings.Contains(got.Data.Text, "telegram:1") {
				t.Errorf("arrived is %+v", got)
			}
		}
		if len(to.all()) == 0 {
			t.Error("nothing arrived")
		}
	})
}

// A wait that a subscriber has asked for also applies to the next process. A changed URL is tried immediately.
func TestTheNextProcessKeepsTheRequestedWait(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		busy, quick := newSubscriber(t, func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}), newSubscriber(t, nil)
		one, other := busy.subscription("a", "channel.*"), quick.subscription("b", "channel.*")
		end := s.run(s.newPoster(one))
		s.recordChannelUp("1")
		waitFor(t, "the long wait", func() bool {
			state, err := s.store.Subscriptions().State(t.Context(), "a")
			return err == nil && time.Until(state.RetryAt) > 59*time.Minute
		})
		end()
		end = s.run(s.newPoster(one, other))
		s.recordChannelUp("2")
		quick.wait(1)
		s.waitEmpty("b")
		end()
		if n := len(busy.all()); n != 1 {
			t.Errorf("the one that asked for an hour got %d requests", n)
		}
		one.URL += "d"
		s.run(s.newPoster(one, other))
		s.waitEmpty("a")
		if got := subjects(busy.all()); !slices.Equal(got, []string{"1", "1", "2"}) {
			t.Errorf("arrived are %v", got)
		}
	})
}

// Nothing of a subscriber's answer is stored or reported, because it may repeat what was posted.
func TestASubscribersAnswerIsNotStored(t *testing.T) {
	for what, c := range map[string]struct {
		answer func(c net.Conn)
		want   string
	}{
		"no HTTP":         {func(c net.Conn) { fmt.Fprint(c, "you said: a secret text\r\n\r\n") }, "Parley got no answer that it can read"},
		"a bad header":    {func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\na secret text\r\n\r\n") }, "Parley got no answer that it can read"},
		"endless headers": {func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("secret ", 20_000)) }, "Parley got no answer that it can read"},
		"nothing":         {func(net.Conn) {}, "it closed the connection without an answer"},
		"an endless body": {func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 400 a secret text\r\n\r\n"+strings.Repeat("secret ", 20_000))
		}, "HTTP 400"},
		"a strange status": {func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 999 a secret text\r\nContent-Length: 0\r\n\r\n") }, "HTTP 999"},
	} {
		t.Run(what, func(t *testing.T) {
			h := hometest.Open(t, t.TempDir())
			s := &world{t, h.Bus, h.Store, h.Book}
			to := newSubscriber(t, func(_ int, w http.ResponseWriter) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				c.answer(conn)
			})
			s.run(s.newPoster(to.subscription("a", "channel.*")))
			s.recordChannelUp("1")
			waitFor(t, "the refusal", func() bool {
				state, err := s.store.Subscriptions().State(t.Context(), "a")
				if err == nil && state.Tries > 0 && state.Problem != c.want {
					t.Errorf("the problem is %q, want %q", state.Problem, c.want)
				}
				return err == nil && state.Tries > 0
			})
		})
	}
}

// buryMessages makes dead letters with these ids, one after the other.
func (s *world) buryMessages(topic bus.Topic, ids ...string) {
	s.t.Helper()
	b := s.bus.(bus.Bus)
	for _, id := range ids {
		m := bus.Message{ID: id, Key: "main:telegram:" + id, Body: []byte(`{"session": "main:web:` + id + `", "turn": "t` + id + `"}`)}
		if err := b.Publish(s.t.Context(), topic, m); err != nil {
			s.t.Fatal(err)
		}
		l, err := b.Claim(s.t.Context(), topic)
		if err != nil {
			s.t.Fatal(err)
		}
		mail, err := l.Mail(s.t.Context(), 0)
		if err == nil {
			err = l.Settle(s.t.Context(), bus.End{Dead: mail[0].Seq, Reason: "a test"})
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// waitForLetterWatch waits until the Poster looks for dead letters.
func (s *world) waitForLetterWatch() {
	s.t.Helper()
	waitFor(s.t, "the beginning", func() bool {
		n, err := s.book.Noted(s.t.Context(), "dead_letters_recorded", "since")
		return err == nil && n.Value != ""
	})
}

// letterLines returns events about dead letters in a short form.
func letterLines(all []receivedEvent) (lines []string) {
	for _, p := range all {
		lines = append(lines, strings.TrimPrefix(p.Type, "dead_letter.")+" "+p.Data.ID)
	}
	return lines
}

// Each new dead letter is posted, wherever a process dies after the burial. Dead letters from before the
// subscription are not.
func TestDeadLettersArePosted(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		s.buryMessages(bus.InboundTopic, "old")
		end := s.run(s.newPoster(to.subscription("a", "dead_letter.*")))
		s.waitForLetterWatch()
		s.buryMessages(bus.InboundTopic, "1")
		to.wait(1)
		end()
		s.buryMessages(bus.InboundTopic, "2", "3")
		s.run(s.newPoster(to.subscription("a", "dead_letter.*")))
		got := to.wait(3)
		if !slices.Equal(subjects(got), []string{"1", "2", "3"}) || got[0].Data.Session != "main:telegram:1" || got[0].Data.Topic != "inbound" {
			t.Errorf("arrived are %+v", got)
		}
		s.buryMessages(bus.OutboundTopic("telegram"), "out")
		if p := to.wait(4)[3]; p.Data.Session != "main:web:out" || p.Data.Turn != "tout" || p.Data.Topic != "outbound/telegram" {
			t.Errorf("of a message to a chat, %+v arrived", p)
		}
	})
}

// New dead letters are posted whatever the clock said before, and whichever earlier ones are gone; none is
// posted twice.
func TestDeadLettersArePostedDespiteWrongClocks(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		p := s.newPoster(to.subscription("a", "dead_letter.buried"))
		end := s.run(p)
		s.waitForLetterWatch()
		const subject = "dead_letters_recorded"
		var noted channels.Note
		var err error
		for n, id := range []string{"1", "2", "3"} { // each dead letter is recorded in a separate pass
			s.buryMessages(bus.InboundTopic, id)
			to.wait(n + 1)
			waitFor(t, "the mark of "+id, func() bool {
				noted, err = s.book.Noted(t.Context(), subject, "inbound")
				return err == nil && strings.Contains(noted.Value, `"id":"`+id+`"`)
			})
		}
		s.waitEmpty("a")
		end()
		var mark map[string]any
		if err := json.Unmarshal([]byte(noted.Value), &mark); err != nil {
			t.Fatal(err)
		}
		mark["at"] = time.Now().Add(24 * time.Hour) // as if the clock had been wrong
		raw, err := json.Marshal(mark)
		if err == nil {
			err = s.book.SetNote(t.Context(), subject, "inbound", string(raw))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.bus.Drop(t.Context(), bus.InboundTopic, "3"); err != nil {
			t.Fatal(err)
		}
		s.buryMessages(bus.InboundTopic, "4")
		s.run(s.newPoster(to.subscription("a", "dead_letter.buried")))
		to.wait(4)
		s.waitEmpty("a")
		if got := letterLines(to.all()); !slices.Equal(got, []string{"buried 1", "buried 2", "buried 3", "buried 4"}) {
			t.Errorf("arrived are %v", got)
		}
	})
}

// An unusable note delays no other event about dead letters.
func TestAnUnusableNoteDelaysNothing(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		for _, note := range [][3]string{{"dead_letters_moved", "0", "?"}, {"dead_letters_moved", "1", "{}"}, {"dead_letters_recorded", "inbound", "?"}} {
			if err := s.book.SetNote(t.Context(), note[0], note[1], note[2]); err != nil {
				t.Fatal(err)
			}
		}
		end := s.run(s.newPoster(to.subscription("a", "dead_letter.*")))
		s.waitForLetterWatch()
		end()
		s.buryMessages(bus.InboundTopic, "1")
		s.buryMessages(bus.OutboundTopic("telegram"), "2")
		s.run(s.newPoster(to.subscription("a", "dead_letter.*")))
		if got := letterLines(to.wait(1)); !slices.Equal(got, []string{"buried 2"}) {
			t.Errorf("arrived are %v", got)
		}
	})
}

// A replay or drop is posted after the burial, and only if it took place.
func TestReplaysAndDropsArePosted(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, s *world) {
		to := newSubscriber(t, nil)
		p := s.newPoster(to.subscription("a", "dead_letter.*"))
		end := s.run(s.newPoster(to.subscription("a", "dead_letter.*")))
		s.waitForLetterWatch()
		end()
		s.buryMessages(bus.InboundTopic, "1", "2")
		if id, err := p.Letters().Replay(t.Context(), bus.InboundTopic, "2"); id != "2~1" || err != nil {
			t.Error(id, err)
		}
		if err := p.Letters().Drop(t.Context(), bus.InboundTopic, "1"); err != nil {
			t.Error(err)
		}
		_, err := p.Letters().Replay(t.Context(), bus.InboundTopic, "1")
		if again := p.Letters().Drop(t.Context(), bus.InboundTopic, "2"); !errors.Is(err, bus.ErrNotFound) || !errors.Is(again, bus.ErrNotFound) {
			t.Error(err, again)
		}
		s.run(p)
		s.waitEmpty("a")
		got := to.all()
		if !slices.Equal(letterLines(got), []string{"buried 1", "buried 2", "replayed 2", "dropped 1"}) {
			t.Errorf("arrived are %v", letterLines(got))
		}
		if d := got[2].Data; d.State != "replayed" || d.Topic != "inbound" || d.Session != "main:telegram:2" {
			t.Errorf("of the replay, %+v arrived", d)
		}
		if left, err := s.book.AllNoted(t.Context(), "dead_letters_moved"); len(left) > 0 || err != nil {
			t.Errorf("notes are left: %v, %v", left, err)
		}
	})
}

// If the process dies before or after it replays a dead letter, another process posts the outcome.
func TestReplaysArePostedAfterACrash(t *testing.T) {
	for at, want := range map[string][]string{"subscription:letter_noted": {"buried 1"}, "subscription:letter_moved": {"buried 1", "replayed 1"}} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			onHomeAndFleet(t, func(t *testing.T, s *world) {
				to := newSubscriber(t, nil)
				end := s.run(s.newPoster(to.subscription("a", "dead_letter.*")))
				s.waitForLetterWatch()
				end()
				s.buryMessages(bus.InboundTopic, "1")
				dies := s.newPosterWithPoint(func(name string) {
					if name == at {
						runtime.Goexit()
					}
				}, to.subscription("a", "dead_letter.*"))
				dead := make(chan struct{})
				go func() {
					defer close(dead)
					_, err := dies.Letters().Replay(context.WithoutCancel(t.Context()), bus.InboundTopic, "1")
					t.Error("it has not died", err)
				}()
				<-dead
				s.run(s.newPoster(to.subscription("a", "dead_letter.*")))
				waitFor(t, "the note to be forgotten", func() bool {
					left, err := s.book.AllNoted(t.Context(), "dead_letters_moved")
					return err == nil && len(left) == 0
				})
				s.waitEmpty("a")
				if got := letterLines(to.all()); !slices.Equal(got, want) {
					t.Errorf("arrived are %v, want %v", got, want)
				}
			})
		})
	}
}
