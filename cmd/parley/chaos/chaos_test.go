package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/sessions/archive/folder"
)

// These flags configure the long run, which make chaos starts.
var (
	chaosSeeds    = flag.String("chaos.seeds", "", "run the fleet through chaos once for each of these numbers; random draws one")
	chaosMessages = flag.Int("chaos.messages", 5000, "messages of one run")
	chaosChats    = flag.Int("chaos.chats", 200, "sessions of one run")
	chaosTable    = flag.String("chaos.table", "", "a file to which each run adds a line of a Markdown table")
)

func TestChaos(t *testing.T) {
	if *chaosSeeds == "" {
		t.Skip("this is for make chaos: no -chaos.seeds")
	}
	for text := range strings.FieldsSeq(*chaosSeeds) {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil && text != "random" {
			t.Fatalf("-chaos.seeds: %q is no number", text)
		}
		if text == "random" {
			seed = uint64(rand.Uint32())
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { runChaos(t, seed) })
		t.Run(fmt.Sprintf("schedules, seed %d", seed), func(t *testing.T) { slotsThroughChaos(t, seed, 3*time.Minute, "every 3s", "every 7s", "* * * * *") })
		t.Run(fmt.Sprintf("jobs, seed %d", seed), func(t *testing.T) { jobsThroughChaos(t, seed, 3*time.Minute) })
		t.Run(fmt.Sprintf("tasks, seed %d", seed), func(t *testing.T) { tasksThroughChaos(t, seed, 3*time.Minute) })
		t.Run(fmt.Sprintf("events, seed %d", seed), func(t *testing.T) { eventsThroughChaos(t, seed, 3*time.Minute, 4, 4) })
		t.Run(fmt.Sprintf("subscribers, seed %d", seed), func(t *testing.T) { subscribersThroughChaos(t, seed, 40, 15) })
		t.Run(fmt.Sprintf("nodes, seed %d", seed), func(t *testing.T) {
			nodesThroughChaos(t, seed, 100, max(1, *chaosMessages/200), 2*time.Second, time.Hour) // a message makes two calls
		})
		t.Run(fmt.Sprintf("nodes of one server, seed %d", seed), func(t *testing.T) {
			nodesOfOneThroughChaos(t, seed, 100, max(1, *chaosMessages/200), 2*time.Second, time.Hour)
		})
	}
}

// runChaos runs one storm over a full fleet and checks what it has left.
func runChaos(t *testing.T, seed uint64) {
	dir := t.TempDir()
	s := newStorm(fullFleet(t, archiveSettings(dir)), seed, *chaosChats, max(1, *chaosMessages / *chaosChats), 8*time.Second)
	s.past = newPast(s, folder.New(dir))
	s.armCrashpoints()
	s.run(5*time.Minute, breakMembers, breakMembers, breakServers, breakPlatforms, s.past.pass)
	s.findAgain(time.Minute)
	s.past.finish(2 * time.Minute)
	a := s.audit()
	s.past.check(a.addViolation)
	t.Logf("%s", a)
	for _, how := range s.unexpected {
		t.Logf("ended by itself: %s", how)
	}
	for _, wrong := range a.violations {
		t.Error(wrong)
	}
	if *chaosTable == "" {
		return
	}
	f, err := os.OpenFile(*chaosTable, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(a.tableRow() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// tableRow returns the figures of the run as a row of the table in docs/reliability.md.
func (a *audit) tableRow() string {
	s := a.storm
	sum := func(faults ...string) (n int) {
		for fault, times := range s.faults {
			if slices.ContainsFunc(faults, func(what string) bool { return strings.HasPrefix(fault, what) }) {
				n += times
			}
		}
		return n
	}
	return fmt.Sprintf("| %d | %d | %d | %d / %d / %d | %d / %d | %d / %d | %d / %d | %d | %d | %d / %d | %d | %d / %d | %v | %v | %d |",
		s.seed, a.messages, a.calls,
		sum("killed a "), sum("stopped a "), sum("restarted a "), sum("killed Redis"), sum("stopped Redis"),
		sum("killed PostgreSQL"), sum("stopped PostgreSQL"), sum("cut an ", "failed ", "limited "), sum("cut Slack", "had Slack", "lost Slack", "cut Discord", "had Discord", "lost Discord"),
		a.resumed, a.rerun, a.unknown, a.onceCalls, a.givenUp, a.interrupted, a.repeats,
		a.slowest.Round(time.Second), s.took.Round(time.Second), len(a.violations))
}
