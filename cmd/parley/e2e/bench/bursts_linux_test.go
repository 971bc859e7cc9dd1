package bench

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// bursts makes this many chats speak at the same moment to a bot with a slow model, so that all their turns run at
// once, and again when all are answered. It reports the most memory that the bot ever used, and the memory after the
// bursts; mapped-MB is the part of it that holds the program's own pages.
func bursts(b *testing.B, chats int64, times int) {
	c := newOutside(b)
	rest := memoryOf(b, c.pid, "VmRSS:")
	inFlight := float64(chats)
	for b.Loop() {
		for range times {
			began, used := time.Now(), c.processor(b)
			ctx, cancel := context.WithTimeout(b.Context(), 3*time.Minute)
			for chat := int64(1); chat <= chats; chat++ {
				c.said[chat]++
				c.tg.Say(chat, chat, slowWord)
			}
			for chat := int64(1); chat <= chats; chat++ {
				if err := c.tg.AwaitSent(ctx, chat, c.said[chat]); err != nil {
					b.Fatal(err)
				}
			}
			cancel()
			at := c.waited(b)
			inFlight = min(inFlight, at)
			b.Logf("%4.0f in flight, %v until all were answered, %v of processor: %.0f MB, %.0f MB at most until now",
				at, time.Since(began).Round(time.Millisecond), (c.processor(b) - used).Round(time.Millisecond),
				memoryOf(b, c.pid, "VmRSS:"), memoryOf(b, c.pid, "VmHWM:"))
		}
	}
	b.ReportMetric(rest, "MB-at-rest")
	b.ReportMetric(inFlight, "in-flight")
	b.ReportMetric(memoryOf(b, c.pid, "VmHWM:"), "RSS-peak-MB")
	b.ReportMetric(memoryOf(b, c.pid, "VmRSS:"), "RSS-after-MB")
	b.ReportMetric(memoryOf(b, c.pid, "RssFile:"), "mapped-MB")
}

// waited returns the largest number of requests that waited for the model at once since its last call.
func (c *contender) waited(b *testing.B) float64 {
	b.Helper()
	response, err := http.Get(strings.TrimSuffix(c.model, "/v1") + waitingPath)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var n float64
	if _, err := fmt.Fscan(response.Body, &n); err != nil {
		b.Fatal(err)
	}
	return n
}
