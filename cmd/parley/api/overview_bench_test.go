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

// BenchmarkServerWatchers measures what watchers of the whole server cost: memory, and time of a message
// from when it is published until its turn has ended. The clients are in the same process: what they
// cost is measured with it.
func BenchmarkServerWatchers(b *testing.B) {
	for _, watchers := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			x := newRigOf(b, bus.Caps{})
			x.work(brief{})
			turns := x.turns()
			for range 20 { // what is made once
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
			want := int64(2 * len(took) * watchers) // the beginning and the end of each turn
			for until := time.Now().Add(10 * time.Second); got.Load() < want && time.Now().Before(until); {
				<-time.After(time.Millisecond)
			}
			if got.Load() != want {
				b.Errorf("watchers got %d events, want %d", got.Load(), want)
			}
		})
	}
}

// brief is a model that answers at once.
type brief struct{}

func (brief) Info() llm.Info { return llm.Info{Name: "brief"} }

func (brief) Generate(context.Context, *llm.Request, func(llm.Delta)) (*llm.Answer, error) {
	return &llm.Answer{Usage: llm.Usage{Input: 1, Output: 1}, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "yes"}}}, nil
}

// bytesAlive returns the bytes of all that is alive, and of all stacks.
func bytesAlive() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// benchSessions is how many sessions the turns of a benchmark are spread over.
const benchSessions = 50

// turnsOf runs turns one after the other.
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

// run runs a turn, of a person who has not spoken yet, and returns how long it took.
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

// watchAll opens streams of the whole server, and counts the events that they get.
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

// countEvents counts the events of a stream until it ends.
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
