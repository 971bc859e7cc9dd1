package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes/mqtt"
	"parley/tools/plainjson"
)

// Limits on messages of an edge agent: so many reports a second, so many at once, and as many other messages. Changes
// of its offer are stored, so they may come less often. Messages beyond a limit are dropped. Reports have a limit of
// their own, so an agent that sends too many signs of life loses no report.
const (
	edgeRate         = 10
	edgeBurst        = 40
	edgeInbox        = 16 // messages that wait
	edgeOfferEvery   = 10 * time.Second
	edgeOfferBurst   = 3
	edgeRefusedFor   = time.Minute // how long an agent with an invalid name is ignored
	edgeRecheckEvery = 30 * time.Second
)

// An edge serves one edge agent for this process. Its run does all work for the agent, one step after another.
type edge struct {
	*broker
	name          string
	reports       inbox
	otherMessages inbox
	bell          chan struct{} // has an element if there may be calls to send
	check         chan struct{} // has an element if the node's record may have changed
	floodLogLimit *rate.Limiter // limits how often it is logged that the agent sends too much

	// The following belong to run.
	offerLimit       *rate.Limiter
	toolNames        []string        // the agent's tools, as it has last listed them
	storedOffer      json.RawMessage // the agent's offer as the store has it
	isLinked         bool            // the store says that this process can reach the agent
	lastHeard        time.Time       // when the agent last said something
	ignoredUntil     time.Time       // the agent's messages are ignored until then
	takenOver        bool            // another process reached the agent until a moment ago, and this one takes it over
	reportsNameCalls bool            // the agent's last report has named its call
}

// An inbox holds an agent's unread messages.
type inbox struct {
	waiting chan mqtt.Message
	limit   *rate.Limiter
}

func newInbox() inbox {
	return inbox{waiting: make(chan mqtt.Message, edgeInbox), limit: rate.NewLimiter(edgeRate, edgeBurst)}
}

// put adds a message. It returns false if the agent sends too much.
func (i inbox) put(m mqtt.Message) bool {
	if !i.limit.Allow() {
		return false
	}
	select {
	case i.waiting <- m:
		return true
	default:
		return false
	}
}

// newEdge makes an edge; n is the agent's node in the store.
func newEdge(b *broker, name string, n Node) *edge {
	e := &edge{
		broker: b, name: name, reports: newInbox(), otherMessages: newInbox(), bell: make(chan struct{}, 1), check: make(chan struct{}, 1),
		floodLogLimit: rate.NewLimiter(rate.Every(time.Minute), 1), offerLimit: rate.NewLimiter(rate.Every(edgeOfferEvery), edgeOfferBurst),
		storedOffer: n.Node.Offer, takenOver: n.Process != "" && n.State != stored.Revoked, lastHeard: time.Now(),
	}
	for _, t := range n.Offer.Tools {
		e.toolNames = append(e.toolNames, t.Name)
	}
	return e
}

// log returns a logger that names the node.
func (e *edge) log() *slog.Logger { return e.Service.cfg.Log.With(slog.String("node", e.name)) }

// enqueue hands a message to run, unless the agent sends too much.
func (e *edge) enqueue(m mqtt.Message) {
	to := e.otherMessages
	if m.Kind == mqtt.KindReports {
		to = e.reports
	}
	if !to.put(m) && e.floodLogLimit.Allow() {
		e.log().Warn("messages of an edge agent are dropped, because there are too many")
	}
}

// run serves the agent until ctx is done, or the agent can't be a node.
func (e *edge) run(ctx context.Context) {
	if e.takenOver {
		_ = e.record(ctx, true) // an error is logged, and the agent's next message records it again
	}
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-e.reports.waiting:
			e.handle(ctx, m)
		case m := <-e.otherMessages.waiting:
			if !e.handle(ctx, m) {
				e.removeEdge(e.name)
				return
			}
		case <-e.check:
			e.recheck(ctx)
		case <-e.bell:
		case <-wake.C:
		}
		e.leaveIfSilent(ctx)
		wake.Reset(e.serveCalls(ctx))
	}
}

// handle handles a message of the agent. It returns false if the agent can't be a node.
func (e *edge) handle(ctx context.Context, m mqtt.Message) bool {
	if names, ok := mqtt.Names(m.Payload); ok && m.Kind == mqtt.KindCapabilities {
		e.toolNames = names
	}
	if !m.Retained {
		e.lastHeard = time.Now()
	}
	if err := e.record(ctx, !m.Retained); errors.Is(err, stored.ErrFull) {
		return false
	}
	if m.Kind == mqtt.KindReports && !m.Retained {
		e.recordReport(ctx, m)
	}
	return true
}

// record records that this process can reach the agent, if the agent is alive, and what it offers, unless that is
// recorded.
func (e *edge) record(ctx context.Context, lives bool) error {
	names := e.cfg.Tools(e.name)
	if names == nil {
		names = e.toolNames
	}
	offer, err := plainjson.Marshal(mqtt.OfferOf(names, e.cfg.Timing.Call))
	if err != nil {
		return err
	}
	process := ""
	if lives || e.isLinked {
		process = e.Service.cfg.Process
	}
	if (e.isLinked || !lives) && bytes.Equal(offer, e.storedOffer) || time.Now().Before(e.ignoredUntil) || !e.offerLimit.Allow() {
		return nil
	}
	n, err := e.cfg.Edges.Discover(ctx, e.name, process, offer, time.Now())
	if err != nil {
		e.refuse(ctx, err)
		return err
	}
	if process != "" && !e.isLinked {
		e.log().Info("a node is here", slog.String("over", "MQTT"))
	}
	e.storedOffer, e.isLinked = bytes.Clone(offer), process != ""
	e.emit(nodeChanged, e.name, "", "")
	e.Service.cfg.WaitOver()
	e.announce(ctx, n)
	return nil
}

// refuse ignores the agent for a while, because it cannot be recorded.
func (e *edge) refuse(ctx context.Context, err error) {
	e.isLinked, e.ignoredUntil = false, time.Now().Add(storeRetryDelay)
	if errors.Is(err, stored.ErrTaken) || errors.Is(err, stored.ErrRevoked) {
		e.ignoredUntil = time.Now().Add(edgeRefusedFor)
	}
	if ctx.Err() == nil && e.floodLogLimit.Allow() {
		e.log().Warn("an edge agent cannot be recorded", slog.Any("error", err))
	}
}

// recheck checks whether this process can still reach the agent: an owner may have revoked or accepted it, or another
// process may have the broker.
func (e *edge) recheck(ctx context.Context) {
	n, err := e.Service.cfg.Registry.Node(ctx, e.name)
	if err != nil && !errors.Is(err, stored.ErrUnknown) {
		return // try again at the next check
	}
	if err != nil || !n.IsKeyless() || n.State == stored.Revoked || n.Process != e.Service.cfg.Process {
		e.isLinked = false
	}
	if err == nil && n.IsKeyless() && n.State != stored.Revoked {
		e.ignoredUntil = time.Time{}
	}
}

// leaveIfSilent records that the agent is away after it has been silent for too long.
func (e *edge) leaveIfSilent(ctx context.Context) {
	if !e.isLinked || time.Since(e.lastHeard) < e.cfg.Timing.Silence {
		return
	}
	if e.recheck(ctx); !e.isLinked { // another device may have the name by now
		return
	}
	if err := e.Service.cfg.Links.Unlink(ctx, e.name, e.Service.cfg.Process, time.Now()); err != nil {
		e.log().Warn("it cannot be recorded that a node is away", slog.Any("error", err))
		return
	}
	e.isLinked = false
	e.log().Info("a node is away", slog.String("over", "MQTT"))
	e.emit(nodeChanged, e.name, "", "")
}

// clipName shortens a name, which may be any text, for the log.
func clipName(name string) string { return tools.Clip(name, 80) }
