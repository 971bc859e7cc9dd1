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

// olderProtocol is the version of the protocol to try with servers that don't answer the first message of the
// newest version.
const olderProtocol = "2025-11-25"

// A transport carries messages to an MCP server: over a program's pipes, or in HTTP requests to a service.
type transport interface {
	mcp.Transport
	// done returns a channel that is closed once the transport has ended.
	done() <-chan struct{}
	// failureReason says why the transport has ended, or which error was the last; "" if nothing is known.
	failureReason() string
	// wantsSignIn reports whether the server wants somebody to sign in.
	wantsSignIn() bool
	// received returns how many messages have arrived over the transport.
	received() int64
	// stop ends the transport and everything that it has started, and waits until they have ended.
	stop()
}

// A connection is a connection to one server, for one session or for all.
type connection struct {
	transport
	session      *mcp.ClientSession
	tools        []pins.Tool      // as the server listed them when it was last asked over this connection
	unusable     unusableByReason // the tools that could not be used when the connection was made
	toolsMu      sync.Mutex       // guards tools
	toolsChanged atomic.Bool      // the server has reported that its tools changed
	hasAnswered  atomic.Bool      // the server has answered a call over this connection
	cancel       context.CancelFunc

	progress sync.Map // functions that receive a call's progress, by the call's token
	tokens   atomic.Int64

	server *server
	// The pool guards these.
	calls     int       // how many calls use the connection now
	idleSince time.Time // when the last call ended
	idle      *time.Timer
	ending    bool
}

// connect connects to an MCP server and lists its tools. If the server does not answer the first message, connect
// tries once more with an older version of the protocol. held is the last time at which this process certainly held
// the lease of the chat session that needs the server.
func (s *Servers) connect(ctx context.Context, one *server, place sandbox.Place, held time.Time) (*connection, error) {
	limit := s.cfg.Limits.Connect
	if one.greetsWithOlder() {
		return s.connectOnce(ctx, one, place, held, olderProtocol, limit)
	}
	c, err := s.connectOnce(ctx, one, place, held, "", limit)
	if silent, ok := errors.AsType[*noAnswerError](err); ok && ctx.Err() == nil {
		// Some servers do not answer a greeting of a version that they don't know.
		if c, err = s.connectOnce(ctx, one, place, time.Time{}, olderProtocol, limit); err != nil {
			return nil, silent
		}
		one.mu.Lock()
		one.usesOldGreeting = true
		one.mu.Unlock()
	}
	return c, err
}

// greetsWithOlder reports whether the server is known to answer only the first message of the older protocol.
func (s *server) greetsWithOlder() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usesOldGreeting
}

// A noAnswerError is returned if a server hasn't answered in time.
type noAnswerError struct{ limit time.Duration }

func (e *noAnswerError) Error() string { return fmt.Sprintf("it did not answer within %s", e.limit) }

// connectOnce connects to a server within limit, with the given protocol version, or with the newest if protocol is
// "".
func (s *Servers) connectOnce(ctx context.Context, one *server, place sandbox.Place, held time.Time, protocol string, limit time.Duration) (*connection, error) {
	l, err := s.newTransport(ctx, one, place, held)
	if err != nil {
		return nil, err
	}
	// The connection outlives the call that makes it.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &connection{transport: l, cancel: cancel, server: one}
	expired := time.AfterFunc(limit, cancel)
	unwatch := context.AfterFunc(ctx, cancel)
	err = s.greet(own, one, c, protocol)
	late := !expired.Stop()
	unwatch()
	if err == nil && !late && ctx.Err() == nil {
		return c, nil
	}
	silent := late && c.received() == 0
	why, wants := c.failureReason(), c.wantsSignIn() // read before this function stops the transport
	c.close()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case wants:
		return nil, &SignInNeededError{one.Name}
	case silent:
		return nil, &noAnswerError{limit}
	case late:
		return nil, fmt.Errorf("it did not get ready within %s", limit)
	}
	if why != "" {
		return nil, errors.New(why)
	}
	return nil, err
}

// newTransport starts the server's program, or prepares requests to the service, and returns the transport to it.
func (s *Servers) newTransport(ctx context.Context, one *server, place sandbox.Place, held time.Time) (transport, error) {
	if one.Web() {
		return s.newHTTPTransport(one), nil
	}
	return s.startProgram(ctx, one, place, held)
}

// greet exchanges the first messages with a server and lists its tools. It doesn't let the server use models or
// read people's files. The server may ask questions only if the operator has configured answers to them.
func (s *Servers) greet(ctx context.Context, one *server, c *connection, protocol string) error {
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			c.toolsChanged.Store(true)
			one.requestLook()
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { c.reportProgress(r.Params) },
	}
	if one.Defaults {
		options.ElicitationHandler = s.answerQuestions(one)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "parley", Version: s.cfg.Version}, options)
	session, err := client.Connect(ctx, c.transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return fmt.Errorf("greet the server: %w", err)
	}
	c.session = session
	c.tools, c.unusable, err = s.listTools(ctx, one, session)
	return err
}

// close ends a connection and waits until nothing is left of it.
func (c *connection) close() {
	if c.session != nil && c.server.Web() {
		left := make(chan struct{})
		go func() {
			_ = c.session.Close() // it doesn't matter whether the service is told
			close(left)
		}()
		select {
		case <-left:
		case <-time.After(closeTimeout):
		}
	}
	c.cancel()
	c.stop()
	if c.session != nil {
		_ = c.session.Close() // over the transport, which is gone
	}
}

// isDead reports whether the connection's transport has ended, so that it can carry no more calls.
func (c *connection) isDead() bool {
	select {
	case <-c.done():
		return true
	default:
		return false
	}
}

// reportProgress passes a server's progress message on to the call that it belongs to.
func (c *connection) reportProgress(p *mcp.ProgressNotificationParams) {
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
