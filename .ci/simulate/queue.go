package main

import (
	"container/heap"
	"time"
)

// A clock runs events in the order of their times.
type clock struct {
	now    time.Duration
	events eventHeap
	count  int
}

type event struct {
	at   time.Duration
	turn int // order of planning, which decides between events of the same time
	do   func()
}

// after schedules an event.
func (c *clock) after(d time.Duration, do func()) {
	c.count++
	heap.Push(&c.events, event{c.now + d, c.count, do})
}

// run runs all events.
func (c *clock) run() {
	for c.events.Len() > 0 {
		e, _ := heap.Pop(&c.events).(event)
		c.now = e.at
		e.do()
	}
}

type eventHeap []event

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(a, b int) bool {
	return h[a].at < h[b].at || h[a].at == h[b].at && h[a].turn < h[b].turn
}
func (h eventHeap) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *eventHeap) Push(e any) {
	one, _ := e.(event)
	*h = append(*h, one)
}
func (h *eventHeap) Pop() any {
	all := *h
	last := all[len(all)-1]
	all[len(all)-1] = event{}
	*h = all[:len(all)-1]
	return last
}

// A machine processes jobs in the order in which they arrive, one on each of its cores at a time.
type machine struct {
	clock *clock
	cores int
	away  time.Duration // it begins no job before this time

	busy    int
	resumes bool // whether begin is scheduled for the time when it is back
	waiting []job
	worked  time.Duration // total working time of all cores
}

type job struct {
	needs time.Duration // time of one core
	done  func()
}

// work makes the machine do a job, and calls done when the job has ended.
func (m *machine) work(needs time.Duration, done func()) {
	m.waiting = append(m.waiting, job{needs, done})
	m.begin()
}

// begin begins jobs on the free cores.
func (m *machine) begin() {
	if left := m.away - m.clock.now; left > 0 {
		if !m.resumes {
			m.resumes = true
			m.clock.after(left, m.begin)
		}
		return
	}
	m.resumes = false
	for m.busy < m.cores && len(m.waiting) > 0 {
		next := m.waiting[0]
		m.waiting = m.waiting[1:]
		m.busy++
		m.clock.after(next.needs, func() {
			m.busy--
			m.worked += next.needs
			next.done()
			m.begin()
		})
	}
}

// used returns the part of a time in which the machine has worked.
func (m *machine) used(time time.Duration) float64 {
	return m.worked.Seconds() / (time.Seconds() * float64(m.cores))
}
