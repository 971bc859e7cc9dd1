package operation

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

const subscriberSecret = "secret-of-the-subscriber-0000"

// A subscriber is a program to which the server posts events.
type subscriber struct {
	t      *testing.T
	server *httptest.Server
	refuse atomic.Bool // whether it answers with status 500

	mu  sync.Mutex
	got []postedEvent
}

// A postedEvent is the body of a posted event.
type postedEvent struct {
	ID, Type string
	Data     struct{ Session, Turn, ID, State, Text, Tool string }
}

func newSubscriber(t *testing.T) *subscriber {
	s := &subscriber{t: t}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// ServeHTTP stores an event.
func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process that posted it was killed
	}
	if s.refuse.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var p postedEvent
	if err := json.Unmarshal(body, &p); err != nil || r.Header.Get("Webhook-Id") != p.ID {
		s.t.Errorf("an event is %s: %v", body, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, p)
}

// settings returns the configuration of a subscription with this name, with more lines below it.
func (s *subscriber) settings(name, events, more string) string {
	return fmt.Sprintf("\n[subscriptions.%s]\nurl = %q\nsecret = %q\nevents = %s\n%s\n", name, s.server.URL, subscriberSecret, events, more)
}

// once returns the events in the order of their first arrival, without repeats.
func (s *subscriber) once() (all []postedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.got {
		if !slices.ContainsFunc(all, func(o postedEvent) bool { return o.ID == p.ID }) {
			all = append(all, p)
		}
	}
	return all
}

// of returns the types of a session's events, in order.
func (s *subscriber) of(session string) (types []string) {
	for _, p := range s.once() {
		if p.Data.Session == session {
			types = append(types, p.Type)
		}
	}
	return types
}

// A subscriber gets the events of each turn, even if the server is killed at any step. A subscriber with text gets the
// words of the messages, and other subscribers get none.
func TestSubscribersAreToldWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c1:before", "c1", "c6:before", "c6", "c7:published", "settled", "subscription:posted", "subscription:posted/2", "subscription:removed"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			plain, all := newSubscriber(t), newSubscriber(t)
			w := parleytest.New(t, parleytest.EchoModel, plain.settings("plain", `["turn.*", "message.*"]`, "")+all.settings("all", `["turn.ended", "message.*"]`, "text = true"))
			first := w.Serve("PARLEY_KILL_AT=" + at)
			w.Telegram.Say(2, 2, "hello")
			first.WaitKilled()
			p := w.Serve()
			w.WaitSaid(2, 1)
			const session = "main:telegram:2"
			want := []string{"turn.begun", "message.received", "turn.ended"}
			parleytest.WaitFor(t, "the end to be told", func() bool { return len(plain.of(session)) >= 3 && len(all.of(session)) >= 2 })
			// The second process posts the events again that the first one posted and had no time to remove.
			parleytest.WaitFor(t, "no event to be left", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM subscription_events") == 0 })
			p.Stop()
			if got := plain.of(session); !slices.Equal(got, want) && !slices.Equal(got, []string{"message.received", "turn.begun", "turn.ended"}) {
				t.Errorf("told was %v, want %v", got, want)
			}
			var texts []string
			for _, p := range all.once() {
				texts = append(texts, p.Data.Text)
			}
			if !slices.Equal(texts, []string{"hello", "you said hello"}) {
				t.Errorf("the texts are %q", texts)
			}
			for _, p := range plain.once() {
				if p.Data.Text != "" {
					t.Errorf("the other got a text: %+v", p)
				}
			}
		})
	}
}

// handingOut plays a model that gives what it is told to a sub-agent, which reports it.
func handingOut(r agenttest.Request) agenttest.Response {
	results := false
	for _, m := range r.Messages() {
		if m.Role == "user" && strings.Contains(m.Content, "<notice>You are a sub-agent of") {
			return agenttest.Reply("a report")
		}
		results = results || m.Role == "tool"
	}
	if results {
		return agenttest.Reply("an answer")
	}
	return agenttest.Calls(agenttest.Call("task", `{"prompt": "a secret"}`))
}

// A subscriber gets an event when a task begins and when it ends, even if the server is killed at any step.
func TestSubscribersAreToldOfTasksWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"task:recorded", "park:before", "task:running", "park:handed", "task:ended", "task:told", "unpark"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			to := newSubscriber(t)
			w := parleytest.New(t, handingOut, "\n[agents.defaults]\ncapabilities = [\"session\"]\n"+to.settings("tracker", `["task.*"]`, ""))
			first := w.Serve("PARLEY_KILL_AT=" + at)
			w.Telegram.Say(2, 2, "hello")
			first.WaitKilled()
			p := w.Serve()
			w.WaitSaid(2, 1)
			parleytest.WaitFor(t, "no event to be left", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM subscription_events") == 0 })
			p.Stop()
			var told []string
			for _, p := range to.once() {
				told = append(told, strings.Join([]string{p.Type, p.Data.Session, p.Data.Turn, p.Data.State}, " "))
			}
			if want := []string{"task.begun main:telegram:2 telegram:4242:2:1 running", "task.ended main:telegram:2 telegram:4242:2:1 done"}; !slices.Equal(told, want) {
				t.Errorf("told was\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// A subscriber gets an event when an operator replays or drops a dead letter, even if the server is killed at any step.
func TestSubscribersAreToldOfReplaysWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"subscription:letters", "subscription:letter_noted", "subscription:letter_moved"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			to := newSubscriber(t)
			w := parleytest.New(t, parleytest.EchoModel, to.settings("tracker", `["dead_letter.*"]`, ""))
			w.Telegram.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 2, Times: 1, Status: 403, Description: "Forbidden: bot was blocked by the user"})
			first := w.Serve("PARLEY_KILL_AT=" + at)
			w.Telegram.Say(2, 2, "hello")
			if at != "subscription:letters" {
				parleytest.WaitFor(t, "the dead letter", func() bool { return len(to.once()) == 1 })
				if out, _, code := w.Run("dead-letters", "replay", "--all"); code == 0 {
					t.Errorf("the server was not killed: %s", out)
				}
			}
			first.WaitKilled()
			p := w.Serve()
			p.WaitServing()
			if at != "subscription:letter_moved" {
				parleytest.WaitFor(t, "the dead letter", func() bool { return len(to.once()) == 1 })
				if out, errs, code := w.Run("dead-letters", "replay", "--all"); code != 0 {
					t.Errorf("it was not replayed: %s %s", out, errs)
				}
			}
			var told []string
			parleytest.WaitFor(t, "the replay", func() bool {
				told = nil
				for _, p := range to.once() {
					told = append(told, strings.Join([]string{p.Type, p.Data.ID, p.Data.Session}, " "))
				}
				return len(told) >= 2
			})
			p.Stop()
			want := []string{"dead_letter.buried telegram:4242:2:1#reply main:telegram:2", "dead_letter.replayed telegram:4242:2:1#reply main:telegram:2"}
			if !slices.Equal(told, want) {
				t.Errorf("told was\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// If a command drops a dead letter while no server runs, the subscriber gets the event later.
func TestSubscribersAreToldOfWhatIsDroppedWithoutAServer(t *testing.T) {
	t.Parallel()
	to := newSubscriber(t)
	w := parleytest.New(t, parleytest.EchoModel, to.settings("tracker", `["dead_letter.*"]`, ""))
	w.Telegram.Fail(telegramtest.Fault{Method: "sendMessage", Chat: 2, Status: 403, Description: "Forbidden: bot was blocked by the user"})
	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	parleytest.WaitFor(t, "the dead letter", func() bool { return len(to.once()) == 1 })
	p.Stop()
	if out, errs, code := w.Run("dead-letters", "drop", "--all", "--yes"); code != 0 {
		t.Errorf("it was not dropped: %s %s", out, errs)
	}
	p = w.Serve()
	parleytest.WaitFor(t, "the drop", func() bool {
		all := to.once()
		return len(all) == 2 && all[1].Type == "dead_letter.dropped" && all[1].Data.Session == "main:telegram:2"
	})
	p.Stop()
}

// The owners and the operator are told that a subscriber accepts no events. A reload takes effect at once, and the
// waiting events go to the new address.
func TestADeadSubscriberIsTold(t *testing.T) {
	t.Parallel()
	dead, to := newSubscriber(t), newSubscriber(t)
	dead.refuse.Store(true)
	w := parleytest.New(t, parleytest.EchoModel, "[notices]\nafter = \"1s\"\n"+dead.settings("tracker", `["turn.ended", "channel.*"]`, ""))
	p := w.Serve()
	w.Telegram.Say(1, 1, "hello")
	told := w.WaitSaid(1, 2)
	if !slices.ContainsFunc(told, func(text string) bool { return strings.Contains(text, "tracker") && strings.Contains(text, "HTTP 500") }) {
		t.Errorf("the owner was told %q", told)
	}
	if out, _, _ := w.Run("doctor"); !strings.Contains(out, "subscription tracker") || !strings.Contains(out, "HTTP 500") || strings.Contains(out, subscriberSecret) {
		t.Errorf("doctor says\n%s", out)
	}
	if out, _, _ := w.Run("status"); !strings.Contains(out, "subscription tracker:") || !strings.Contains(out, "(HTTP 500)") {
		t.Errorf("status says\n%s", out)
	}
	if out, _, _ := w.Run("config", "check"); strings.Contains(out, subscriberSecret) || !strings.Contains(out, `secret = "***"`) {
		t.Errorf("config check says\n%s", out)
	}
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.ReplaceAll(string(text), dead.server.URL, to.server.URL)), 0o600))
	parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGHUP))
	parleytest.WaitFor(t, "what waited", func() bool {
		return slices.Equal(to.of("main:telegram:1"), []string{"turn.ended"}) && slices.ContainsFunc(to.once(), func(p postedEvent) bool {
			return p.Type == "channel.up" && p.Data.ID == "telegram" && p.Data.State == "up"
		})
	})
	told = w.WaitSaid(1, 3)
	if last := told[len(told)-1]; !strings.Contains(last, "accepts events again") {
		t.Errorf("the owner was told %q", told)
	}
	p.Stop()
}
