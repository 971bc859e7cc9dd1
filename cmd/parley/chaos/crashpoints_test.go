package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A signal at a random time almost always hits a process that waits. The moments between two steps of the protocol
// matter most and take microseconds, so processes also kill or stop themselves at crashpoints between such steps.

// crashpointsOf returns the crashpoints of a process with this role.
func crashpointsOf(role string) []string {
	if role == gateway {
		return []string{
			"send:begun", "send:held", "send:sent", "send:marked", "send:settled", "send:released",
			"draft:begun", "draft:sent", "draft:marked", "draft:edited", "draft:closed",
		}
	}
	return []string{
		"c1:before", "c1", "fetch:before", "fetch", "fetched", "files:kept", "c3:before", "c3", "c4:before", "c4", "c4:held", "c5:before", "c5",
		"c6:before", "c6", "c7:published", "c7", "settled", "aloud:ask", "aloud:made", "aloud:unread", "aloud:published",
		"park:before", "park", "park:opened", "park:asked", "park:published", "ask:shown", "unpark:before", "unpark",
	}
}

// drawCrashpoint returns a random environment variable, which names the crashpoint at which a process with this role
// stops or kills itself. The variable applies to the next start of the process.
func (s *storm) drawCrashpoint(role string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	points := crashpointsOf(role)
	if only := s.points[role]; only != nil {
		points = only
	}
	times := 20
	if s.past != nil && s.random.IntN(4) == 0 {
		points, times = archivePoints(), 4 // one process archives only a few days
	}
	what := []string{"PARLEY_STOP_AT", "PARLEY_KILL_AT"}[s.random.IntN(2)]
	return []string{fmt.Sprintf("%s=%s/%d", what, points[s.random.IntN(len(points))], 1+s.random.IntN(times))}
}

// disarmCrashpoints makes processes no longer kill or stop themselves, from their next start on.
func (s *storm) disarmCrashpoints() {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	s.fleet.crashpoints = nil
}

// continueStopped continues processes that have stopped themselves, each after longer than a lease. It returns when
// over is closed.
func (s *storm) continueStopped(random *rand.Rand, over <-chan struct{}) {
	until := map[*member]time.Time{}
	for pause(random, 500*time.Millisecond, time.Millisecond, over) {
		for m := range s.stoppedByThemselves() {
			switch at, known := until[m]; {
			case !known:
				until[m] = time.Now().Add(pauseLength(random))
				s.countFault("stopped a " + m.role + " at a line")
			case time.Now().After(at):
				delete(until, m)
				m.signal(syscall.SIGCONT, 0)
			}
		}
	}
	for m := range s.stoppedByThemselves() {
		m.signal(syscall.SIGCONT, 0)
	}
}

// stoppedByThemselves returns the members that have stopped themselves.
func (s *storm) stoppedByThemselves() map[*member]bool {
	all := map[*member]bool{}
	for _, m := range s.members {
		m.mu.Lock()
		if m.cmd != nil && m.cmd.Process != nil && !m.stopped && isStopped(m.cmd.Process.Pid) {
			all[m] = true
		}
		m.mu.Unlock()
	}
	return all
}

// isStopped reports whether a process is stopped by a signal.
func isStopped(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	state := string(raw[strings.LastIndexByte(string(raw), ')')+1:]) // the state follows the name, which may itself hold ")"
	if errors.Is(err, fs.ErrNotExist) {                              // it is gone, or there is no /proc here
		out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output() // it fails if it is gone
		state = string(out)
	}
	return strings.HasPrefix(strings.TrimSpace(state), "T")
}
