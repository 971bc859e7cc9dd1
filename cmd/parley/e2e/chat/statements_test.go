package chat

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// ofUpkeep matches the statements that a process makes at regular times, regardless of what people say.
var ofUpkeep = regexp.MustCompile(`^(SELECT [^(]* FROM|DELETE FROM|INSERT INTO|UPDATE) (jobs|asks|schedules|processes|audit|notes)\b|^-- ping`)

// ofIndexing matches the statements of the process that indexes messages from time to time. It includes BEGIN and
// COMMIT, because a turn writes with single statements and uses no transactions.
var ofIndexing = regexp.MustCompile(`\b(entry_words|entry_words_words)\b|^(BEGIN|COMMIT)\b|^SELECT (max\(id\)|min\(id\)|id) FROM |\bindexed\b|^SELECT e\.session, e\.n, .* FROM entries e WHERE e\.session = \$1 AND e\.n > \$2 `)

// A turn in an existing conversation sends a known list of statements to PostgreSQL and commands to Redis.
func TestWhatATurnAsksOfTheServers(t *testing.T) {
	t.Parallel()
	const turns = 20
	for _, c := range []struct {
		name, said, more string
		statements       int // the most statements of one turn
		published        int // the most that Redis publishes for one turn: the events for the gateway, and the offer to the worker
	}{
		{"without tools", "hello", "", 5, 7},
		{"without tools, with caps on money", "hello", "[budget]\nuser_day = 100000\nday = 1000000\nmonth = 10000000\n", 5, 7},
		{"three rounds of a tool", "remember", "", 20, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := parleytest.StartRedis(t).URL()
			redis, redisURL := newWiretap(t, server, readCommands)
			postgres, postgresURL := newWiretap(t, sqldbtest.New(t), readStatements)
			w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
				if r.Said() == "remember" && r.Rounds() < 3 {
					return agenttest.Calls(agenttest.ToolCall{Name: "memory_read", Args: `{}`})
				}
				return agenttest.Reply("you said " + r.Said())
			}, fmt.Sprintf("[bus]\nurl = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n%s", redisURL, postgresURL, t.TempDir(), c.more))
			text, err := os.ReadFile(w.File)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.Replace(text, []byte("[model]\n"), []byte("[model]\nprice_input = 1\nprice_output = 2\n"), 1)
			if err := os.WriteFile(w.File, text, 0o600); err != nil {
				t.Fatal(err)
			}
			w.Serve().WaitServing()
			said := func(n int) {
				for range n {
					sent, settled := len(w.Telegram.Sent(2)), redis.count("script settle")
					w.Telegram.Say(2, 2, c.said)
					w.WaitSaid(2, sent+1)
					parleytest.WaitFor(t, "the turn to be over", func() bool { return redis.count("script settle") == settled+2 })
				}
			}
			said(2)
			_, _ = redis.take()
			_, _ = postgres.take()
			before := timesPublished(t, server)

			said(turns)
			published := timesPublished(t, server) - before
			asked, trips := postgres.take()
			asked = slices.DeleteFunc(asked, ofUpkeep.MatchString)
			all := len(asked)
			asked = slices.DeleteFunc(asked, func(a string) bool { return ofIndexing.MatchString(strings.Join(strings.Fields(a), " ")) })
			if n := all - len(asked); n > 2*turns+5 { // each pass of upkeep makes about twenty statements
				t.Errorf("%d statements for %d turns index what was said", n, turns)
			}
			t.Logf("%d statements, %d round trips, %d events published", len(asked)/turns, trips/turns, published/turns)
			if len(asked) > turns*c.statements+turns/2 { // some statements are made only now and then
				t.Errorf("%d statements for %d turns, want %d for each:\n%s", len(asked), turns, c.statements, tally(asked))
			}
			if published > turns*c.published+turns/2 { // the end of an earlier turn may be among these
				t.Errorf("PUBLISH %d times for %d turns, want at most %d for each", published, turns, c.published)
			}
			asked, _ = redis.take()
			for _, s := range []string{"script publish", "script settle"} { // for the incoming and the outgoing message
				if n := len(slices.DeleteFunc(slices.Clone(asked), func(a string) bool { return a != s })); n != 2*turns {
					t.Errorf("%s: %d times for %d turns, want twice for each:\n%s", s, n, turns, tally(asked))
				}
			}
		})
	}
}

// tally lists the statements and how often each was sent.
func tally(asked []string) string {
	times := map[string]int{}
	for _, a := range asked {
		times[strings.Join(strings.Fields(a), " ")]++
	}
	var list []string
	for _, a := range slices.Sorted(maps.Keys(times)) {
		list = append(list, fmt.Sprintf("%4d %.160s", times[a], a))
	}
	return strings.Join(list, "\n")
}

// timesPublished returns how often a Redis has run PUBLISH, including in scripts.
func timesPublished(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "INFO commandstats\r\nQUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`cmdstat_publish:calls=(\d+)`).FindSubmatch(answer)
	if calls == nil {
		return 0
	}
	n, err := strconv.Atoi(string(calls[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
