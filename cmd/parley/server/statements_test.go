package server

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/config"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/server/platforms"
	"parley/sessions/sqldb"
)

// A statementCount counts statements by what they do with which table.
type statementCount struct {
	mu    sync.Mutex
	times map[string]int
	texts map[string][]string // of each kind, as they are written
	group map[string]bool     // the kinds of the transaction that is open
}

// begunApart counts as a statement each transaction that begins a send and ends no turn: an answer
// waits for it once more.
const begunApart = "a send that is begun apart from its publication"

// what finds in a statement what it does, and with which table.
var what = regexp.MustCompile(`^(?is)\s*(SELECT\b.*?\bFROM|INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM|WITH|\w+)\s+\(*(?:SELECT.*?FROM\s+)?(\w+)`)

func (c *statementCount) add(query string) {
	query = strings.Join(strings.Fields(query), " ")
	kind := query
	if m := what.FindStringSubmatch(query); m != nil && query != "BEGIN IMMEDIATE" {
		verb, _, _ := strings.Cut(strings.ToUpper(m[1]), " ")
		kind = verb + " " + m[2]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case kind == "BEGIN IMMEDIATE":
		c.group = map[string]bool{}
	case kind == "COMMIT" && c.group["INSERT sends"] && !c.group["INSERT entries"]:
		c.times[begunApart]++
	case c.group != nil:
		c.group[kind] = true
	}
	c.times[kind]++
	if !slices.Contains(c.texts[kind], query) {
		c.texts[kind] = append(c.texts[kind], query)
	}
}

func (c *statementCount) take() (times map[string]int, texts map[string][]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	times, texts = c.times, c.texts
	c.times, c.texts = map[string]int{}, map[string][]string{}
	return times, texts
}

// ofAnAnswer is how often an answer runs statements of each kind. Each costs time of a processor, so
// one more needs a reason.
var ofAnAnswer = map[string]int{
	"INSERT message": 2, "UPDATE message": 2, "DELETE message": 2, "INSERT seen": 2, // in, and out
	"SELECT entries": 1, "INSERT entries": 2, "UPDATE sessions": 2, // C1, and C3 with C6 and C7
	"INSERT reservations": 1, "INSERT spending": 1, "UPDATE reservations": 1, "UPDATE spending": 1,
	"INSERT activity": 1, // what is counted of a turn, beside its end, where a crash cannot lose it or count it twice
	"INSERT sends":    1, "INSERT parts": 1, "UPDATE parts": 1,
}

// notOfAnAnswer are the statements of which there are as many as groups of writes, which differ, and
// those that are made from time to time.
var notOfAnAnswer = regexp.MustCompile(`^(BEGIN IMMEDIATE|COMMIT|\w+ (jobs|asks|schedules|processes|tasks|purges|cursors))$`)

// What an answer asks of the database of a home, in a conversation that goes on.
func TestWhatAnAnswerAsksOfTheHome(t *testing.T) {
	const answers = 20
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response { return agenttest.Reply("you said " + r.Said()) }, "")
	cfg, err := config.Load(config.Options{File: w.File, Home: w.Home, Platforms: platforms.Settings()})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	lists, err := models.New(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	count := &statementCount{}
	count.take()
	s, err := Open(sqldb.Watch(t.Context(), count.add), Config{Settings: cfg, Models: lists, Role: Both, Log: log, Offer: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, nil) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	said := 0
	say := func(n int) {
		for range n {
			w.Telegram.Say(2, 2, "hello")
			said++
			w.WaitSaid(2, said)
		}
	}
	say(3)
	count.take()
	say(answers)
	times, texts := count.take()
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		if most := ofAnAnswer[kind]*answers + answers/2; times[kind] > most && !notOfAnAnswer.MatchString(kind) { // some are made once in a while
			t.Errorf("%s: %d times for %d answers, want %d for each:\n%s", kind, times[kind], answers, ofAnAnswer[kind], strings.Join(texts[kind], "\n"))
		}
	}
	for kind := range ofAnAnswer {
		if times[kind] == 0 {
			t.Logf("%s is in no answer anymore: take it off the list", kind)
		}
	}
}
