package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"parley/tools/mcp/lines"
	"parley/tools/sandbox"
)

// exitGrace is how long a program may take to exit by itself once its input has ended.
const exitGrace = time.Second

// maxQuotedOutput limits how much of what a server said is quoted in an error, in bytes.
const maxQuotedOutput = 1000

// A program is the transport to a server that runs in the sandbox.
type program struct {
	*lines.Wire
	ended chan struct{} // closed when no process of the program is left
	kill  context.CancelFunc

	mu     sync.Mutex
	result sandbox.Result
	err    error
}

// startProgram runs a server's program in a place in the sandbox. The program outlives the call
// that starts it. held is the last time at which this process certainly held the session.
func (s *Servers) startProgram(ctx context.Context, one *server, place sandbox.Place, held time.Time) (*program, error) {
	if s.cfg.Sandbox == nil {
		return nil, errors.New("programs run only in a sandbox, and none works on this machine: parley doctor says what's missing")
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	c := place.Command(one.Command...)
	c.Env, c.Stdin, c.Stdout, c.HeldAt, c.MostlyIdle = one.Env, childIn, childOut, held, true
	c.Network = one.Network.Full || len(one.Network.Hosts) > 0
	c.Reach = &one.Network
	running, kill := context.WithCancel(context.WithoutCancel(ctx))
	p := &program{Wire: lines.New(in, out, kill), ended: make(chan struct{}), kill: kill}
	go func() {
		result, err := s.cfg.Sandbox.Run(running, c)
		p.mu.Lock()
		p.result, p.err = result, err
		p.mu.Unlock()
		close(p.ended)
		// The reader gets the end of the output only now, when the result is known.
		_ = errors.Join(childIn.Close(), childOut.Close())
	}()
	return p, nil
}

// done returns a channel that is closed once the program has ended.
func (p *program) done() <-chan struct{} { return p.ended }

func (p *program) wantsSignIn() bool { return false }

func (p *program) received() int64 { return p.Received() }

// stop gives the program a moment to end by itself, and then kills it.
func (p *program) stop() {
	_ = p.Close() // the program may have ended
	select {
	case <-p.ended:
	case <-time.After(exitGrace):
	}
	p.kill()
	<-p.ended
}

// failureReason says how the program has ended; "" if it is still running, or was ended by this
// process.
func (p *program) failureReason() string {
	if !isClosed(p.ended) {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.Flooded():
		return "the program was ended, because it sent message after message that nobody had asked for"
	case errors.Is(p.err, context.Canceled):
		return ""
	case errors.Is(p.err, sandbox.ErrNoNetworkIsolation), errors.Is(p.err, sandbox.ErrCannotProvideNetwork), errors.Is(p.err, sandbox.ErrLate):
		return sandbox.ErrorForModel(p.err).Error()
	case p.err != nil:
		return "it could not be run: " + p.err.Error()
	case p.result.Killed == sandbox.Cancelled:
		return ""
	}
	said := strings.ToValidUTF8(strings.TrimSpace(p.result.Stderr), "\uFFFD")
	if len(said) > maxQuotedOutput {
		said = "…" + strings.ToValidUTF8(said[len(said)-maxQuotedOutput:], "")
	}
	how := fmt.Sprintf("the program ended with exit code %d", p.result.ExitCode)
	if p.result.Killed != "" {
		how = "the program was ended: " + p.result.Detail
	}
	if said != "" {
		how += ", and said last: " + said
	}
	return how
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
