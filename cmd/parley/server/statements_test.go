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

// A statementCount counts SQL statements by operation and table.
type statementCount struct {
	mu    sync.Mutex
	times map[string]int
	texts map[string][]string // the texts of each kind of statement
	group map[string]bool     // the kinds of statements in the open transaction
}

// begunApart is the kind of a transaction that begins a send without ending a turn: such a send delays the answer by
// one more transaction.
const begunApart = "a send that is begun apart from its publication"

// what matches the operation and the table of a statement.
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

// ofAnAnswer is how often one answer runs each kind of statement. Each statement costs processor time, so an
// additional one needs a reason.
var ofAnAnswer = map[string]int{
	"INSERT message": 2, "UPDATE message": 2, "DELETE message": 2, "INSERT seen": 2, // the inbound and the outbound message
	"SELECT entries": 1, "INSERT entries": 2, "UPDATE sessions": 2, // C1, and C3 together with C6 and C7
	"INSERT reservations": 1, "INSERT spending": 1, "UPDATE reservations": 1, "UPDATE spending": 1,
	"INSERT activity": 1, // the counts of a turn, written with its end so that a crash neither loses nor repeats them
	"INSERT sends":    1, "INSERT parts": 1, "UPDATE parts": 1,
}

// notOfAnAnswer matches statements whose number doesn't depend on the number of answers: those of transactions, which
// are grouped differently each time, and periodic ones.
var notOfAnAnswer = regexp.MustCompile(`^(BEGIN IMMEDIATE|COMMIT|\w+ (jobs|asks|schedules|processes|tasks|purges|cursors))$`)

// An answer in an ongoing conversation runs only the expected statements in a home's database.
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
		if most := ofAnAnswer[kind]*answers + answers/2; times[kind] > most && !notOfAnAnswer.MatchString(kind) { // some run only once in a while
			t.Errorf("%s: %d times for %d answers, want %d for each:\n%s", kind, times[kind], answers, ofAnAnswer[kind], strings.Join(texts[kind], "\n"))
		}
	}
	for kind := range ofAnAnswer {
		if times[kind] == 0 {
			t.Logf("%s is in no answer anymore: take it off the list", kind)
		}
	}
}
