package bustest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"parley/bus"
)

var crashPromises = []promise{
	{"killed while it publishes, it has kept what it accepted", testKilledPublisher},
	{"killed while it works, its mailboxes go on, counted", testKilledWorker},
	{"killed while it settles, nothing is lost and what was settled stays so", testKilledSettler},
}

// These environment variables tell a child process what to do.
const (
	roleEnv  = "PARLEY_BUSTEST_ROLE"
	placeEnv = "PARLEY_BUSTEST_PLACE"
)

// A process is a child process of the test that has the bus open.
type process struct {
	r     *rig
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// startChild starts a child process with that role: publish, work, settle or sleep.
func (r *rig) startChild(role string) *process {
	r.Helper()
	self, err := os.Executable()
	r.noError("executable", err)
	cmd := exec.CommandContext(r.Context(), self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, placeEnv+"="+r.place)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	r.noError("pipe", err)
	r.noError("start", cmd.Start())
	return &process{r: r, cmd: cmd, lines: bufio.NewScanner(out)}
}

// nextLine waits for the next line that the child prints, and returns it.
func (p *process) nextLine() string {
	p.r.Helper()
	if !p.lines.Scan() {
		p.r.Fatalf("the child process ended early: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// kill ends the child with SIGKILL, and returns the lines that it had printed and the
// test had not read.
func (p *process) kill() (rest []string) {
	p.r.Helper()
	p.r.noError("kill", p.cmd.Process.Kill())
	for p.lines.Scan() {
		rest = append(rest, p.lines.Text())
	}
	if err := p.cmd.Wait(); err == nil {
		p.r.Fatal("the child process ended by itself")
	}
	return rest
}

// runChild runs a child process in a role, until it is killed.
func runChild(h Harness, role, place string) int {
	ctx := context.Background()
	b, err := h.Open(ctx, place, Options{})
	if err == nil {
		switch role {
		case "publish":
			err = childPublish(ctx, b)
		case "work":
			err = childWork(ctx, b)
		case "settle":
			err = childSettle(ctx, b)
		case "sleep":
			err = childHold(ctx, b)
		}
	}
	fmt.Fprintln(os.Stderr, role, err)
	return 1
}

// childKeys is the number of mailboxes to which a child publishes.
const childKeys = 4

// childPublish publishes to several mailboxes at once, and prints the ids of the messages that
// the bus has accepted.
func childPublish(ctx context.Context, b Bus) error {
	var wg sync.WaitGroup
	failed := make(chan error, childKeys)
	for k := range childKeys {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("k%d/%d", k, i)
				if err := b.Publish(ctx, inbound, bus.Message{ID: id, Key: fmt.Sprint("k", k)}); err != nil {
					failed <- err
					return
				}
				fmt.Println(id)
			}
		})
	}
	wg.Wait()
	return <-failed
}

// childWork claims mailboxes and prints their claims. A first claim need not be durable
// when Claim returns. Publishing waits for a commit that comes after it, so childWork
// publishes something before it prints a first claim.
func childWork(ctx context.Context, b Bus) error {
	for i := 0; ; i++ {
		l, err := b.Claim(ctx, inbound)
		if err != nil {
			return err
		}
		if l.Claim().Attempts == 1 {
			if err := b.Publish(ctx, bus.TimersTopic, bus.Message{ID: fmt.Sprint(os.Getpid(), i), Key: "t"}); err != nil {
				return err
			}
		}
		fmt.Println(l.Claim().Key, l.Claim().Fence, l.Claim().Attempts)
	}
}

// childSettle settles one message at a time and prints its id.
func childSettle(ctx context.Context, b Bus) error {
	for {
		l, err := b.Claim(ctx, inbound)
		if err != nil {
			return err
		}
		mail, err := l.Mail(ctx, 0)
		if err != nil {
			return err
		}
		if err := l.Settle(ctx, bus.End{Done: mail[0].Seq}); err != nil {
			return err
		}
		fmt.Println(mail[0].ID)
	}
}

// drain claims all mail that is due, removes it from the bus, and returns the ids of the messages
// by key.
func (r *rig) drain() map[string][]string {
	r.Helper()
	got := map[string][]string{}
	for !isNothing(r.readDepth(inbound)) {
		l := r.claim()
		mail, err := l.Mail(r.Context(), 0)
		r.noError("mail", err)
		for _, m := range mail {
			got[m.Key] = append(got[m.Key], m.ID)
		}
		r.settle(l, bus.End{Done: mail[len(mail)-1].Seq})
	}
	return got
}

func testKilledPublisher(r *rig) {
	p := r.startChild("publish")
	var accepted []string
	for range 500 {
		accepted = append(accepted, p.nextLine())
	}
	accepted = append(accepted, p.kill()...)
	r.open(Options{})
	for _, id := range accepted { // as a platform would deliver them again
		key, _, _ := strings.Cut(id, "/")
		r.noError("publish again", r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: key}))
	}
	got := r.drain()
	n := 0
	for key, ids := range got {
		for i, id := range ids {
			if want := fmt.Sprintf("%s/%d", key, i); id != want {
				r.Fatalf("got %s, want %s", id, want)
			}
		}
		n += len(ids)
	}
	if n < len(accepted) || n > len(accepted)+childKeys {
		r.Errorf("%d messages, want the %d accepted and at most one more for each publisher", n, len(accepted))
	}
}

func testKilledWorker(r *rig) {
	r.open(Options{})
	r.publish("a", "1", "2")
	r.publish("b", "3")
	if !r.harness.Shared {
		r.noError("close", r.Close())
	}
	fences := map[string]int64{} // by mailbox, or for all under one name: the highest fence so far
	beyond := func(key string, fence int64) bool {
		if !r.harness.Divided {
			key = ""
		}
		defer func() { fences[key] = fence }()
		return fence > fences[key]
	}
	for attempt := 1; attempt <= 3; attempt++ {
		p := r.startChild("work")
		for range 2 {
			var key string
			var fence int64
			var n int
			line := p.nextLine()
			if _, err := fmt.Sscan(line, &key, &fence, &n); err != nil {
				r.Fatalf("line %q: %v", line, err)
			}
			if n != attempt || !beyond(key, fence) {
				r.Fatalf("%s claimed for the %d. time under fence %d, want attempt %d and a fence beyond %v", key, n, fence, attempt, fences)
			}
		}
		p.kill()
	}
	killed := time.Now()
	if !r.harness.Shared {
		r.Bus = r.openAnother()
	}
	keys := map[string]bool{}
	for range 2 {
		l := r.claim()
		if took := time.Since(killed); took > r.harness.LeaseTime+time.Second {
			r.Errorf("claimed %v after the kill", took)
		}
		r.wantAttempts(l, 4)
		if !beyond(l.Claim().Key, l.Claim().Fence) {
			r.Errorf("fence %d is not beyond %v", l.Claim().Fence, fences)
		}
		keys[l.Claim().Key] = true
		r.settle(l, bus.End{Done: 1 << 60})
	}
	if !keys["a"] || !keys["b"] {
		r.Errorf("claimed %v", keys)
	}
}

func testKilledSettler(r *rig) {
	r.open(Options{})
	const n = 600
	for i := range n {
		key := fmt.Sprint("k", i%childKeys)
		r.noError("publish", r.Publish(r.Context(), inbound, bus.Message{ID: fmt.Sprintf("%s/%d", key, i/childKeys), Key: key}))
	}
	if !r.harness.Shared {
		r.noError("close", r.Close())
	}
	p := r.startChild("settle")
	settled := map[string]int{}
	count := func(id string) {
		key, i, _ := strings.Cut(id, "/")
		if i != fmt.Sprint(settled[key]) {
			r.Fatalf("%s was settled after %d others", id, settled[key])
		}
		settled[key]++
	}
	for range n / 4 {
		count(p.nextLine())
	}
	for _, id := range p.kill() {
		count(id)
	}
	if !r.harness.Shared {
		r.Bus = r.openAnother()
	}
	more := 0
	for key, ids := range r.drain() {
		left := n/childKeys - settled[key]
		if len(ids) == left-1 {
			more++ // the child settled it, and was killed before it could say so
		} else if len(ids) != left {
			r.Errorf("%s has %d left after %d were settled", key, len(ids), settled[key])
		}
		if want := fmt.Sprintf("%s/%d", key, n/childKeys-len(ids)); ids[0] != want {
			r.Errorf("%s goes on with %s, want %s", key, ids[0], want)
		}
	}
	if more > 1 {
		r.Errorf("%d mailboxes had one settled unsaid, want one at most", more)
	}
}
