package ssh

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// Timing is how long ssh is waited for. Zero means the usual time.
type Timing struct {
	Begin time.Duration // until the node is ready; 40 s
	End   time.Duration // until ssh has ended once it is told to; 5 s
}

func (t Timing) orUsual() Timing {
	if t.Begin <= 0 {
		t.Begin = 40 * time.Second
	}
	if t.End <= 0 {
		t.End = 5 * time.Second
	}
	return t
}

// A Way is how a target is reached.
type Way struct {
	Target Target
	Env    []string // of this process: ssh gets only what it needs of it
	Timing Timing
	// Redact removes secrets from what ssh and the other end say, which is logged.
	Redact func(text string) string
	Log    *slog.Logger
}

// A Connection is one ssh, and the link's connection over it.
type Connection struct {
	net.Conn
	Hello Hello
	child *child
}

// Wait waits until ssh has ended, which it does soon after Close.
func (c *Connection) Wait() { <-c.child.ended }

// Connect starts ssh, and returns once the node at the other end is ready to begin a link. The end of ctx closes the connection.
// Unless ctx has ended, the error is a *Problem.
func (w Way) Connect(ctx context.Context, g Greeting) (*Connection, error) {
	return w.start(ctx, "node --stdio", func(conn net.Conn) (Hello, error) {
		h, err := hear(conn)
		if err == nil {
			err = greet(conn, g)
		}
		return h, err
	})
}

// Check starts ssh, and returns what the node at the other end would say, which begins nothing. Errors are those of Connect.
func (w Way) Check(ctx context.Context) (Hello, error) {
	c, err := w.start(ctx, "node --stdio --check", hear)
	if err != nil {
		return Hello{}, err
	}
	_ = c.Close() // nothing was written
	c.Wait()
	return c.Hello, nil
}

// start starts ssh, and meets the program at its other end.
func (w Way) start(ctx context.Context, args string, meet func(net.Conn) (Hello, error)) (*Connection, error) {
	w.Timing = w.Timing.orUsual()
	c, err := w.run(ctx, args)
	if err != nil {
		return nil, &Problem{Kind: Missing, Said: err.Error()}
	}
	err = c.SetDeadline(time.Now().Add(w.Timing.Begin))
	if err == nil {
		c.Hello, err = meet(c)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err == nil {
		return c, nil
	}
	known, isKnown := errors.AsType[*Problem](err)
	if !isKnown {
		c.child.leave() // ssh ends by itself, because the other end has: its code says why
	}
	_ = c.Close() // it has failed already
	c.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isKnown && w.Redact != nil:
		known.Said = w.Redact(known.Said)
		return nil, known
	case isKnown:
		return nil, known
	}
	return nil, c.child.problem()
}

// run starts ssh.
func (w Way) run(ctx context.Context, args string) (*Connection, error) {
	var files []*os.File // both ends of two pipes
	for range 2 {
		r, wr, err := os.Pipe()
		if err != nil {
			closeAll(files)
			return nil, err //nolint:wrapcheck // the caller says what it is for
		}
		files = append(files, r, wr)
	}
	ch := &child{said: &said{log: w.Log, redact: w.Redact, paced: rate.NewLimiter(1, 50)}, timing: w.Timing, left: make(chan struct{}), ended: make(chan struct{})}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "ssh", w.Target.args(args)...)
	cmd.Env = environment(w.Env) // the end of ctx closes its standard input: see below
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], ch.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is not for it
	cmd.WaitDelay = time.Second
	ch.cmd = cmd
	if err := cmd.Start(); err != nil {
		closeAll(files)
		return nil, err //nolint:wrapcheck // the caller says what it is for
	}
	closeAll([]*os.File{files[0], files[3]})
	go ch.wait() // Connection.Wait waits for it
	conn := &stream{in: files[2], out: files[1], name: w.Target.String(), closed: ch.leave}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() { <-ch.ended; stop() }() // ends with ssh
	return &Connection{Conn: conn, child: ch}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
}

// args returns the arguments of ssh. The program and its arguments are words for any shell: see Parse.
func (t Target) args(args string) []string {
	all := []string{"-T", "-a", "-x"} // no terminal, no agent, no windows
	for _, option := range []string{
		"BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no", "RequestTTY=no", "RemoteCommand=none",
		"EscapeChar=none", "ControlMaster=no", "ControlPath=none", "Tunnel=no", "LogLevel=ERROR", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=3",
	} {
		all = append(all, "-o", option)
	}
	if t.Port != 0 {
		all = append(all, "-p", strconv.Itoa(t.Port))
	}
	program := t.Program
	if program == "" {
		program = "parley"
	}
	return append(all, "-l", t.User, "--", t.Host, program+" "+args)
}

// environment returns what ssh needs of this process's environment; the rest may be secret.
func environment(all []string) (needed []string) {
	for _, one := range all {
		name, _, _ := strings.Cut(one, "=")
		if slices.Contains([]string{"HOME", "PATH", "USER", "LOGNAME", "SSH_AUTH_SOCK", "KRB5CCNAME", "LANG", "TZ"}, name) || strings.HasPrefix(name, "LC_") {
			needed = append(needed, one)
		}
	}
	return needed
}

// A child is an ssh that was started.
type child struct {
	cmd    *exec.Cmd
	said   *said
	timing Timing
	once   sync.Once
	left   chan struct{} // closed once it is to end
	ended  chan struct{} // closed once it has
}

// leave gives ssh a moment to end: its standard input is closed, or is about to be.
func (c *child) leave() { c.once.Do(func() { close(c.left) }) }

// wait waits until ssh has ended, and kills it if it takes too long.
func (c *child) wait() {
	done := make(chan struct{})
	go func() {
		_ = c.cmd.Wait() // problem looks at how it has ended
		close(done)
	}()
	select {
	case <-done:
	case <-c.left:
		select {
		case <-done:
		case <-time.After(c.timing.End):
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // with what it has started
			<-done
		}
	}
	close(c.ended)
}

// The codes with which ssh and shells end.
const (
	codeFailed = 255 // ssh itself
	codeAbsent = 127 // the shell: there is no such program
	codeBarred = 126 // the shell: it can't be run
	codeUsage  = 2   // parley: it was called wrongly
)

// problem says why the connection has ended before it began.
func (c *child) problem() *Problem {
	p := &Problem{Kind: Ended, Said: c.said.last(), Code: c.cmd.ProcessState.ExitCode()}
	switch p.Code {
	case codeFailed:
		p.Kind = Failed
	case codeAbsent, codeBarred:
		p.Kind = Absent
	case codeUsage:
		p.Kind = Old
	}
	return p
}

// said is what ssh and the other end write to the standard error: it is logged, line by line, and the last line is kept.
type said struct {
	log    *slog.Logger
	redact func(string) string
	paced  *rate.Limiter

	mu   sync.Mutex
	rest []byte // the beginning of a line
	kept string // the last line that has any text
}

// maxSaid is how many bytes of a line are kept; the others are dropped.
const maxSaid = 4000

// Write implements io.Writer. It never fails: what is too much is dropped.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range p {
		if b == '\n' {
			s.line()
		} else if len(s.rest) < maxSaid {
			s.rest = append(s.rest, b)
		}
	}
	return len(p), nil
}

// line ends a line. The caller holds mu.
func (s *said) line() {
	text := string(s.rest)
	s.rest = s.rest[:0]
	if s.redact != nil { // before it is cut
		text = s.redact(text)
	}
	text = clean(text)
	if text == "" {
		return
	}
	s.kept = text
	if s.paced.Allow() {
		s.log.Info("the other end of an ssh target says", slog.String("text", text))
	}
}

// last returns the last line that was said.
func (s *said) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line()
	return s.kept
}

var _ io.Writer = (*said)(nil)
