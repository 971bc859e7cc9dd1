package chaos

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqlstore"
	"parley/sessions/subscriptions"
)

const subscriberSecret = "secret-of-the-subscriber-0000"

// A told is an event as it was posted to a subscriber.
type told struct {
	ID, Type string
	Data     subscriptions.Data
}

// A subscriber is a program to which events are posted. It fails at random.
type subscriber struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	random *rand.Rand
	calm   bool
	first  []told            // each event, in the order of their first arrival
	bodies map[string]string // the posted bodies, by the event's id
	tried  int
}

func newSubscriber(t *testing.T, seed uint64) *subscriber {
	s := &subscriber{t: t, random: rand.New(rand.NewPCG(seed, 996)), bodies: map[string]string{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

// settings returns the subscription's part of the configuration.
func (s *subscriber) settings() string {
	return fmt.Sprintf("\n[subscriptions.tracker]\nurl = %q\nsecret = %q\nevents = [\"turn.*\", \"tool.completed\", \"message.*\", \"ask.*\"]\n", s.server.URL, subscriberSecret)
}

// ServeHTTP accepts an event, or at random refuses it, or cuts the connection before or after it has stored the event.
func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process that posted it was killed
	}
	id, stamp := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
	mac := hmac.New(sha256.New, []byte(subscriberSecret))
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	if r.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		s.t.Errorf("event %s has a wrong signature", id)
	}
	switch s.draw() {
	case 0:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case 1:
		panic(http.ErrAbortHandler) // nothing was stored, and nothing is answered
	case 2:
		s.store(id, body)
		panic(http.ErrAbortHandler)
	}
	s.store(id, body)
}

// draw chooses at random what happens to a request.
func (s *subscriber) draw() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried++; s.calm {
		return -1
	}
	return s.random.IntN(20)
}

func (s *subscriber) store(id string, body []byte) {
	var e told
	if err := json.Unmarshal(body, &e); err != nil || e.ID != id {
		s.t.Errorf("event %s is %s: %v", id, body, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, again := s.bodies[id]
	if again && was != string(body) {
		s.t.Errorf("event %s was\n%s\nand comes again as\n%s", id, was, body)
	}
	if s.bodies[id] = string(body); !again {
		s.first = append(s.first, e)
	}
}

// TestFleetTellsSubscribersEverything makes a program subscribe to events. Even if the fleet's processes, Redis,
// PostgreSQL and the program fail, the program gets an event for everything in the logs, in the order of each log, with
// ids that stay the same.
func TestFleetTellsSubscribersEverything(t *testing.T) {
	t.Parallel()
	subscribersThroughChaos(t, stormSeed, 16, 8)
}

func subscribersThroughChaos(t *testing.T, seed uint64, chats, messages int) {
	to, bucket := newSubscriber(t, seed), newUnsureBucket(t)
	f := newFleet(t, stormModel, to.settings(), bucket.settings)
	for _, m := range []struct{ name, role string }{
		{"gateway-1", gateway}, {"worker-1", worker}, {"gateway-2", gateway}, {"worker-2", worker},
	} {
		f.join(m.name, m.role)
	}
	s := newStorm(f, seed, chats, messages, 2*time.Second)
	s.noFiles, s.noRecall, s.noLong = true, true, true
	s.points = map[string][]string{
		gateway: {"subscription:posted", "subscription:removed"},
		worker:  {"c1", "c3", "c5:before", "c5", "c6:before", "c6", "c7:published", "park", "park:opened", "unpark", "settled"},
	}
	s.past = newPast(s, bucket)
	s.armCrashpoints()
	s.run(4*time.Minute, breakMembers, breakServers, s.past.pass)
	s.disarmCrashpoints()
	bucket.calm.Store(true)
	s.past.finish(2 * time.Minute)
	to.mu.Lock()
	to.calm = true
	to.mu.Unlock()
	s.waitUntil(2*time.Minute, "the subscriber to be told everything", func() bool {
		waiting := s.queryRows("SELECT count(*) FROM subscription_events")
		return len(waiting) == 1 && waiting[0] == "0"
	})
	s.endAll()
	close(s.stopWaking)
	s.waking.Wait()
	s.auditSubscriber(to)
	s.past.check(t.Errorf)
	t.Logf("seed %d: %d events in %d requests; %v", seed, len(to.first), to.tried, s.faults)
}

// auditSubscriber compares the events that a subscriber got with the logs and the asks.
func (s *storm) auditSubscriber(to *subscriber) {
	t := s.T
	t.Helper()
	store, err := sqlstore.Open(t.Context(), s.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	bySession := map[string][]string{}
	var asks []string
	for _, e := range to.first {
		if strings.HasPrefix(e.Type, "ask.") {
			asks = append(asks, e.Data.ID+" "+e.Type)
			continue
		}
		bySession[e.Data.Session] = append(bySession[e.Data.Session], fmt.Sprintf("%s %s %s%s %s", e.Type, e.Data.Turn, e.Data.ID, e.Data.Call, e.Data.State))
	}
	ended := 0
	for _, key := range s.queryRows("SELECT key FROM sessions") {
		want := s.eventsOf(store, key)
		for _, line := range want {
			if strings.HasPrefix(line, subscriptions.TurnEnded) {
				ended++
			}
		}
		if got := bySession[key]; !slices.Equal(got, want) {
			t.Errorf("of session %s the subscriber was told\n%s\nand the log has\n%s", key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if ended == 0 {
		t.Error("no turn has ended")
	}
	want := slices.Concat(s.queryRows("SELECT id || ' ask.opened' FROM asks"), s.queryRows("SELECT id || ' ask.decided' FROM asks WHERE state <> 'open'"))
	slices.Sort(want)
	if slices.Sort(asks); !slices.Equal(asks, want) {
		t.Errorf("of asks the subscriber was told\n%s\nand there are\n%s", strings.Join(asks, "\n"), strings.Join(want, "\n"))
	}
}

// eventsOf returns the events of a session's log that a subscriber must get, in order.
func (s *storm) eventsOf(store *sqlstore.Store, key string) (lines []string) {
	for e, err := range store.Read(s.T.Context(), key, 1) {
		if err != nil {
			s.T.Fatal(err)
		}
		add := func(what, about, state string) {
			lines = append(lines, fmt.Sprintf("%s %s %s %s", what, e.Turn, about, state))
		}
		switch e.Kind {
		case sessions.KindUser:
			if e.Cause != "" {
				add(subscriptions.MessageReceived, e.Cause, "")
			}
		case sessions.KindTurnStarted:
			add(subscriptions.TurnBegun, "", "running")
		case sessions.KindTurnParked:
			add(subscriptions.TurnWaiting, "", "waiting")
		case sessions.KindTurnUnparked:
			add(subscriptions.TurnResumed, "", "running")
		case sessions.KindTurnDone:
			done, err := sessions.Decode[sessions.TurnDone](e)
			if err != nil {
				s.T.Fatal(err)
			}
			add(subscriptions.TurnEnded, "", done.State)
		case sessions.KindToolResult:
			result, err := sessions.Decode[sessions.ToolResult](e)
			if err != nil {
				s.T.Fatal(err)
			}
			state := "done"
			if result.Code != "" {
				state = "failed"
			}
			add(subscriptions.ToolCompleted, e.Call, state)
		}
	}
	return lines
}
