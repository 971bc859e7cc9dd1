package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"parley/bus/sqlitebus"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server"
)

// A homeConn is a command's connection to a home: as a client of the process that serves it, or as
// that process itself.
type homeConn struct {
	server server.Config // used if this process serves the home
	client *Client

	mu    sync.Mutex
	role  server.Role  // the role of the process that last served the home
	leave func() error // ends our own server; nil if another process serves the home
}

// Join connects to the server that has the home open, or serves the home itself, as c says, while
// the command runs. The function leave ends the connection or the serving.
func Join(ctx context.Context, c server.Config) (joined *Client, leave func() error, err error) {
	s := &homeConn{server: c, client: Dial(c.Settings.Home)}
	s.client.Shared = c.Settings.Bus.URL != ""
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	s.client.Retry = s.reconnect
	return s.client, s.end, nil
}

// joinWait is how long Join waits for a process that is starting or ending. It waits without a limit for another command
// whose role does not suffice to end.
const joinWait = 5 * time.Second

// begin connects to the process that serves the home if its role suffices, or else serves the home in this process.
func (s *homeConn) begin(ctx context.Context) error {
	for deadline := time.Now().Add(joinWait); ; {
		role, err := s.client.Role(ctx)
		if err == nil && role.Suffices(s.server.Role) {
			if s.server.Override.Dir != "" {
				return errors.New("--workspace needs the home to itself, but another parley is using it: stop that one, or give another --home")
			}
			s.role = role
			return nil
		}
		if err == nil { // another command serves it, whose role doesn't suffice but which ends soon
			deadline = time.Now().Add(joinWait)
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

// errAway says that no process serves the home at the moment, or only one whose role doesn't suffice.
var errAway = errors.New("the server isn't running")

// reconnect is called when the server could not be reached; it returns nil if the request can be
// repeated. If the server was another command, which has ended, this process takes its place. If it
// was "parley serve", reconnect waits for it, because it is probably being restarted and could not
// start if this process opened the home.
func (s *homeConn) reconnect(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leave != nil {
		return nil
	}
	if role, err := s.client.Role(ctx); err == nil {
		s.role = role
		if !role.Suffices(s.server.Role) {
			return errAway // the other command ends soon
		}
		return nil
	}
	if s.role.Serves() {
		return errAway
	}
	leave, err := s.host(ctx)
	if err != nil {
		return fmt.Errorf("%w, and this process can't take over: %w", errAway, err)
	}
	s.leave = leave
	return nil
}

// end stops serving the home, if this process does.
func (s *homeConn) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leave == nil {
		return nil
	}
	return s.leave()
}

// host serves the home while the command runs. For a command that only reads the home's data, it
// returns an error if there is none.
func (s *homeConn) host(ctx context.Context) (leave func() error, err error) {
	cfg := s.server.Settings
	if err := home.CheckPermissions(cfg); err != nil {
		return nil, err
	}
	if err := home.CheckData(cfg); err != nil {
		return nil, err
	}
	switch s.server.Role {
	case server.Reader:
		// A command that runs MCP servers' programs needs no data.
		if err := home.RequireData(ctx, cfg); err != nil && !s.server.Commands {
			return nil, err
		}
		if cfg.Bus.URL != "" {
			return s.hostTemporary(ctx)
		}
	case server.Sender:
		if err := home.RequireChannel(cfg); err != nil {
			return nil, err
		}
	}
	return server.Host(ctx, s.server)
}

// hostTemporary serves a fleet's shared data from a home that is removed after the command, so that
// a command that only reads leaves nothing on this machine.
func (s *homeConn) hostTemporary(ctx context.Context) (leave func() error, err error) {
	dir, err := os.MkdirTemp("", "parley-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary home for the command: %w", err)
	}
	looking := s.server
	if looking.Settings, err = home.ForCommand(*s.server.Settings, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	end, err := server.Host(ctx, looking)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.client.HTTP = Dial(dir).HTTP
	return func() error { return errors.Join(end(), os.RemoveAll(dir)) }, nil
}

// Dial returns a client of the process that serves the home's socket.
func Dial(dir string) *Client {
	return &Client{Base: "http://parley", HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return home.DialSocket(ctx, dir)
		},
		MaxIdleConnsPerHost: 4,
	}}}
}

// Role returns the server's role, as reported by the server.
func (c *Client) Role(ctx context.Context) (server.Role, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var status struct {
		Role server.Role `json:"role"`
	}
	if err := (&Client{Base: c.Base, HTTP: c.HTTP}).Get(ctx, "/v1/status?brief=true", &status); err != nil {
		return "", err
	}
	return status.Role, nil
}
