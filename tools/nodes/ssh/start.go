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

// Timing says how long to wait for ssh. Zero fields have defaults.
type Timing struct {
	Begin time.Duration // until the node is ready; 40 s
	End   time.Duration // until ssh has ended once it is told to; 5 s
}

func (t Timing) withDefaults() Timing {
	if t.Begin <= 0 {
		t.Begin = 40 * time.Second
	}
	if t.End <= 0 {
		t.End = 5 * time.Second
	}
	return t
}

// A Connector connects to a target.
type Connector struct {
	Target Target
	Env    []string // this process's environment, of which ssh gets only what it needs
	Timing Timing
	// Redact removes secrets from the output of ssh and the other end, which is logged.
	Redact func(text string) string
	Log    *slog.Logger
}

// A Connection is a running ssh, and the link's connection over it.
type Connection struct {
	net.Conn
	Hello Hello
	child *child
}

// Wait waits until ssh has ended, which happens soon after Close.
func (c *Connection) Wait() { <-c.child.ended }

// Connect starts ssh, and returns when the node at the other end is ready to begin a link. The end of ctx closes the
// connection. Unless ctx has ended, the error is a *Problem.
func (w Connector) Connect(ctx context.Context, g Greeting) (*Connection, error) {
	return w.start(ctx, "node --stdio", func(conn net.Conn) (Hello, error) {
		h, err := readHello(conn)
		if err == nil {
			err = sendGreeting(conn, g)
		}
		return h, err
	})
}

// Check starts ssh, and returns the Hello of the node at the other end, without beginning a link. Its errors are those
// of Connect.
func (w Connector) Check(ctx context.Context) (Hello, error) {
	c, err := w.start(ctx, "node --stdio --check", readHello)
	if err != nil {
		return Hello{}, err
	}
	_ = c.Close() // nothing was written
	c.Wait()
	return c.Hello, nil
}

// start starts ssh, and exchanges the first lines with the program at its other end.
func (w Connector) start(ctx context.Context, args string, meet func(net.Conn) (Hello, error)) (*Connection, error) {
	w.Timing = w.Timing.withDefaults()
	c, err := w.run(ctx, args)
	if err != nil {
		return nil, &Problem{Kind: SSHMissing, Said: err.Error()}
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
		c.child.closeInput() // ssh ends by itself, because the other end has: its exit code says why
	}
	_ = c.Close() // the connection has failed already
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
func (w Connector) run(ctx context.Context, args string) (*Connection, error) {
	var files []*os.File // both ends of two pipes
	for range 2 {
		r, wr, err := os.Pipe()
		if err != nil {
			closeAll(files)
			return nil, err //nolint:wrapcheck // the caller adds what it was for
		}
		files = append(files, r, wr)
	}
	ch := &child{said: &stderrLog{log: w.Log, redact: w.Redact, lineLimit: rate.NewLimiter(1, 50)}, timing: w.Timing, leaving: make(chan struct{}), ended: make(chan struct{})}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "ssh", w.Target.args(args)...)
	cmd.Env = environment(w.Env) // the end of ctx closes its standard input: see below
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], ch.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that a terminal's Ctrl-C doesn't reach it
	cmd.WaitDelay = time.Second
	ch.cmd = cmd
	if err := cmd.Start(); err != nil {
		closeAll(files)
		return nil, err //nolint:wrapcheck // the caller says what it is for
	}
	closeAll([]*os.File{files[0], files[3]})
	go ch.wait() // Connection.Wait waits for it
	conn := &stream{in: files[2], out: files[1], name: w.Target.String(), onClose: ch.closeInput}
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

// environment returns the part of this process's environment that ssh needs; the rest may be secret.
func environment(all []string) (needed []string) {
	for _, one := range all {
		name, _, _ := strings.Cut(one, "=")
		if slices.Contains([]string{"HOME", "PATH", "USER", "LOGNAME", "SSH_AUTH_SOCK", "KRB5CCNAME", "LANG", "TZ"}, name) || strings.HasPrefix(name, "LC_") {
			needed = append(needed, one)
		}
	}
	return needed
}

// A child is an ssh process.
type child struct {
	cmd     *exec.Cmd
	said    *stderrLog
	timing  Timing
	once    sync.Once
	leaving chan struct{} // closed once it is to end
	ended   chan struct{} // closed once it has
}

// closeInput gives ssh a moment to end: its standard input is closed, or is about to be.
func (c *child) closeInput() { c.once.Do(func() { close(c.leaving) }) }

// wait waits until ssh has ended, and kills it if it takes too long.
func (c *child) wait() {
	done := make(chan struct{})
	go func() {
		_ = c.cmd.Wait() // problem examines how it has ended
		close(done)
	}()
	select {
	case <-done:
	case <-c.leaving:
		select {
		case <-done:
		case <-time.After(c.timing.End):
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // with what it has started
			<-done
		}
	}
	close(c.ended)
}

// Exit codes of ssh and shells.
const (
	exitSSHFailed     = 255 // ssh itself
	exitNotFound      = 127 // the shell: there is no such program
	exitNotExecutable = 126 // the shell: it can't be run
	exitUsage         = 2   // parley: it was called wrongly
)

// problem returns why the connection ended before the link began.
func (c *child) problem() *Problem {
	p := &Problem{Kind: ProgramEnded, Said: c.said.lastText(), Code: c.cmd.ProcessState.ExitCode()}
	switch p.Code {
	case exitSSHFailed:
		p.Kind = SSHFailed
	case exitNotFound, exitNotExecutable:
		p.Kind = ProgramMissing
	case exitUsage:
		p.Kind = ProgramTooOld
	}
	return p
}

// stderrLog logs the standard error of ssh and the other end, line by line, and keeps the last line.
type stderrLog struct {
	log       *slog.Logger
	redact    func(string) string
	lineLimit *rate.Limiter

	mu          sync.Mutex
	partialLine []byte // the beginning of a line
	lastLine    string // the last line that has any text
}

// maxKeptLine is how many bytes of a line are kept; the rest is dropped.
const maxKeptLine = 4000

// Write implements io.Writer. It never fails: lines beyond the limit are dropped.
func (s *stderrLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range p {
		if b == '\n' {
			s.endLine()
		} else if len(s.partialLine) < maxKeptLine {
			s.partialLine = append(s.partialLine, b)
		}
	}
	return len(p), nil
}

// endLine ends a line. The caller holds mu.
func (s *stderrLog) endLine() {
	text := string(s.partialLine)
	s.partialLine = s.partialLine[:0]
	if s.redact != nil { // before the line is shortened
		text = s.redact(text)
	}
	text = clean(text)
	if text == "" {
		return
	}
	s.lastLine = text
	if s.lineLimit.Allow() {
		s.log.Info("the other end of an ssh target says", slog.String("text", text))
	}
}

// lastText returns the last line that has any text.
func (s *stderrLog) lastText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	return s.lastLine
}

var _ io.Writer = (*stderrLog)(nil)
