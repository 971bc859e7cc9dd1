package mcp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
	"parley/tools/mcp/pins"
)

// A tool is a server's tool as an agent sees it.
type tool struct {
	servers *Servers
	server  *server
	pin     pins.Tool // the tool in the form that the model is shown
	spec    tools.Spec
}

func newTool(s *Servers, one *server, pin pins.Tool, alias string) *tool {
	return &tool{servers: s, server: one, pin: pin, spec: tools.Spec{
		Name: alias, Description: pin.Description, Schema: pin.Schema,
		// Whatever a server says about the tool, nobody here knows what repeating a call would do.
		Effect: tools.Once, Timeout: one.Timeout, MaxTimeout: -1, Touches: tools.TouchesAlways(one.touch()),
	}}
}

// touch says what each call of the server's tools touches. A program may write any file in the workspace, and what
// a service returns is written there, too. Which files a call reads can only be seen in its arguments. What the
// server says about a tool (that it only reads, for example) is never trusted.
func (s Server) touch() tools.Touch {
	t := tools.Touch{Reads: tools.Paths{}, Writes: tools.AnyFiles{}, Outward: tools.NothingOutward{}}
	if s.Web() || s.Shared || s.Network.Full || len(s.Network.Hosts) > 0 {
		t.Outward = tools.OutwardEffect("call a tool of " + s.Name)
	}
	return t
}

// Spec implements tools.Tool with the accepted description.
func (t *tool) Spec() tools.Spec { return t.spec }

// maxLeaseAge limits how long ago this process last certainly held the session when a request is sent to a service:
// another process may have taken the session since. Programs need no such limit, because their supervisor ends them
// when this process hangs.
const maxLeaseAge = 3 * time.Second

// Run implements tools.Tool: it calls the tool at its server, and removes the server's tokens
// from the result.
func (t *tool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	result, err := t.run(ctx, call)
	if errors.Is(err, errSessionLost) { // the service did nothing, and run now makes a new connection
		result, err = t.run(ctx, call)
	}
	return t.servers.withoutTokens(t.server, result, err)
}

// run makes a call over the existing connection, or over a new one. It returns errSessionLost if the service no
// longer knows the connection, and therefore has not begun the call.
func (t *tool) run(ctx context.Context, call tools.Call) (tools.Result, error) {
	c, err := t.servers.pool.acquire(ctx, t.server, call)
	if err != nil {
		if ctx.Err() != nil {
			return tools.Result{}, ctx.Err()
		}
		if known, ok := errors.AsType[*tools.Error](err); ok {
			return tools.Result{}, known
		}
		if _, wants := errors.AsType[*SignInNeededError](err); wants {
			return t.notSignedIn()
		}
		return untrustedError(tools.ExecutionFailed, "the MCP server %s cannot be reached, so nothing was done: %v", t.server.Name, err)
	}
	end := connectionUsable
	defer func() { t.servers.pool.release(c, call, end) }()
	if refused := t.checkAccepted(ctx, c); refused != nil {
		return tools.Result{Untrusted: true}, refused
	}
	if t.server.Web() && !call.HeldAt.IsZero() && time.Since(call.HeldAt) > maxLeaseAge {
		return tools.Result{}, tools.Errorf(tools.ExecutionFailed, "connecting took so long that the call was not made: call again")
	}
	heard := c.received()
	ctx = withCallRecord(ctx)
	answer, err := t.call(ctx, c, call)
	if !t.server.Web() && !t.server.Shared {
		t.servers.cfg.FilesChanged(call)
	}
	if err != nil {
		if t.server.Web() && c.hasAnswered.Load() && ctx.Err() == nil && c.session.ID() != "" && callRecordOf(ctx).lacksSession() {
			end = connectionForgotten
			return tools.Result{}, errSessionLost
		}
		_, answered := errors.AsType[*jsonrpc.Error](err)
		// A program that was silent during the whole call, or a service that broke off, is not used again; a
		// program that is still working may be.
		if c.isDead() || t.server.Web() && !answered && ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) && c.received() == heard {
			end = connectionBroken
		}
		return t.callError(ctx, c, err)
	}
	c.hasAnswered.Store(true)
	return t.servers.toResult(ctx, call, t.server, answer)
}

// checkAccepted returns why a tool must not be called over a connection: the server no longer has it, or it differs
// from what was accepted. It returns nil if it may be called.
func (t *tool) checkAccepted(ctx context.Context, c *connection) *tools.Error {
	c.toolsMu.Lock()
	defer c.toolsMu.Unlock()
	if c.toolsChanged.Swap(false) {
		listed, _, err := t.servers.listTools(ctx, t.server, c.session)
		if err == nil {
			err = t.servers.observe(ctx, t.server, listed)
		}
		if err != nil {
			c.toolsChanged.Store(true)
			return tools.Errorf(tools.ExecutionFailed, "the MCP server %s said that its tools have changed, and cannot say how, so nothing was done: %v", t.server.Name, err)
		}
		c.tools = listed
	}
	i := slices.IndexFunc(c.tools, func(now pins.Tool) bool { return now.Name == t.pin.Name })
	switch {
	case i < 0:
		return tools.Errorf(tools.NotFound, "the MCP server %s no longer has the tool %s: go on without it", t.server.Name, tools.Clip(t.pin.Name, 64))
	case !t.servers.cfg.Pins.Accepted(t.server.Name, c.tools[i]):
		return tools.Errorf(tools.PermissionDenied, "%s describes itself differently than when it was accepted, so it was not called: an owner looks at it and runs parley mcp accept %s", t.spec.Name, t.server.Name)
	}
	return nil
}

// call makes one call over a connection.
func (t *tool) call(ctx context.Context, c *connection, call tools.Call) (*mcp.CallToolResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.done():
			cancel(errConnectionEnded)
		case <-ctx.Done():
		}
	}()
	params := &mcp.CallToolParams{Name: t.pin.Name, Arguments: call.Args}
	if call.Progress != nil {
		token := call.ID + "/" + strconv.FormatInt(c.tokens.Add(1), 10)
		c.progress.Store(token, throttle(call.Progress, time.Now))
		defer c.progress.Delete(token)
		params.SetProgressToken(token)
	}
	answer, err := c.session.CallTool(ctx, params)
	if err != nil && errors.Is(context.Cause(ctx), errConnectionEnded) {
		return nil, errConnectionEnded
	}
	return answer, err
}

// errSessionLost says that a service no longer knows a connection, for example after the service was restarted.
var errSessionLost = errors.New("the service no longer knows the connection")

// errConnectionEnded says that the connection ended during the call.
var errConnectionEnded = errors.New("the connection ended")

// callError returns the error that tells the model why a call failed.
func (t *tool) callError(ctx context.Context, c *connection, err error) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{}, ctx.Err()
	}
	sent := callRecordOf(ctx)
	if sent.wantedSignIn() {
		t.servers.recordOutcome(ctx, t.server, &SignInNeededError{t.server.Name})
		return t.notSignedIn()
	}
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok && (!t.server.Web() || sent.isServiceError(said)) {
		code := tools.ExecutionFailed
		if said.Code == jsonrpc.CodeInvalidParams {
			code = tools.InvalidArgs
		}
		return untrustedError(code, "%s: %s", t.server.Name, tools.Clip(said.Message, maxQuotedOutput))
	}
	if sent.wasRefused() {
		return untrustedError(tools.ExecutionFailed, "the MCP server %s refused the call: %s. Call again if it is still wanted.", t.server.Name, sent.reason())
	}
	if t.server.Web() && !sent.begun.Load() {
		return untrustedError(tools.ExecutionFailed, "the MCP server %s cannot be reached, so nothing was done: %v", t.server.Name, err)
	}
	how := cmp.Or(sent.reason(), err.Error())
	if reason := c.failureReason(); !t.server.Web() && reason != "" {
		how = reason
	}
	if !c.isDead() && !t.server.Web() {
		return untrustedError(tools.ExecutionFailed, "the answer of the MCP server %s cannot be read: %v", t.server.Name, err)
	}
	return untrustedError(tools.OutcomeUnknown, "OUTCOME UNKNOWN: the MCP server %s was lost while %s ran (%s), so it may have had its effect. Inspect before repeating it.", t.server.Name, t.spec.Name, how)
}

// notSignedIn returns the error for a call that a service has refused because nobody is signed in.
func (t *tool) notSignedIn() (tools.Result, error) {
	return tools.Result{}, tools.Errorf(tools.PermissionDenied, "the MCP server %s wants somebody to be signed in, or to be allowed more, so nothing was done: an owner runs parley mcp login %s", t.server.Name, t.server.Name)
}

// progressEvery is the shortest time between two progress reports of a call.
const progressEvery = 500 * time.Millisecond

// throttle returns a function that passes progress reports on to report, one line each, but drops reports that come
// faster than people can read them.
func throttle(report func(string), now func() time.Time) func(string) {
	var told time.Time
	return func(text string) {
		if now().Sub(told) < progressEvery {
			return
		}
		told = now()
		report(oneLine(text))
	}
}
