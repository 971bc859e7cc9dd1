package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp/pins"
	"parley/tools/sandbox"
)

// olderProtocol is the greeting of servers that do not answer the newest.
const olderProtocol = "2025-11-25"

// A link is what a connection goes over: a program, or requests to a service.
type link interface {
	mcp.Transport
	// gone is closed once nothing comes over it any more.
	gone() <-chan struct{}
	// why says why it is gone, or what went wrong last; "" if nothing is known.
	why() string
	// wants tells whether it wants somebody to sign in.
	wants() bool
	// heard counts what has come over it.
	heard() int64
	// end ends it, and what it has started, and waits for that.
	end()
}

// A connection is one to one server, for one session or for all.
type connection struct {
	link
	session *mcp.ClientSession
	tools   []pins.Tool    // as the server listed them when it was last asked here
	left    map[string]int // why others of its tools cannot be used, when it was connected to
	asking  sync.Mutex     // around tools
	stale   atomic.Bool    // it has said that they changed
	cancel  context.CancelFunc

	progress sync.Map // func(string), by token
	tokens   atomic.Int64

	one *server
	// These are the pool's.
	calls  int       // that use it now
	since  time.Time // when the last one ended
	idle   *time.Timer
	ending bool
}

// connect connects to a server and lists its tools.
func (s *Servers) connect(ctx context.Context, one *server, place sandbox.Place, held time.Time) (*connection, error) {
	limit := s.cfg.Limits.Connect
	if one.greetsOld() {
		return s.connectOnce(ctx, one, place, held, olderProtocol, limit)
	}
	c, err := s.connectOnce(ctx, one, place, held, "", limit)
	if silent, ok := errors.AsType[*silentError](err); ok && ctx.Err() == nil {
		// Some servers do not answer what they do not know.
		if c, err = s.connectOnce(ctx, one, place, time.Time{}, olderProtocol, limit); err != nil {
			return nil, silent
		}
		one.mu.Lock()
		one.legacy = true
		one.mu.Unlock()
	}
	return c, err
}

func (s *server) greetsOld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.legacy
}

// A silentError says that a server has not answered in time.
type silentError struct{ limit time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("it did not answer within %s", e.limit) }

func (s *Servers) connectOnce(ctx context.Context, one *server, place sandbox.Place, held time.Time, protocol string, limit time.Duration) (*connection, error) {
	l, err := s.newLink(ctx, one, place, held)
	if err != nil {
		return nil, err
	}
	// What is begun here outlives the call for which it is.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &connection{link: l, cancel: cancel, one: one}
	expired := time.AfterFunc(limit, cancel)
	unwatch := context.AfterFunc(ctx, cancel)
	err = s.greet(own, one, c, protocol)
	late := !expired.Stop()
	unwatch()
	if err == nil && !late && ctx.Err() == nil {
		return c, nil
	}
	silent := late && c.heard() == 0
	why, wants := c.why(), c.wants() // before it is ended from here
	c.close()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case wants:
		return nil, &LoginError{one.Name}
	case silent:
		return nil, &silentError{limit}
	case late:
		return nil, fmt.Errorf("it did not get ready within %s", limit)
	}
	if why != "" {
		return nil, errors.New(why)
	}
	return nil, err
}

// newLink starts what a connection goes over.
func (s *Servers) newLink(ctx context.Context, one *server, place sandbox.Place, held time.Time) (link, error) {
	if one.Web() {
		return s.newService(one), nil
	}
	return s.startProgram(ctx, one, place, held)
}

// greet begins the conversation: nothing is offered to the server, neither models nor
// people's files, nor, unless the operator has answers, questions to them.
func (s *Servers) greet(ctx context.Context, one *server, c *connection, protocol string) error {
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			c.stale.Store(true)
			one.lookAgain()
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { c.progressed(r.Params) },
	}
	if one.Defaults {
		options.ElicitationHandler = s.answerQuestions(one)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "parley", Version: s.cfg.Version}, options)
	session, err := client.Connect(ctx, c.link, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return fmt.Errorf("greet the server: %w", err)
	}
	c.session = session
	c.tools, c.left, err = s.list(ctx, one, session)
	return err
}

// close ends a connection and waits until nothing is left of it.
func (c *connection) close() {
	if c.session != nil && c.one.Web() {
		left := make(chan struct{})
		go func() {
			_ = c.session.Close() // a service may be told, or not
			close(left)
		}()
		select {
		case <-left:
		case <-time.After(leaveTime):
		}
	}
	c.cancel()
	c.end()
	if c.session != nil {
		_ = c.session.Close() // over the link, which is gone
	}
}

// dead tells whether nothing comes over a connection any more.
func (c *connection) dead() bool {
	select {
	case <-c.gone():
		return true
	default:
		return false
	}
}

// progressed tells whoever made a call how far it is.
func (c *connection) progressed(p *mcp.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	tell, ok := c.progress.Load(token)
	if !ok {
		return
	}
	text := p.Message
	if text == "" {
		text = strconv.FormatFloat(p.Progress, 'f', -1, 64)
		if p.Total > 0 {
			text += " of " + strconv.FormatFloat(p.Total, 'f', -1, 64)
		}
	}
	tell.(func(string))(text)
}
