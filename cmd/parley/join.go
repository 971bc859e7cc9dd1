package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"parley/agent/llm"
	"parley/bus/sqlitebus"
	"parley/cmd/parley/client"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
)

// A need is what a command wants of the process that has the home.
type need struct {
	model    llm.Model              // who answers, if this process is to answer
	send     bool                   // what is said is to be sent now, not at the next serve
	override home.WorkspaceOverride // a directory to work in: then nobody else's server will do
}

// What a command's own server is for, in place of the role that a serve has. It
// is told to others who would join.
const (
	roleTerminal = "terminal" // answers and sends
	roleSender   = "sender"   // sends
	roleReader   = "reader"   // looks
)

// role is what a server of this need's own is for.
func (n need) role() string {
	switch {
	case n.model != nil:
		return roleTerminal
	case n.send:
		return roleSender
	}
	return roleReader
}

// metBy tells whether a server of that role will do.
func (n need) metBy(role string) bool {
	switch role {
	case roleReader:
		return n.role() == roleReader
	case roleSender:
		return n.role() != roleTerminal
	}
	return true
}

// A homeConn is a command's time at a home: as the guest of whoever serves it, or
// as its host.
type homeConn struct {
	cfg    *config.Config
	need   need
	log    *slog.Logger
	client *client.Client

	mu    sync.Mutex
	role  string       // of who served it last
	leave func() error // ends our own server; nil where we are guests
}

// join reaches the server that has the home, or becomes it for as long as the
// command runs. leave gives the home back.
func join(ctx context.Context, cfg *config.Config, n need, log *slog.Logger) (c *client.Client, leave func() error, err error) {
	s := &homeConn{cfg: cfg, need: n, log: log, client: dial(cfg.Home)}
	s.client.Shared = cfg.Bus.URL != ""
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	s.client.Retry = s.again
	return s.client, s.end, nil
}

// patience is how long a process that is starting or ending is waited for.
const patience = 5 * time.Second

func (s *homeConn) begin(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; {
		role, err := roleOf(ctx, s.client)
		if err == nil && s.need.metBy(role) {
			if s.need.override.Dir != "" {
				return errors.New("--workspace needs the home for itself, and another parley has it: stop that one, or give another --home")
			}
			s.role = role
			return nil
		}
		if err == nil { // another command, which will not do and is soon over
			deadline = time.Now().Add(patience)
		}
		leave, err := s.host(ctx)
		if err == nil {
			s.leave, s.client.Hosted = leave, true
			return nil
		}
		if _, used := errors.AsType[*sqlitebus.InUseError](err); !used || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errAway says that nobody serves the home now.
var errAway = errors.New("the server is away")

// again is for when the server could not be reached: it says nil if it can be
// tried again. The place of a command that has left is taken. A serve is waited
// for: it is being restarted, and would not come back to a home that is taken.
func (s *homeConn) again(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leave != nil {
		return nil
	}
	if role, err := roleOf(ctx, s.client); err == nil {
		s.role = role
		if !s.need.metBy(role) {
			return errAway // it is soon over
		}
		return nil
	}
	switch s.role {
	case roleTerminal, roleSender, roleReader:
	default:
		return errAway
	}
	leave, err := s.host(ctx)
	if err != nil {
		return fmt.Errorf("%w, and its place cannot be taken: %w", errAway, err)
	}
	s.leave = leave
	return nil
}

func (s *homeConn) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leave == nil {
		return nil
	}
	return s.leave()
}

// host serves the home for as long as the command runs. Who only looks finds
// something there or is told that there is nothing.
func (s *homeConn) host(ctx context.Context) (leave func() error, err error) {
	if err := home.CheckPermissions(s.cfg); err != nil {
		return nil, err
	}
	if err := home.CheckData(s.cfg); err != nil {
		return nil, err
	}
	switch s.need.role() {
	case roleReader:
		if err := home.RequireData(ctx, s.cfg, home.BusFile, home.StoreFile, home.BookFile); err != nil {
			return nil, err
		}
		if s.cfg.Bus.URL != "" {
			return s.look(ctx)
		}
	case roleSender:
		if err := home.RequireChannel(s.cfg); err != nil {
			return nil, err
		}
	}
	return host(ctx, s.cfg, s.need, s.log)
}

// look serves what a fleet shares from a home that lasts as long as the command:
// whoever only looks leaves nothing on this machine.
func (s *homeConn) look(ctx context.Context) (leave func() error, err error) {
	dir, err := os.MkdirTemp("", "parley-")
	if err != nil {
		return nil, fmt.Errorf("make a home for the time of the command: %w", err)
	}
	cfg := *s.cfg
	cfg.Home = dir
	if _, err := os.Stat(filepath.Join(cfg.Workspace.Root, home.MarkerFile)); err != nil { // no server has worked there
		cfg.Workspace.Root = filepath.Join(dir, "workspaces")
	}
	end, err := host(ctx, &cfg, s.need, s.log)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.client.HTTP = dial(dir).HTTP
	return func() error { return errors.Join(end(), os.RemoveAll(dir)) }, nil
}

// host opens the home and serves its socket.
func host(ctx context.Context, cfg *config.Config, n need, log *slog.Logger) (leave func() error, err error) {
	h, err := home.Open(ctx, cfg, n.override, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	var lines []*endpoint
	if n.role() != roleReader { // who only looks needs no platform, and no token of one
		if lines, err = openEndpoints(cfg, h.Book, log); err != nil {
			return nil, err
		}
	}
	for _, l := range lines {
		l.receive = false // serve receives; a command only sends what its person wants sent
	}
	s := newServer(h, cfg, n.model, lines, log)
	s.roles = map[string]bool{n.role(): true}
	f, err := s.newHTTPAccess()
	if err != nil {
		return nil, err
	}
	socket, _, err := f.listen("")
	if err != nil {
		return nil, err
	}
	stages := []func(context.Context) error{func(ctx context.Context) error { return f.serve(ctx, socket, nil) }}
	if n.model != nil {
		stages = append(stages, s.work)
	}
	if n.send || n.model != nil {
		stages = append(stages, s.dispatch)
	}
	// The command leaves by itself, in order, also when it is interrupted.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- s.run(running, stages...) }()
	return func() error {
		stop()
		return errors.Join(<-done, h.Close())
	}, nil
}

// dial makes a client of whoever serves the home's socket.
func dial(dir string) *client.Client {
	return &client.Client{Base: "http://parley", HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return home.DialSocket(ctx, dir)
		},
		MaxIdleConnsPerHost: 4,
	}}}
}

// roleOf asks a server what it is for.
func roleOf(ctx context.Context, c *client.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var s statusReport
	if err := (&client.Client{Base: c.Base, HTTP: c.HTTP}).Get(ctx, "/v1/status", &s); err != nil {
		return "", err
	}
	return s.Role, nil
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// use joins the home for one command.
func use(ctx context.Context, flags *cli, tty terminal, n need, do func(context.Context, *client.Client) error) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: n.role() == roleReader})
	if err != nil {
		return err
	}
	c, leave, err := join(ctx, cfg, n, quiet(tty.err))
	if nothing, ok := errors.AsType[*home.NothingError](err); ok {
		return nothing
	}
	if err != nil {
		return fmt.Errorf("reach the home %s: %w", cfg.Home, err)
	}
	err = do(ctx, c)
	if left := leave(); err == nil {
		err = left
	}
	return err
}
