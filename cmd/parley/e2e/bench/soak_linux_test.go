package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// BenchmarkSoak makes 200 chats exchange 6,000 messages with the bot in all, or as many as soakVar says. For each tenth
// of them, it logs how fast the bot was and what it used. If conversations are restarted after 50 messages, a
// difference between the first tenth and the last one shows what grows with the past. If they are never restarted, the
// model's prompt grows, too, until it fills the window; then summaries replace its beginning again and again.
func BenchmarkSoak(b *testing.B) {
	b.Run("of-50", func(b *testing.B) { soak(b, 50, 0, "") })
	b.Run("endless", func(b *testing.B) { soak(b, 1<<30, 0, "") })
	b.Run("full", func(b *testing.B) { soak(b, 1<<30, 80, "context_tokens = 8000\n") })
}

// soak restarts each conversation after anew messages. It does not measure the first messages, of which each chat has
// as many as before says. settings contains more settings of agents.
func soak(b *testing.B, anew, before int, settings string) {
	const chats = 200
	messages := 6000
	if text := os.Getenv(soakVar); text != "" {
		var err error
		if messages, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	c := newOutsideWith(b, settings)
	if before > 0 {
		c.soak(b, chats, before, anew)
	}
	var first, last tenth
	for b.Loop() {
		for n := range 10 {
			last = c.soak(b, chats, max(1, messages/10/chats), anew)
			if n == 0 {
				first = last
			}
			b.Logf("%3d %%: %4.0f messages/s, %5.2f ms of processor each, %4.0f MB, %4.0f MB of it not of files", 10*(n+1), last.rate, last.processor, last.memory, last.anonymous)
		}
	}
	b.ReportMetric(last.rate/first.rate, "x-rate")
	b.ReportMetric(last.processor/first.processor, "x-cpu")
	b.ReportMetric(last.processor, "last-cpu-ms")
	b.ReportMetric(first.anonymous, "first-MB")
	b.ReportMetric(last.anonymous, "last-MB")
}

// soakVar is the environment variable that sets how many messages BenchmarkSoak exchanges.
const soakVar = "PARLEY_SOAK"

// A tenth contains the measurements of one tenth of a soak.
type tenth struct {
	rate      float64 // messages per second
	processor float64 // milliseconds of processor time per message
	memory    float64 // megabytes at the end
	anonymous float64 // the part of memory that is not pages of files, in megabytes
}

// soak makes each chat send this many messages, one after another, and returns the measurements.
func (c *contender) soak(b *testing.B, chats int64, each, anew int) tenth {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	said := c.said[1]
	began, used := time.Now(), c.processor(b)
	var people sync.WaitGroup
	for chat := int64(1); chat <= chats; chat++ {
		people.Go(func() {
			for n := range each {
				text := fmt.Sprint("what is to be said in message ", said+n)
				if (said+n+int(chat))%anew == anew-1 { // so that the chats restart one after another
					text = "/new"
				}
				c.tg.Say(chat, chat, text)
				if err := c.tg.AwaitSent(ctx, chat, said+n+1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	people.Wait()
	c.said[1] += each
	all := float64(chats) * float64(each)
	return tenth{
		rate:      all / time.Since(began).Seconds(),
		processor: float64((c.processor(b) - used).Microseconds()) / 1000 / all,
		memory:    memoryOf(b, c.pid, "VmRSS:"),
		anonymous: memoryOf(b, c.pid, "RssAnon:"),
	}
}
