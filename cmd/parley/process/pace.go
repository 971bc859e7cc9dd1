package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// usual is the percentage of Go, of what is in use, that may be allocated before the next
	// collection.
	usual = 100
	// seldom is that percentage where so little is in use that a collection would come after every
	// few messages, and take a fifth of the processor's time. Go collects nothing below 4 MB at
	// 100 %, nor below 32 MB at this one.
	seldom = 800
	// spare is how many bytes may be allocated before the next collection where little is in use,
	// and times how many times of what is in use, if that is more.
	spare = 32 << 20
	times = 3
	// often is that percentage where much is in use. At 25 six bursts of 2,000 turns take 10 % less
	// memory, and no more processor time; but where hundreds of long conversations stay in memory, nearly
	// half of the processor's time goes to looking through them.
	often = 50
	// wanted is how many bytes what is in use and what is allocated before the next collection
	// should not exceed together.
	wanted = 80 << 20
)

// Adapt makes the collector run more often while much memory is in use, such as by thousands of
// turns, and less often while little is, until restore is called. It leaves a process alone whose environment has GOGC: its
// operator has decided.
func Adapt() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	p := &pace{}
	p.watch()
	return p.stop
}

// A pace adapts the collector's percentage to what is in use, after each collection.
type pace struct {
	mu      sync.Mutex
	stopped bool
}

// A cycle is an object that nothing refers to, so that the next collection finds it. Its size
// keeps the runtime from putting it together with other objects.
type cycle [64]byte

// watch has the next collection call adapt.
func (p *pace) watch() {
	runtime.AddCleanup(new(cycle), (*pace).adapt, p)
}

// adapt sets the percentage for what the last collection has left in use.
func (p *pace) adapt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	now := measure()
	// Setting it stops all goroutines for a moment, so small differences are left.
	percent := percentFor(now)
	small := 5 + now.percent/10
	if percent > now.percent+small || percent+small < now.percent {
		debug.SetGCPercent(int(percent))
	}
	p.watch()
}

func (p *pace) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	debug.SetGCPercent(usual)
}

// A use is how much memory is in use, in bytes, and the percentage that is set.
type use struct {
	live    uint64 // what the last collection has left
	roots   uint64 // what it had to read besides: that too counts for the percentage
	stacks  uint64 // what the stacks take, also where they are empty
	percent uint64
}

// measure returns how much is in use now.
func measure() use {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/gc/gogc:percent"},
	}
	metrics.Read(samples)
	n := make([]uint64, len(samples))
	for i, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			n[i] = s.Value.Uint64()
		}
	}
	return use{live: n[0], roots: n[1] + n[2], stacks: n[3], percent: n[4]}
}

// percentFor returns the percentage for what is in use.
func percentFor(u use) uint64 {
	counted := max(u.live+u.roots, 1)
	room := min(wanted-min(wanted, u.live+u.stacks), max(times*min(counted, wanted), spare))
	return min(max(room*100/counted, often), seldom)
}
