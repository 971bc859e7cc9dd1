package main

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// The queue of a machine with one core and random arrivals is as theory predicts: at 80% load, jobs of equal length
// take three times as long as their work, on average.
func TestAQueueIsAsTheorySays(t *testing.T) {
	var c clock
	m := &machine{clock: &c, cores: 1}
	random := rand.New(rand.NewPCG(1, 1))
	const jobs = 200_000
	var took time.Duration
	var next func(left int)
	next = func(left int) {
		began := c.now
		m.work(time.Millisecond, func() { took += c.now - began })
		if left > 1 {
			c.after(time.Duration(random.ExpFloat64()/0.8*float64(time.Millisecond)), func() { next(left - 1) })
		}
	}
	next(jobs)
	c.run()
	if mean := took.Seconds() * 1000 / jobs; math.Abs(mean-3) > 0.1 {
		t.Errorf("a job takes %.3f ms, want 3", mean)
	}
	if used := m.used(c.now); math.Abs(used-0.8) > 0.01 {
		t.Errorf("the machine worked %.3f of the time, want 0.8", used)
	}
}

// After any failure, everybody is answered, and only those affected by it wait.
func TestAFailureIsWaitedOut(t *testing.T) {
	calm := plan{gateways: 2, workers: 4, shards: 4, postgres: 4, perSecond: 50, lasts: time.Minute, sessions: 10_000, costs: measured()}
	for name, c := range map[string]struct {
		change func(*plan)
		least  time.Duration // how long at least somebody waits
		most   time.Duration // how long anybody waits at most
	}{
		"nothing":    {func(*plan) {}, 0, 100 * time.Millisecond},
		"a worker":   {func(p *plan) { p.dead = 1 }, takeover - time.Second, time.Minute},
		"a shard":    {func(p *plan) { p.shardAway = 10 * time.Second }, 9 * time.Second, 11 * time.Second},
		"PostgreSQL": {func(p *plan) { p.pgOut = 10 * time.Second }, 9 * time.Second, 11 * time.Second},
	} {
		p := calm
		c.change(&p)
		r := simulate(p, 7)
		if r.answered != r.said || r.said < 2500 {
			t.Errorf("%s fails: %d of %d messages are answered", name, r.answered, r.said)
		}
		if longest := at(r.delays, 1); longest < c.least || longest > c.most {
			t.Errorf("%s fails: somebody waits %v, want %v to %v", name, longest, c.least, c.most)
		}
		if half := at(r.delays, 0.5); half > 10*time.Millisecond {
			t.Errorf("%s fails: half of all wait %v", name, half)
		}
		if moved := r.moved > 0; moved != (p.dead > 0) {
			t.Errorf("%s fails: %d turns move", name, r.moved)
		}
	}
	if again := simulate(calm, 7); at(again.delays, 0.99) != at(simulate(calm, 7).delays, 0.99) {
		t.Error("the same seed gives another result")
	}
}

// The page shows what the program prints.
func TestThePageShowsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	showCapacities(&printed, measured())
	_, table, found := strings.Cut(printed.String(), "\n\n")
	if !found || !strings.Contains(string(page), table) {
		t.Errorf("docs/scale.md does not show what is printed; put this there, and what showFleets prints:\n%s", printed.String())
	}
}
