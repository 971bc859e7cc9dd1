package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"parley/sessions"
	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/plainjson"
)

var _ nodes.Backend = (*Service)(nil)

// CallID returns the id of the node call for a tool call. It is the same for every attempt.
func CallID(session, key string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}

// outcomeGrace is how long to wait for a call's outcome after its time is over, and how long a node has to end a call
// that was given up.
const outcomeGrace = 5 * time.Second

// resultAway is the result in metrics of a call that was not sent because its node is away. The result of any other
// call is its status.
const resultAway = "away"

// Call implements nodes.Backend.
func (s *Service) Call(ctx context.Context, node, tool string, args json.RawMessage, call tools.Call) (nodes.Outcome, error) {
	began := time.Now()
	a := &attempt{Service: s, id: CallID(call.Session, call.Key), requestedNode: node, toolCall: call}
	a.waiter = s.waiting.add(a.id, call.Progress)
	defer s.waiting.remove(a.id, a.waiter)
	if err := a.chooseAndRecord(ctx, node, tool, args, call); err != nil {
		_, waits := errors.AsType[*tools.Postponed](err)
		if known, ok := errors.AsType[*tools.Error](err); ok && known.Code == tools.NodeAway && a.allowedNode != "" && !waits {
			s.cfg.CountCall(a.allowedNode, resultAway, time.Since(began))
		}
		return nodes.Outcome{}, err
	}
	out, err := a.await(ctx)
	out.Node, out.Trusted = a.call.Node, a.isServersOutcome(out) || s.trusts(ctx, a.call.Node)
	if err == nil {
		s.cfg.CountCall(out.Node, string(out.Status), time.Since(began))
	}
	return out, err
}

// An attempt is one attempt of this process at a tool call that a node runs. The first one gives the call to the node,
// and each waits for its outcome.
type attempt struct {
	*Service
	id            string
	waiter        *waiter
	requestedNode string      // as the model has named it: a node, or any: and a capability
	allowedNode   string      // the node that the model has named, if the agent may use it
	call          stored.Call // as the store had it when it was last read
	hasPureTool   bool        // the tool says that it is pure
	toolCall      tools.Call
	// withdrawn is set if the call may have been withdrawn, but the store's answer was lost. It is the error to return
	// if the call is gone.
	withdrawn error
}

// chooseAndRecord chooses a node and records the call for it, unless the call is known. It returns an error if the
// fleet isn't ready for calls, if the arguments are too large, or if no node can run the call. If the named node is
// away, the call may be postponed instead (see awayError).
func (a *attempt) chooseAndRecord(ctx context.Context, node, tool string, args json.RawMessage, call tools.Call) (err error) {
	a.call, err = a.cfg.Calls.Call(ctx, a.id)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		a.hasPureTool = a.isPure(a.call)
		return nil
	case !errors.Is(err, stored.ErrUnknown):
		return a.storeFailed(err)
	}
	if why, err := a.cfg.Ready(ctx); err != nil {
		return a.storeFailed(err)
	} else if why != "" {
		return tools.Errorf(tools.ExecutionFailed, textNotReady, why)
	}
	if len(args) > nodes.MaxResult {
		return tools.Errorf(tools.InvalidArgs, textArgsTooLarge, nodes.MaxResult)
	}
	to, t, err := a.choose(ctx, node, tool, call)
	a.allowedNode, a.hasPureTool = to, t.Pure
	if err != nil {
		return err
	}
	return a.record(ctx, stored.Call{
		ID: a.id, Node: to, Tool: t.Name, Session: call.Session, Person: call.Person, Agent: call.Agent, Turn: call.Turn, Args: args, Timeout: t.Limit(), Approved: call.Approved, MadeAt: time.Now(),
	})
}

// record records the call. If the store fails, the call may have been recorded and sent, so record tries again as long
// as the call may take.
func (a *attempt) record(ctx context.Context, c stored.Call) (err error) {
	late := time.Now().Add(c.Timeout)
	l, process := linkTo(a.Service, c.Node), ""
	if l != nil {
		process = a.cfg.Process
	}
	for {
		var sends bool
		a.call, sends, err = a.cfg.Calls.GiveHere(ctx, c, process)
		switch {
		case err == nil:
			a.cfg.Point("node:given")
			if sends {
				l.sendGiven(c.ID)
			}
			return nil
		case errors.Is(err, sessions.ErrNotFound):
			return tools.Errorf(tools.Cancelled, textErased)
		case errors.Is(err, stored.ErrUnknown), errors.Is(err, stored.ErrRevoked):
			return tools.Errorf(tools.NotFound, textRemoved, c.Node)
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(late):
			return tools.Errorf(tools.OutcomeUnknown, textUnrecorded, c.Node)
		}
		a.cfg.Log.Warn("a call for a node cannot be recorded; trying again", slog.String("node", c.Node), slog.Any("error", err))
		select {
		case <-time.After(storeRetryDelay):
		case <-ctx.Done():
		}
	}
}

// storeFailed logs that the store has failed before anything was done, and returns the error for the model.
func (s *Service) storeFailed(err error) error {
	s.cfg.Log.Warn("what is known of nodes cannot be read", slog.Any("error", err))
	return tools.Errorf(tools.ExecutionFailed, textStoreFailed)
}

// isServersOutcome reports whether the outcome comes from the server, because the node has reported none.
func (a *attempt) isServersOutcome(out nodes.Outcome) bool {
	return out.Status != nodes.Done && (!a.hasEnded() || a.call.SentAt.IsZero())
}

// hasEnded reports whether the call's outcome is recorded.
func (a *attempt) hasEnded() bool { return !a.call.Ended.IsZero() }

// await waits for the outcome of the call. Until the call is sent, it notifies the link's process again and again,
// because an event may get lost.
func (a *attempt) await(ctx context.Context) (nodes.Outcome, error) {
	limit := a.call.Timeout + outcomeGrace
	if a.call.Cancelled {
		limit = outcomeGrace
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	again := time.NewTicker(recheckEvery)
	defer again.Stop()
	for !a.hasEnded() {
		if a.call.SentAt.IsZero() {
			a.ring(a.call)
		}
		select {
		case <-a.waiter.bell:
		case <-again.C:
		case <-late.C:
			if later := a.postpone(ctx); later != nil {
				return nodes.Outcome{}, later
			}
			return a.giveUp(ctx)
		case <-ctx.Done():
			if isGivenUp(ctx) {
				return a.giveUp(ctx)
			}
			return nodes.Outcome{}, ctx.Err() // the next attempt gets the outcome
		}
		if err := a.reread(ctx); err != nil {
			return nodes.Outcome{}, err
		}
		if !a.hasEnded() && !a.call.SentAt.IsZero() && a.isRevoked(ctx, a.call.Node) {
			return a.lost(textRevokedMeanwhile), nil
		}
		if later := a.postpone(ctx); later != nil {
			return nodes.Outcome{}, later
		}
	}
	return decodeOutcome(a.call), nil
}

// postpone withdraws a call that was not sent because its node has gone away, and returns the *tools.Postponed; nil if
// the call continues.
func (a *attempt) postpone(ctx context.Context) error {
	if a.cfg.WaitTime(a.call.Node) <= 0 || a.hasEnded() || !a.call.SentAt.IsZero() || a.call.Cancelled {
		return nil
	}
	n, err := a.cfg.Registry.Node(ctx, a.call.Node)
	if err != nil || n.Process != "" || n.State != stored.Accepted {
		return nil //nolint:nilerr // try again at the next notification
	}
	lost := decodeNode(n)
	could := []Node{lost}
	if capability, isAny := strings.CutPrefix(a.requestedNode, nodes.AnyPrefix); isAny {
		all, err := a.usableNodes(ctx, a.toolCall)
		if err != nil {
			return nil //nolint:nilerr // try again at the next notification
		}
		could = nodesWithTool(all, capability, a.call.Tool)
	}
	later, ok := errors.AsType[*tools.Postponed](a.cfg.awayError(could, a.toolCall, tools.Errorf(tools.NodeAway, textNodeAway, lost.Name, sinceText(lost.LinkChanged))))
	if !ok {
		return nil
	}
	if a.toolCall.CheckLease != nil && a.toolCall.CheckLease(ctx) != nil { // another process may be waiting for the call by now
		return nil
	}
	withdrawn, err := a.cfg.Calls.Withdraw(ctx, a.id)
	if err != nil {
		a.cfg.Log.Warn("it is unknown whether a node's call is withdrawn; looking", slog.String("node", a.call.Node), slog.Any("error", err))
		a.withdrawn = later
		return nil
	}
	if !withdrawn { // the call was sent after all
		return nil
	}
	return later
}

// reread reads the call's record again. If that fails, the call stays as it was. If the record is gone, the error says
// that the call was erased, or it is withdrawn.
func (a *attempt) reread(ctx context.Context) error {
	now, err := a.cfg.Calls.Call(ctx, a.id)
	switch {
	case err == nil:
		a.call = now
	case errors.Is(err, stored.ErrUnknown) && a.withdrawn != nil:
		return a.withdrawn
	case errors.Is(err, stored.ErrUnknown):
		return tools.Errorf(tools.Cancelled, textErased)
	case ctx.Err() == nil:
		a.cfg.Log.Warn("it cannot be read how a node's call stands", slog.String("node", a.call.Node), slog.Any("error", err))
	}
	return nil
}

// trusts reports whether results of a node are trusted. Those of a node without a key never are, because anybody at its
// broker may send them.
func (s *Service) trusts(ctx context.Context, node string) bool {
	if !s.cfg.Trusted(node) {
		return false
	}
	n, err := s.cfg.Registry.Node(context.WithoutCancel(ctx), node)
	return err == nil && !n.IsKeyless()
}

// isRevoked reports whether a node is certainly revoked.
func (s *Service) isRevoked(ctx context.Context, node string) bool {
	n, err := s.cfg.Registry.Node(ctx, node)
	return err == nil && n.State == stored.Revoked
}

// ring tells the process that has the node's link that a call waits for the node.
func (s *Service) ring(c stored.Call) {
	if l := linkTo(s, c.Node); l != nil {
		l.ring()
	}
	s.emit(callWaits, c.Node, c.ID, "")
}

// isGivenUp reports whether ctx has ended because the outcome isn't wanted anymore, or because the call took too long.
func isGivenUp(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, tools.ErrUnwanted) || errors.Is(cause, context.DeadlineExceeded)
}

// giveUp ends a call whose outcome isn't wanted anymore. The node is told to end it, and has a moment to report the
// outcome.
func (a *attempt) giveUp(ctx context.Context) (nodes.Outcome, error) {
	stopped := errors.Is(context.Cause(ctx), tools.ErrUnwanted)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeGrace)
	defer cancel()
	if err := a.cancel(ctx, stopped); err != nil {
		return nodes.Outcome{}, err
	}
	again := time.NewTicker(recheckEvery)
	defer again.Stop()
	for !a.hasEnded() && ctx.Err() == nil && !(stopped && a.hasPureTool) {
		a.ring(a.call)
		select {
		case <-a.waiter.bell:
		case <-again.C:
		case <-ctx.Done():
			continue
		}
		if err := a.reread(ctx); err != nil {
			return nodes.Outcome{}, err
		}
	}
	switch {
	case stopped:
		a.ring(a.call)
		return nodes.Outcome{}, context.Canceled
	case !a.hasEnded():
		return a.lost(textNoAnswer), nil
	}
	return decodeOutcome(a.call), nil
}

// cancel ends the call if it was never sent, and records that it is cancelled otherwise.
func (a *attempt) cancel(ctx context.Context, stopped bool) error {
	notRun := nodes.Outcome{Status: nodes.NotRun, Error: tools.Errorf(tools.NodeAway, textNeverSent, a.call.Node)}
	if stopped {
		notRun.Error = tools.Errorf(tools.Cancelled, textStopped)
	}
	raw, err := plainjson.Marshal(notRun)
	if err != nil {
		return err
	}
	now, err := a.cfg.Calls.Cancel(ctx, a.id, raw, time.Now())
	if err != nil { // nobody knows whether it was sent
		a.cfg.Log.Warn("a node's call cannot be cancelled", slog.String("node", a.call.Node), slog.Any("error", err))
		return nil
	}
	a.call = now
	return nil
}

// lost returns the outcome of a call that was sent and never reported. The outcome is not recorded: if the node comes
// back, it reports the real one.
func (a *attempt) lost(why string) nodes.Outcome {
	if a.hasPureTool {
		return nodes.Outcome{Status: nodes.Failed, Error: tools.Errorf(tools.Timeout, textPureLost, a.call.Tool, a.call.Node)}
	}
	return nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, why, a.call.Tool, a.call.Node)}
}

// decodeOutcome returns the recorded outcome of a call.
func decodeOutcome(c stored.Call) (out nodes.Outcome) {
	if err := json.Unmarshal(c.Outcome, &out); err != nil { // another release has written it
		return nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, textUnreadable, c.Tool, c.Node)}
	}
	return out
}
