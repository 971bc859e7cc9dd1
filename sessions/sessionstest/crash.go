package sessionstest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"parley/sessions"
)

// childPlace is the environment variable that makes the suite append to the store at that
// place, as a child process, until it is killed.
const childPlace = "SESSIONSTEST_PLACE"

const (
	childSessions = 8
	childBatch    = 3
)

func crashTests() []test {
	return []test{
		{"what was acknowledged is there after kill -9, and nothing half", testKilled},
	}
}

// childKey returns the key of the ith session to which the child appends.
func childKey(i int) string { return fmt.Sprintf("main:crash:%d", i) }

// runChild appends to several sessions at once and prints the number of each
// acknowledged entry, until it is killed or its standard input ends.
func runChild(t *testing.T, h Harness, place string) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent ends, however it ends
		cancel()
	}()
	s, err := h.Open(ctx, place)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range childSessions {
		wg.Go(func() {
			l := openLog(t, s, childKey(i), 1)
			for ctx.Err() == nil {
				at := l.Next()
				var batch []sessions.Entry
				for j := range int64(childBatch) {
					batch = append(batch, said(fmt.Sprint("t", at), fmt.Sprint("m", at+j), strings.Repeat("x", 200)))
				}
				if err := l.Append(ctx, at, batch...); err != nil {
					t.Error(err)
					return
				}
				fmt.Printf("acked %d %d\n", i, l.Next()-1) // one write for each line, so that lines stay whole
			}
		})
	}
	wg.Wait()
}

func testKilled(t *testing.T, p place) {
	acked := make([]int64, childSessions)
	for round := range 4 {
		runAndKill(t, p.name, 40+60*round, acked)
		s := p.open()
		for i, want := range acked {
			entries := readLog(t, s, childKey(i))
			if int64(len(entries)) < want || want == 0 {
				t.Errorf("session %d has %d entries, %d were acknowledged", i, len(entries), want)
			}
			if len(entries)%childBatch != 0 {
				t.Errorf("session %d has half an append: %d entries", i, len(entries))
			}
			for n, e := range entries {
				if e.N != int64(n+1) || e.Cause != fmt.Sprint("m", n+1) {
					t.Fatalf("session %d at %d: %s", i, n+1, describe(e))
				}
			}
			// A server may still be executing what the child sent before it died. Opening the log ends that, so
			// the log is read again afterward.
			next := openLog(t, s, childKey(i), 1).Next()
			if later := readLog(t, s, childKey(i)); next < int64(len(entries)+1) || next > int64(len(later)+1) {
				t.Errorf("session %d goes on at %d, with %d entries before and %d after", i, next, len(entries), len(later))
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// runAndKill runs a child until it has printed that many lines and at least one entry of
// every session was acknowledged, then kills it. It records in acked the last
// acknowledged entry of each session.
func runAndKill(t *testing.T, place string, lines int, acked []int64) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+name+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), childPlace+"="+place)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	count, heard := 0, map[int]bool{}
	for out := bufio.NewScanner(stdout); out.Scan(); {
		var i int
		var n int64
		if _, err := fmt.Sscanf(out.Text(), "acked %d %d", &i, &n); err != nil {
			t.Errorf("the child said %q", out.Text())
			continue
		}
		acked[i] = n
		heard[i] = true
		// What the child has printed was acknowledged, so the pipe is read to its end.
		if count++; count >= lines && len(heard) == childSessions {
			_ = cmd.Process.Kill() // it may have been killed already
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
}
