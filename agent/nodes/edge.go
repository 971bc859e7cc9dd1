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

// What an edge agent may say: so many reports a second, and so many at once, and as many other messages. A change of what it
// offers is stored, and so may come less often. What is more is dropped. Reports are apart, so that an agent which says too
// often that it lives loses none.
const (
	edgeRate       = 10
	edgeBurst      = 40
	edgeInbox      = 16 // messages that wait
	edgeOfferEvery = 10 * time.Second
	edgeOfferBurst = 3
	edgeRefused    = time.Minute // how long an agent is ignored whose name it can't have
	edgeLookAgain  = 30 * time.Second
)

// An edge is an edge agent that this process looks after. Its run does all that has to do with the agent, one after another.
type edge struct {
	*broker
	name    string
	reports inbox
	others  inbox
	bell    chan struct{} // has an element if there may be calls to send
	check   chan struct{} // has an element if the node's record may have changed
	noted   *rate.Limiter // how often it is logged that the agent says too much

	// The following belong to run.
	offers   *rate.Limiter
	names    []string        // the agent's tools, as it has named them last
	recorded json.RawMessage // what the store has of what it offers
	linked   bool            // the store says that this process can reach the agent
	heard    time.Time       // when the agent last said something
	refused  time.Time       // until then it is ignored
	taken    bool            // another process could reach it a moment ago, and this one takes it over
	tells    bool            // with its last report, the agent has said which call it is of
}

// An inbox holds what an agent has said and nobody has read.
type inbox struct {
	waiting chan mqtt.Message
	paced   *rate.Limiter
}

func newInbox() inbox {
	return inbox{waiting: make(chan mqtt.Message, edgeInbox), paced: rate.NewLimiter(edgeRate, edgeBurst)}
}

// put adds a message. It returns false if the agent says too much.
func (i inbox) put(m mqtt.Message) bool {
	if !i.paced.Allow() {
		return false
	}
	select {
	case i.waiting <- m:
		return true
	default:
		return false
	}
}

// newEdge makes an edge; n is what the store has of it.
func newEdge(b *broker, name string, n Node) *edge {
	e := &edge{
		broker: b, name: name, reports: newInbox(), others: newInbox(), bell: make(chan struct{}, 1), check: make(chan struct{}, 1),
		noted: rate.NewLimiter(rate.Every(time.Minute), 1), offers: rate.NewLimiter(rate.Every(edgeOfferEvery), edgeOfferBurst),
		recorded: n.Node.Offer, taken: n.Process != "" && n.State != stored.Revoked, heard: time.Now(),
	}
	for _, t := range n.Offer.Tools {
		e.names = append(e.names, t.Name)
	}
	return e
}

// log returns what is logged with.
func (e *edge) log() *slog.Logger { return e.Service.cfg.Log.With(slog.String("node", e.name)) }

// post hands a message to run, unless the agent says too much.
func (e *edge) post(m mqtt.Message) {
	to := e.others
	if m.Kind == mqtt.Reports {
		to = e.reports
	}
	if !to.put(m) && e.noted.Allow() {
		e.log().Warn("messages of an edge agent are dropped, because there are too many")
	}
}

// run looks after the agent until ctx is done, or the agent can't be a node.
func (e *edge) run(ctx context.Context) {
	if e.taken {
		_ = e.record(ctx, true) // it is logged, and what the agent says next has it recorded
	}
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-e.reports.waiting:
			e.hear(ctx, m)
		case m := <-e.others.waiting:
			if !e.hear(ctx, m) {
				e.forget(e.name)
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

// hear takes what the agent says. It returns false if the agent can't be a node.
func (e *edge) hear(ctx context.Context, m mqtt.Message) bool {
	if names, ok := mqtt.Names(m.Payload); ok && m.Kind == mqtt.Capabilities {
		e.names = names
	}
	if !m.Retained {
		e.heard = time.Now()
	}
	if err := e.record(ctx, !m.Retained); errors.Is(err, stored.ErrFull) {
		return false
	}
	if m.Kind == mqtt.Reports && !m.Retained {
		e.report(ctx, m)
	}
	return true
}

// record records that this process can reach the agent, if it lives, and what it offers, unless that is recorded.
func (e *edge) record(ctx context.Context, lives bool) error {
	names := e.cfg.Tools(e.name)
	if names == nil {
		names = e.names
	}
	offer, err := plainjson.Marshal(mqtt.OfferOf(names, e.cfg.Timing.Call))
	if err != nil {
		return err
	}
	process := ""
	if lives || e.linked {
		process = e.Service.cfg.Process
	}
	if (e.linked || !lives) && bytes.Equal(offer, e.recorded) || time.Now().Before(e.refused) || !e.offers.Allow() {
		return nil
	}
	n, err := e.cfg.Edges.Discover(ctx, e.name, process, offer, time.Now())
	if err != nil {
		e.refuse(ctx, err)
		return err
	}
	if process != "" && !e.linked {
		e.log().Info("a node is here", slog.String("over", "MQTT"))
	}
	e.recorded, e.linked = bytes.Clone(offer), process != ""
	e.emit(nodeChanged, e.name, "", "")
	e.Service.cfg.Over()
	e.announce(ctx, n)
	return nil
}

// refuse ignores the agent for a while, because it cannot be recorded.
func (e *edge) refuse(ctx context.Context, err error) {
	e.linked, e.refused = false, time.Now().Add(storeAgain)
	if errors.Is(err, stored.ErrTaken) || errors.Is(err, stored.ErrRevoked) {
		e.refused = time.Now().Add(edgeRefused)
	}
	if ctx.Err() == nil && e.noted.Allow() {
		e.log().Warn("an edge agent cannot be recorded", slog.Any("error", err))
	}
}

// recheck looks whether this process can still reach the agent: an owner may have revoked or accepted it, or another process
// may have the broker.
func (e *edge) recheck(ctx context.Context) {
	n, err := e.Service.cfg.Registry.Node(ctx, e.name)
	if err != nil && !errors.Is(err, stored.ErrUnknown) {
		return // the next time
	}
	if err != nil || !n.IsKeyless() || n.State == stored.Revoked || n.Process != e.Service.cfg.Process {
		e.linked = false
	}
	if err == nil && n.IsKeyless() && n.State != stored.Revoked {
		e.refused = time.Time{}
	}
}

// leaveIfSilent records that the agent is away once it has been silent for long.
func (e *edge) leaveIfSilent(ctx context.Context) {
	if !e.linked || time.Since(e.heard) < e.cfg.Timing.Silence {
		return
	}
	if e.recheck(ctx); !e.linked { // the name may be another device's by now
		return
	}
	if err := e.Service.cfg.Links.Unlink(ctx, e.name, e.Service.cfg.Process, time.Now()); err != nil {
		e.log().Warn("it cannot be recorded that a node is away", slog.Any("error", err))
		return
	}
	e.linked = false
	e.log().Info("a node is away", slog.String("over", "MQTT"))
	e.emit(nodeChanged, e.name, "", "")
}

// cut returns a name that may be anything as it may be logged.
func cut(name string) string { return tools.Clip(name, 80) }
