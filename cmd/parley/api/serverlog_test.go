package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"parley/cmd/parley/api"
	"parley/tools/process"
	"parley/tools/testlog"
)

// logging returns a logger, and an option that makes a rig serve its log.
func logging(most int) (*slog.Logger, func(*rig)) {
	held := process.NewLog(most)
	return slog.New(held.Beside(slog.NewTextHandler(new(testlog.Buffer), nil))), func(x *rig) { x.cfg.ServerLog = held }
}

type logPage struct {
	Lines []struct {
		ID             int64
		Level, Message string
		Fields         map[string]any
	}
	Next int64
}

// Only admins may read the log. It comes in pages, newest lines first.
func TestTheLogIsRead(t *testing.T) {
	log, has := logging(1 << 20)
	x := newRig(t, has)
	log.Info("one", slog.String("session", "main:web:chat"))
	log.Warn("two")
	log.Info("three")
	for _, token := range []string{ciToken, opsToken, chatToken, readToken, scrapeTok} {
		for _, path := range []string{"/v1/logs", "/v1/logs/events"} {
			if r := x.get(path, token); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s may read %s: %d", token, path, r.StatusCode)
			}
		}
	}
	said := func(p logPage) (all string) {
		for _, l := range p.Lines {
			all += l.Level + " " + l.Message + ", "
		}
		return all
	}
	first := into[logPage](t, x.get("/v1/logs?limit=2", adminToken))
	if said(first) != "WARN two, INFO three, " || first.Next != first.Lines[0].ID {
		t.Errorf("the newest are %+v", first)
	}
	rest := into[logPage](t, x.get(fmt.Sprint("/v1/logs?limit=2&before=", first.Next), adminToken))
	if said(rest) != "INFO one, " || rest.Next != 0 || rest.Lines[0].Fields["session"] != "main:web:chat" {
		t.Errorf("those before are %+v", rest)
	}
	if warned := into[logPage](t, x.get("/v1/logs?level=warn", adminToken)); said(warned) != "WARN two, " {
		t.Errorf("the warnings are %+v", warned)
	}
	for _, query := range []string{"?level=loud", "?limit=x", "?before=-1"} {
		if r := x.get("/v1/logs"+query, adminToken); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.body)
		}
	}
	if r := x.get("/v1/logs/events?level=loud", adminToken); r.StatusCode != http.StatusBadRequest {
		t.Errorf("followed: %d %s", r.StatusCode, r.body)
	}
}

// followLog opens a stream of the log.
func (x *rig) followLog(query, lastID string) *feed {
	x.t.Helper()
	f := x.open("/v1/logs/events"+query, "LogLine", adminToken, lastID)
	x.t.Cleanup(f.close)
	return f
}

// wantLine checks the message of the next line, and returns its id.
func (f *feed) wantLine(message string) string {
	f.t.Helper()
	e := f.must()
	if e.kind != "line" || !strings.Contains(e.data, `"message":"`+message+`"`) {
		f.t.Fatalf("got %+v, want the line %s", e, message)
	}
	return e.id
}

// A stream of the log starts with the newest lines, continues with each new line, and resumes after a cut. If lines
// are missing, it says so.
func TestTheLogIsFollowed(t *testing.T) {
	log, has := logging(2 << 10)
	x := newRig(t, has)
	log.Info("one")
	log.Warn("two")
	all, warned := x.followLog("", "").begin(), x.followLog("?level=warn", "").begin()
	all.wantLine("one")
	at := all.wantLine("two")
	warned.wantLine("two")
	log.Info("three")
	log.Error("four")
	all.wantLine("three")
	all.wantLine("four")
	warned.wantLine("four")
	again := x.followLog("", at)
	again.wantLine("three")
	again.wantLine("four")
	for n := range 100 {
		log.Info("more", slog.Int("n", n))
	}
	late := x.followLog("", at).begin()
	for e := late.must(); !strings.Contains(e.data, `{"n":99}`); e = late.must() {
		if e.kind != "line" {
			t.Errorf("got %+v", e)
		}
	}
	x.followLog("", "1").begin() // an id of an earlier process
}

// A stream of the log ends when its caller may no longer read it.
func TestTheLogIsNotFollowedForLonger(t *testing.T) {
	log, has := logging(1 << 20)
	var gone atomic.Bool
	x := newRig(t, has, func(x *rig) {
		x.cfg.Access.Tokens = func() []api.Token {
			for _, token := range tokens() {
				if token.Secret == adminToken && gone.Load() {
					return []api.Token{{Name: token.Name, Secret: token.Secret, May: []string{"read"}}}
				}
			}
			return tokens()
		}
	})
	f := x.followLog("", "").begin()
	log.Info("one")
	f.wantLine("one")
	gone.Store(true)
	x.Recheck()
	if e, err := f.next(); err == nil {
		t.Errorf("it goes on with %+v", e)
	}
}
