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

// CallID returns the id of the call that a tool call gives to a node: the same for every attempt.
func CallID(session, key string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}

// outcomeGrace is how much longer than a call may take its outcome is waited for, and how long a node has to end a call that
// was given up.
const outcomeGrace = 5 * time.Second

// countedAway is how a call is counted that was not given because its node is away; any other is counted by its status.
const countedAway = "away"

// Call implements nodes.Backend.
func (s *Service) Call(ctx context.Context, node, tool string, args json.RawMessage, call tools.Call) (nodes.Outcome, error) {
	began := time.Now()
	a := &attempt{Service: s, id: CallID(call.Session, call.Key), asked: node, of: call}
	a.waiter = s.waiting.add(a.id, call.Progress)
	defer s.waiting.remove(a.id, a.waiter)
	if err := a.give(ctx, node, tool, args, call); err != nil {
		_, waits := errors.AsType[*tools.Postponed](err)
		if known, ok := errors.AsType[*tools.Error](err); ok && known.Code == tools.NodeAway && a.node != "" && !waits {
			s.cfg.Count(a.node, countedAway, time.Since(began))
		}
		return nodes.Outcome{}, err
	}
	out, err := a.await(ctx)
	out.Node, out.Trusted = a.call.Node, a.isOwn(out) || s.trusts(ctx, a.call.Node)
	if err == nil {
		s.cfg.Count(out.Node, string(out.Status), time.Since(began))
	}
	return out, err
}

// An attempt is one attempt, in this process, at a tool call that a node runs. The first one gives the call to the node,
// and each waits for its outcome.
type attempt struct {
	*Service
	id     string
	waiter *waiter
	asked  string      // the node as the model has named it, or any: and a capability
	node   string      // that was named, if it is one that may be used
	call   stored.Call // as it was recorded when it was last looked at
	pure   bool        // its tool says that it is
	of     tools.Call
	// withdrawn is set if the call may have been withdrawn, but the store's answer was lost: what to return if it is gone.
	withdrawn error
}

// give chooses a node and records the call for it, unless the call is known. It refuses the call if the fleet
// isn't ready for calls, if its arguments are too large, or if no node can run it; if the node that was named is away, the
// call may be postponed instead (see away).
func (a *attempt) give(ctx context.Context, node, tool string, args json.RawMessage, call tools.Call) (err error) {
	a.call, err = a.cfg.Calls.Call(ctx, a.id)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		a.pure = a.isPure(a.call)
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
	a.node, a.pure = to, t.Pure
	if err != nil {
		return err
	}
	return a.record(ctx, stored.Call{
		ID: a.id, Node: to, Tool: t.Name, Session: call.Session, Person: call.Person, Agent: call.Agent, Turn: call.Turn, Args: args, Timeout: t.Limit(), Approved: call.Approved, MadeAt: time.Now(),
	})
}

// record records the call. If the store fails, it is not known whether the call is recorded, and whoever has the link may
// send it: so record tries again as long as the call may take.
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
			return tools.Errorf(tools.NotFound, textGone, c.Node)
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(late):
			return tools.Errorf(tools.OutcomeUnknown, textUnrecorded, c.Node)
		}
		a.cfg.Log.Warn("a call for a node cannot be recorded; trying again", slog.String("node", c.Node), slog.Any("error", err))
		select {
		case <-time.After(storeAgain):
		case <-ctx.Done():
		}
	}
}

// storeFailed logs that the store has failed before anything was done, and returns the error for the model.
func (s *Service) storeFailed(err error) error {
	s.cfg.Log.Warn("what is known of nodes cannot be read", slog.Any("error", err))
	return tools.Errorf(tools.ExecutionFailed, textStore)
}

// isOwn reports whether the server itself says how the call ended, because the node has said nothing.
func (a *attempt) isOwn(out nodes.Outcome) bool {
	return out.Status != nodes.Done && (!a.hasEnded() || a.call.SentAt.IsZero())
}

// hasEnded reports whether the outcome is recorded.
func (a *attempt) hasEnded() bool { return !a.call.Ended.IsZero() }

// await waits for the outcome of the call. As long as the call was not sent, it rings again and again: a lost event costs
// seconds.
func (a *attempt) await(ctx context.Context) (nodes.Outcome, error) {
	limit := a.call.Timeout + outcomeGrace
	if a.call.Cancelled {
		limit = outcomeGrace
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	again := time.NewTicker(lookAgain)
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
	return decode(a.call), nil
}

// postpone withdraws a call that was not sent because its node has gone away, and returns the *tools.Postponed; nil if the
// call goes on as before.
func (a *attempt) postpone(ctx context.Context) error {
	if a.cfg.Wait(a.call.Node) <= 0 || a.hasEnded() || !a.call.SentAt.IsZero() || a.call.Cancelled {
		return nil
	}
	n, err := a.cfg.Registry.Node(ctx, a.call.Node)
	if err != nil || n.Process != "" || n.State != stored.Accepted {
		return nil //nolint:nilerr // the next time
	}
	lost := open(n)
	could := []Node{lost}
	if capability, isAny := strings.CutPrefix(a.asked, nodes.Any); isAny {
		all, err := a.usable(ctx, a.of)
		if err != nil {
			return nil //nolint:nilerr // the next time
		}
		could = withTool(all, capability, a.call.Tool)
	}
	later, ok := errors.AsType[*tools.Postponed](a.cfg.away(could, a.of, tools.Errorf(tools.NodeAway, textAway, lost.Name, sinceText(lost.LinkChanged))))
	if !ok {
		return nil
	}
	if a.of.CheckLease != nil && a.of.CheckLease(ctx) != nil { // another process may wait for it
		return nil
	}
	withdrawn, err := a.cfg.Calls.Withdraw(ctx, a.id)
	if err != nil {
		a.cfg.Log.Warn("it is unknown whether a node's call is withdrawn; looking", slog.String("node", a.call.Node), slog.Any("error", err))
		a.withdrawn = later
		return nil
	}
	if !withdrawn { // it was sent after all
		return nil
	}
	return later
}

// reread reads the call as it is recorded now; if it cannot be read, it is as it was. If it is gone, the error says that it was
// erased, for the model, or is withdrawn.
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

// trusts reports whether what a node returns is trusted. A node without a key never is: anybody at its broker may speak for it.
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

// ring tells the process that has the node's link that a call waits there.
func (s *Service) ring(c stored.Call) {
	if l := linkTo(s, c.Node); l != nil {
		l.ring()
	}
	s.emit(callWaits, c.Node, c.ID, "")
}

// isGivenUp reports whether ctx has ended because nobody wants the outcome anymore, or because it took too long.
func isGivenUp(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, tools.ErrUnwanted) || errors.Is(cause, context.DeadlineExceeded)
}

// giveUp ends the call, whose outcome is not waited for any longer. The node is told to end it, and has a moment to say
// how it has ended.
func (a *attempt) giveUp(ctx context.Context) (nodes.Outcome, error) {
	stopped := errors.Is(context.Cause(ctx), tools.ErrUnwanted)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeGrace)
	defer cancel()
	if err := a.cancel(ctx, stopped); err != nil {
		return nodes.Outcome{}, err
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for !a.hasEnded() && ctx.Err() == nil && !(stopped && a.pure) {
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
	return decode(a.call), nil
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

// lost returns the outcome of a call that was sent and of which nothing more was heard. It is not recorded: if the node
// comes back, it tells what has become of the call.
func (a *attempt) lost(why string) nodes.Outcome {
	if a.pure {
		return nodes.Outcome{Status: nodes.Failed, Error: tools.Errorf(tools.Timeout, textPureLost, a.call.Tool, a.call.Node)}
	}
	return nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, why, a.call.Tool, a.call.Node)}
}

// decode returns the recorded outcome of a call.
func decode(c stored.Call) (out nodes.Outcome) {
	if err := json.Unmarshal(c.Outcome, &out); err != nil { // another release has written it
		return nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, textUnreadable, c.Tool, c.Node)}
	}
	return out
}
