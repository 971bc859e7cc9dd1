package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/bus"
)

// BenchmarkServerWatchers measures what watchers of the whole server cost: memory, and the time from when a message
// is published until its turn has ended. The clients run in the same process, so their cost is included.
func BenchmarkServerWatchers(b *testing.B) {
	for _, watchers := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			x := newRigOf(b, bus.Caps{})
			x.work(brief{})
			turns := x.turns()
			for range 20 { // let the server create what it creates only once
				turns.run()
			}
			before := bytesAlive()
			var got atomic.Int64
			x.watchAll(watchers, &got)
			cost := bytesAlive() - before
			got.Store(0)
			const pace = 20 * time.Millisecond
			tick := time.NewTicker(pace)
			defer tick.Stop()
			var took []time.Duration
			for b.Loop() {
				<-tick.C
				took = append(took, turns.run())
			}
			slices.Sort(took)
			b.ReportMetric(float64(cost)/1e6, "MB")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			want := int64(2 * len(took) * watchers) // each turn has two events: its beginning and its end
			for until := time.Now().Add(10 * time.Second); got.Load() < want && time.Now().Before(until); {
				<-time.After(time.Millisecond)
			}
			if got.Load() != want {
				b.Errorf("watchers got %d events, want %d", got.Load(), want)
			}
		})
	}
}

// brief is a model that answers at once with a short text.
type brief struct{}

func (brief) Info() llm.Info { return llm.Info{Name: "brief"} }

func (brief) Generate(context.Context, *llm.Request, func(llm.Delta)) (*llm.Answer, error) {
	return &llm.Answer{Usage: llm.Usage{Input: 1, Output: 1}, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "yes"}}}, nil
}

// bytesAlive collects garbage and returns the bytes of live objects and stacks.
func bytesAlive() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// benchSessions is the number of sessions over which a benchmark spreads its turns.
const benchSessions = 50

// turnsOf runs turns in a rig, one after another.
type turnsOf struct {
	x     *rig
	n     int
	ended chan string
}

func (x *rig) turns() *turnsOf {
	x.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t := &turnsOf{x: x, ended: make(chan string, 16)}
	var reading sync.WaitGroup
	for i := range benchSessions {
		news, err := x.bus.Subscribe(ctx, bus.SessionFeed(fmt.Sprint("main:test:", i)), 0)
		if err != nil {
			x.t.Fatal(err)
		}
		reading.Go(func() {
			for e, err := range news {
				if err == nil && (e.Type == bus.TurnComplete || e.Type == bus.TurnError) {
					t.ended <- e.Type + " " + e.Turn
				}
			}
		})
	}
	x.t.Cleanup(func() { cancel(); reading.Wait() })
	return t
}

// run publishes a message, waits until its turn has ended, and returns how long that took.
func (t *turnsOf) run() time.Duration {
	t.x.t.Helper()
	t.n++
	id, chat := fmt.Sprint("m", t.n), fmt.Sprint(t.n%benchSessions)
	began := time.Now()
	err := bus.PublishInbound(t.x.t.Context(), t.x.bus, "main:test:"+chat, bus.Inbound{
		ID: id, Kind: bus.Said, From: bus.Person{ID: "test:" + id}, At: bus.Address{Channel: "test", Chat: chat}, Text: "is it?", SentAt: began,
	}, false)
	if err != nil {
		t.x.t.Fatal(err)
	}
	select {
	case got := <-t.ended:
		if got != bus.TurnComplete+" "+id {
			t.x.t.Fatalf("got %s of turn %s", got, id)
		}
	case <-time.After(10 * time.Second):
		t.x.t.Fatal("a turn does not end")
	}
	return time.Since(began)
}

// watchAll opens streams of the whole server and counts their events in got.
func (x *rig) watchAll(watchers int, got *atomic.Int64) {
	x.t.Helper()
	var reading sync.WaitGroup
	var all []net.Conn
	for range watchers {
		c, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
		if err != nil {
			x.t.Fatal(err)
		}
		all = append(all, c)
		fmt.Fprintf(c, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", readToken)
		in := bufio.NewReaderSize(c, 1024)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			x.t.Fatal(resp, err)
		}
		line := bufio.NewReaderSize(resp.Body, 1024)
		for text := ""; text != "data: {}\n"; {
			if text, err = line.ReadString('\n'); err != nil {
				x.t.Fatal(err)
			}
		}
		reading.Go(func() { countEvents(line, got) })
	}
	x.t.Cleanup(func() {
		for _, c := range all {
			c.Close()
		}
		reading.Wait()
	})
}

// countEvents reads a stream until it ends, and counts its events in got.
func countEvents(in *bufio.Reader, got *atomic.Int64) {
	for {
		text, err := in.ReadSlice('\n')
		if err != nil && err != io.EOF {
			return
		}
		if strings.HasPrefix(string(text), "event: ") {
			got.Add(1)
		}
		if err != nil {
			return
		}
	}
}
