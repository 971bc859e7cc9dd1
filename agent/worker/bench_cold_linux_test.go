package worker_test

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"parley/agent/openai"
	"parley/agent/sessioncache"
)

// BenchmarkColdSession compares messages to sessions of 300 entries that the worker has in memory
// with messages to sessions that it has to read, by the processor time of all that they take: the
// bus, the store, and a model that costs nothing. Many sessions have grown side by side, so that the
// entries of one lie far apart in the file.
func BenchmarkColdSession(b *testing.B) {
	const chats, turns, rounds = 100, 45, 4 // of 6 entries each
	used := map[string]time.Duration{}
	var x *bench
	round := func() {
		for chat := range chats {
			x.say(strconv.Itoa(chat), "ann", "what is to be said in this message?")
			if chat%10 == 9 {
				for range 10 {
					x.wantReply("", "that is done")
				}
			}
		}
	}
	n := 0
	for b.Loop() {
		n++
		x = newBench(b, nil)
		x.agent.Model, x.limit.TurnsHour, x.limit.TokensDay, x.limit.Turns = instantModel(b, openai.APIChat), 1<<30, 1<<50, 1000
		all := sessioncache.New(sessioncache.Bounds{})
		stop := x.runWith(all)
		for range turns {
			round()
		}
		for _, name := range []string{"warm", "cold", "warm", "cold"} {
			stop()
			if name == "warm" {
				stop = x.runWith(all)
			} else {
				stop = x.runWith(sessioncache.New(sessioncache.Bounds{Sessions: 1}))
			}
			round() // reads what is to be in memory
			before := processorTime(b)
			for range rounds {
				round()
			}
			used[name] += processorTime(b) - before
		}
		stop()
	}
	each := func(name string) float64 {
		return float64(used[name].Microseconds()) / 1000 / float64(2*n*rounds*chats)
	}
	b.ReportMetric(each("warm"), "warm-cpu-ms")
	b.ReportMetric(each("cold"), "cold-cpu-ms")
	b.ReportMetric(each("cold")/each("warm"), "x-warm")
}

// processorTime returns how much processor time this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
