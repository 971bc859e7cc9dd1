package scale

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal/client"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
)

// These environment variables set the number of conversations, and the number of turns of each. `make scale` sets them.
const (
	conversationsVar = "PARLEY_SCALE"
	turnsVar         = "PARLEY_SCALE_TURNS"
)

// given returns the number in an environment variable, or otherwise if the variable is empty.
func given(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	parleytest.Must(t, err)
	return n
}

// A measured is a request, and how long its first and its fastest answer took.
type measured struct {
	name        string
	first, best time.Duration
}

// A scene is a server with a population, and the measurements of its requests.
type scene struct {
	t      *testing.T
	w      *parleytest.World
	http   *parleytest.HTTPWorld
	client *client.Client
	p      population
	table  []measured
}

// measure calls a function several times, and records the times of the first and the fastest call.
func (s *scene) measure(name string, times int, do func()) {
	s.t.Helper()
	m := measured{name: name}
	for n := range times {
		began := time.Now()
		do()
		took := time.Since(began)
		if n == 0 {
			m.first = took
		}
		if m.best == 0 || took < m.best {
			m.best = took
		}
	}
	s.table = append(s.table, m)
}

// get measures a request for a list, and checks that the list under this key in the answer has at least this many
// items.
func (s *scene) get(name, path, key string, least int) {
	s.t.Helper()
	s.measure(name, 5, func() {
		var found map[string]any
		if err := s.client.Get(s.t.Context(), path, &found); err != nil {
			s.t.Fatalf("%s: %v", path, err)
		}
		if key == "" {
			return
		}
		if list, ok := found[key].([]any); !ok || len(list) < least {
			s.t.Errorf("%s has %d %s, want at least %d", path, len(list), key, least)
		}
	})
}

// print logs the table of measurements.
func (s *scene) print(title string) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, m := range s.table {
		fmt.Fprintf(w, "%s\t%.1f ms\t%.1f ms\t\n", m.name, float64(m.first.Microseconds())/1000, float64(m.best.Microseconds())/1000)
	}
	parleytest.Must(s.t, w.Flush())
	s.t.Logf("%s: %d conversations of %d entries, at first and at best\n%s", title, s.p.conversations, 6*s.p.turns, out.String())
}

// A large home serves each list, sum and erasure, and `make scale` prints how long they take.
func TestScale(t *testing.T) {
	p := population{conversations: given(t, conversationsVar, 400), turns: given(t, turnsVar, 3)}
	t.Run("sqlite", func(t *testing.T) {
		run(t, p, "", func(w *parleytest.World) { p.fillHome(t, w.Home, time.Now()) })
	})
	t.Run("postgres", func(t *testing.T) {
		place := sqldbtest.New(t)
		more := fmt.Sprintf("[bus]\nurl = %q\n[store]\nurl = %q\n", parleytest.StartRedis(t).URL(), place)
		run(t, p, more, func(*parleytest.World) { p.fillServer(t, place, time.Now()) })
	})
}

func run(t *testing.T, p population, more string, fill func(*parleytest.World)) {
	const token = "the-token-of-ada-has-32-letters!"
	more += fmt.Sprintf("[tokens.ada]\ntoken = %q\nmay = [\"agent\"]\n", token)
	w := parleytest.New(t, parleytest.EchoModel, more)
	s := &scene{t: t, w: w, p: p, http: parleytest.ListenHTTP(w), client: client.Dial(w.Home)}
	_, err := parleytest.Binary()
	parleytest.Must(t, err)
	began := time.Now()
	fill(w)
	t.Logf("filled in %v", time.Since(began).Round(time.Millisecond))
	var server *parleytest.Process
	s.measure("start", 1, func() { server = s.http.Up() })
	s.lists(token)
	s.erasures()
	s.sweep(server)
	s.print(t.Name())
}

// lists measures requests for lists and sums.
func (s *scene) lists(token string) {
	page := min(100, s.p.conversations/10)
	s.get("status", "/v1/status", "", 0)
	s.get("sessions, by key", "/v1/sessions", "sessions", page)
	s.get("sessions, the newest", "/v1/sessions?order=desc", "sessions", page)
	s.get("sessions of a person with one", fmt.Sprintf("/v1/sessions?person=telegram:%d", s.p.lastPrivate()), "sessions", 1)
	s.get("sessions of a person in groups", "/v1/sessions?person=telegram:1005", "sessions", 1)
	s.get("sessions of ada, a tenth of all", "/v1/sessions?person=web:ada", "sessions", page)
	s.get("sessions of a channel", "/v1/sessions?channel=web", "sessions", page)
	s.measure("sessions that ada's token may read", 5, func() {
		if a := s.http.Ask(http.MethodGet, "/v1/sessions?order=desc", "", parleytest.Bearer(token)...); a.Status != http.StatusOK || strings.Count(a.Body, `"key"`) < page {
			s.t.Errorf("ada is answered %d %.200s", a.Status, a.Body)
		}
	})
	s.get("chats", "/v1/chats", "chats", page)
	s.get("pairings", "/v1/pairings", "pairings", page)
	days := "&from=" + time.Now().AddDate(0, 0, -30).Format(time.DateOnly)
	s.get("usage of 30 days by day", "/v1/usage?by=day"+days, "usage", 1)
	s.get("usage of 30 days by model", "/v1/usage?by=model"+days, "usage", 1)
	all := "&from=" + time.Now().AddDate(0, 0, -2*spread).Format(time.DateOnly)
	s.get("usage of all days by day", "/v1/usage?by=day"+all, "usage", 1)
	s.get("usage of all days by agent", "/v1/usage?by=agent"+all, "usage", 1)
	s.get("usage of 2 days by person", "/v1/usage?by=person&from="+time.Now().AddDate(0, 0, -1).Format(time.DateOnly), "usage", 1)
	s.get("audit", "/v1/audit", "records", 1)
	s.get("search", "/v1/search?q=w17", "hits", 1)
	s.measure("doctor", 1, func() {
		var found struct {
			Running  bool
			Findings []struct{ Part, State, Detail string }
		}
		if err := s.client.Get(s.t.Context(), "/v1/doctor", &found); err != nil {
			s.t.Fatal(err)
		}
		for _, f := range found.Findings {
			if f.State == "wrong" || f.Part == "recall" && f.State != "ok" {
				s.t.Errorf("doctor finds %+v", f)
			}
		}
	})
}

// erasures measures erasures and exports.
func (s *scene) erasures() {
	forget := func(name string, what map[string]string, least int) {
		s.t.Helper()
		s.measure(name, 1, func() {
			ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
			defer cancel()
			var receipt struct {
				Log struct{ Sessions, Shared []string }
			}
			if err := s.client.Do(ctx, http.MethodPost, "/v1/forget", "", what, &receipt); err != nil {
				s.t.Errorf("%s: %v", name, err)
			} else if n := len(receipt.Log.Sessions) + len(receipt.Log.Shared); n < least {
				s.t.Errorf("%s: it erased %d sessions, want at least %d", name, n, least)
			}
		})
	}
	forget("forget a session", map[string]string{"session": fmt.Sprint("main:telegram:", s.p.lastPrivate())}, 1)
	forget("forget another session", map[string]string{"session": fmt.Sprint("main:telegram:", s.p.lastPrivate()-2)}, 1)
	forget("forget a person with one", map[string]string{"user": fmt.Sprint("telegram:", s.p.lastPrivate()-4)}, 1)
	forget("forget a person in groups", map[string]string{"user": "telegram:1007"}, 1)
}

// sweep restarts the server so that it erases the oldest twentieth of the conversations, and measures how long people
// wait for answers meanwhile.
func (s *scene) sweep(server *parleytest.Process) {
	s.t.Helper()
	parleytest.Must(s.t, server.Cmd.Process.Signal(syscall.SIGTERM))
	parleytest.Must(s.t, <-server.Ended)
	text, err := os.ReadFile(s.w.File)
	parleytest.Must(s.t, err)
	parleytest.Must(s.t, os.WriteFile(s.w.File, fmt.Appendf(text, "[retention]\ndays = %d\n", spread*19/20), 0o600))
	began := time.Now()
	server = s.http.Up()
	m := measured{name: "an answer during a sweep, worst and best"}
	for n := 1; m.best == 0 || !strings.Contains(server.Stderr.String(), `"msg":"erased"`); n++ {
		if time.Since(began) > 30*time.Minute {
			s.t.Fatal("the sweep does not end")
		}
		said := time.Now()
		s.w.Telegram.Say(int64(1+n%900), int64(1+n%900), "hello")
		s.w.WaitSaid(int64(1+n%900), 1+(n-1)/900)
		took := time.Since(said)
		m.first = max(m.first, took)
		if m.best == 0 || took < m.best {
			m.best = took
		}
		if took > 200*time.Millisecond {
			s.t.Logf("answer %d, %v after the start, took %v", n, time.Since(began).Round(time.Millisecond), took.Round(time.Millisecond))
		}
	}
	took := time.Since(began)
	s.table = append(s.table, measured{"the sweep of a twentieth", took, took}, m)
	before := time.Now().AddDate(0, 0, -spread*19/20-2)
	if oldest := s.oldest(); oldest.Before(before) {
		s.t.Errorf("a session that was last used at %v is still there", oldest)
	}
}

// oldest returns when the oldest of the first sessions in the list was last used.
func (s *scene) oldest() time.Time {
	s.t.Helper()
	var page struct{ Sessions []sessions.Info }
	parleytest.Must(s.t, s.client.Get(s.t.Context(), "/v1/sessions?limit=1000", &page))
	oldest := time.Now()
	for _, one := range page.Sessions {
		if one.Updated.Before(oldest) {
			oldest = one.Updated
		}
	}
	return oldest
}
