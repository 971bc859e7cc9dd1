package redisbus_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/redisbus"
	"parley/bus/redisbus/redistest"
)

// turnEvents returns the events of a turn without tools, with an answer in one piece.
func turnEvents(session, turn string) []bus.Event {
	to := bus.Address{Channel: "telegram", Chat: session}
	list := []bus.Event{
		{Type: bus.TurnStart, Route: to},
		{Type: bus.BlockStart, Kind: "user"}, {Type: bus.BlockDelta, Kind: "user", Delta: "hello"}, {Type: bus.BlockStop, Kind: "user"},
		{Type: bus.BlockStart, Kind: "text", Route: to}, {Type: bus.BlockDelta, Kind: "text", Delta: "you said hello", Route: to},
		{Type: bus.Used, Usage: &bus.Usage{Model: "scripted", Input: 100, Output: 10}, Route: to}, {Type: bus.BlockStop, Kind: "text", Route: to},
		{Type: bus.TurnComplete, Route: to},
	}
	for i := range list {
		list[i].Session, list[i].Turn = session, turn
	}
	return list
}

// BenchmarkEvents measures what the events of a turn cost Redis, in processor time and calls of PUBLISH, without
// watchers and with a gateway that follows its channel.
func BenchmarkEvents(b *testing.B) {
	for _, feed := range []bus.Feed{"", bus.ChannelFeed("telegram")} {
		b.Run("watched="+string(feed), func(b *testing.B) {
			s := redistest.New(b)
			x, err := redisbus.Open(b.Context(), redisbus.Config{URL: s.URL()})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = x.Close() }()
			if feed != "" {
				seen, err := x.Subscribe(b.Context(), feed, 0)
				if err != nil {
					b.Fatal(err)
				}
				go func() {
					for _, err := range seen { // until the bus is closed
						if err != nil {
							return
						}
					}
				}()
			}
			c := connect(b, s.URL())
			stat := func(section, pattern string) (n float64) {
				info, err := c.Info(b.Context(), section).Result()
				if err != nil {
					b.Fatal(err)
				}
				for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(info, -1) {
					part, _ := strconv.ParseFloat(m[1], 64) // the pattern matches only numbers
					n += part
				}
				return n
			}
			busy := func() float64 { return stat("cpu", `used_cpu_(?:user|sys):([0-9.]+)`) * 1e6 }
			published := func() float64 { return stat("commandstats", `cmdstat_publish:calls=(\d+)`) }
			usec, calls := busy(), published()
			turns := 0
			for b.Loop() {
				session := fmt.Sprint("main:telegram:", turns%100)
				for _, e := range turnEvents(session, strconv.Itoa(turns)) {
					x.Emit(e)
				}
				if turns++; turns%100 == 0 {
					bustest.Await(b, "the events to be sent", func() bool { return x.Unsent() == 0 })
				}
			}
			bustest.Await(b, "the events to be sent", func() bool { return x.Unsent() == 0 })
			b.ReportMetric((busy()-usec)/float64(turns), "redis-µs/turn")
			b.ReportMetric((published()-calls)/float64(turns), "PUBLISH/turn")
			b.ReportMetric(0, "ns/op")
		})
	}
}
