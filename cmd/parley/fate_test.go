package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Signals at random find a process almost always waiting. The lines between two
// steps, where it matters most, are microseconds long; so processes also kill or
// stop themselves there.

// pointsOf are the lines at which a process of that role may.
func pointsOf(role string) []string {
	if role == roleGateway {
		return []string{
			"send:begun", "send:held", "send:sent", "send:marked", "send:settled",
			"draft:begun", "draft:sent", "draft:marked", "draft:edited", "draft:closed",
		}
	}
	return []string{
		"c1:before", "c1", "c3:before", "c3", "c4:before", "c4", "c4:held", "c5:before", "c5",
		"c6:before", "c6", "c7:published", "c7", "settled",
	}
}

// fate is more for the environment of a process's next start: the line at which
// it stops or kills itself, if it comes to that.
func (s *storm) fate(role string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	points := pointsOf(role)
	what := []string{"PARLEY_STOP_AT", "PARLEY_KILL_AT"}[s.random.IntN(2)]
	return []string{fmt.Sprintf("%s=%s/%d", what, points[s.random.IntN(len(points))], 1+s.random.IntN(20))}
}

// wake continues processes that have stopped themselves, once that was for
// longer than a lease, until over.
func (s *storm) wake(random *rand.Rand, over <-chan struct{}) {
	until := map[*member]time.Time{}
	for pause(random, 500*time.Millisecond, time.Millisecond, over) {
		for m := range s.standing() {
			switch at, known := until[m]; {
			case !known:
				until[m] = time.Now().Add(longStop(random))
				s.did("stopped a " + m.role + " at a line")
			case time.Now().After(at):
				delete(until, m)
				m.signal(syscall.SIGCONT, 0)
			}
		}
	}
	for m := range s.standing() {
		m.signal(syscall.SIGCONT, 0)
	}
}

// standing are the members that have stopped themselves.
func (s *storm) standing() map[*member]bool {
	pids, list := map[int]*member{}, []string{}
	for _, m := range s.members {
		m.mu.Lock()
		if m.cmd != nil && m.cmd.Process != nil && !m.stopped {
			pids[m.cmd.Process.Pid] = m
			list = append(list, strconv.Itoa(m.cmd.Process.Pid))
		}
		m.mu.Unlock()
	}
	all := map[*member]bool{}
	out, _ := exec.Command("ps", "-o", "pid=,stat=", "-p", strings.Join(list, ",")).Output() // it fails if one of them is gone
	for line := range strings.Lines(string(out)) {
		var pid int
		var state string
		if _, err := fmt.Sscan(line, &pid, &state); err == nil && strings.HasPrefix(state, "T") && pids[pid] != nil {
			all[pids[pid]] = true
		}
	}
	return all
}
