package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// usualPercent is Go's default percentage: how much may be allocated before the next collection, relative to the
	// memory in use.
	usualPercent = 100
	// seldomPercent is that percentage if so little memory is in use that a collection would happen after every few
	// messages, and take a fifth of the processor's time. Go collects nothing below 4 MB at 100 %, nor below 32 MB
	// at this percentage.
	seldomPercent = 800
	// spareBytes is how many bytes may be allocated before the next collection if little memory is in use; spareTimes
	// times the memory in use may be allocated if that is more.
	spareBytes = 32 << 20
	spareTimes = 3
	// oftenPercent is that percentage if much memory is in use. At 25, six bursts of 2,000 turns take 10 % less memory, and
	// no more processor time; but if hundreds of long conversations stay in memory, nearly half of the processor's
	// time is spent scanning them.
	oftenPercent = 50
	// wantedBytes is how many bytes the memory in use and the memory allocated before the next collection should not
	// exceed together.
	wantedBytes = 80 << 20
)

// Adapt makes the garbage collector run more often while much memory is in use, for example by thousands of turns,
// and less often while little is, until restore is called. It does nothing if GOGC is set in the environment,
// because then the operator has decided.
func Adapt() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	p := &pace{}
	p.watch()
	return p.stop
}

// A pace adapts the collector's percentage to the memory in use, after each collection.
type pace struct {
	mu      sync.Mutex
	stopped bool
}

// A cycle is an object that nothing refers to, so the next collection frees it and calls its cleanup. Its size keeps
// the runtime from allocating it together with other objects.
type cycle [64]byte

// watch makes the next collection call adapt.
func (p *pace) watch() {
	runtime.AddCleanup(new(cycle), (*pace).adapt, p)
}

// adapt sets the percentage for the memory that the last collection has left in use.
func (p *pace) adapt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	now := measure()
	// Setting the percentage stops all goroutines for a moment, so small differences are ignored.
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
	debug.SetGCPercent(usualPercent)
}

// A use says how much memory is in use, in bytes, and which percentage is set.
type use struct {
	live    uint64 // what the last collection has left in use
	roots   uint64 // what the collection had to read in addition, which also counts for the percentage
	stacks  uint64 // the size of the stacks, including their unused parts
	percent uint64
}

// measure returns how much memory is in use now.
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

// percentFor returns the percentage at which the memory grows to wantedBytes before the next collection, or by less if
// little is in use; never less than oftenPercent, nor more than seldomPercent.
func percentFor(u use) uint64 {
	counted := max(u.live+u.roots, 1)
	room := min(wantedBytes-min(wantedBytes, u.live+u.stacks), max(spareTimes*min(counted, wantedBytes), spareBytes))
	return min(max(room*100/counted, oftenPercent), seldomPercent)
}
