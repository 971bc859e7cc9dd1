package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

// Limits on what a node may send over a link: so many frames a second, and so many at once. An offer counts as many
// frames, because it is stored. A node that sends more is read more slowly.
const (
	frameRate   = 100
	frameBurst  = 200
	offerFrames = 100
)

const (
	progressEvery   = 500 * time.Millisecond // reports of one call that come faster are dropped
	maxProgress     = nodes.MaxReport        // bytes of a report; the rest is cut off
	storeRetryDelay = time.Second            // wait after the store has failed
	storeTimeout    = 30 * time.Second       // for what a link records at its end
)

// A link is a node's link to this process.
type link struct {
	service  *Service
	node     string
	conn     *wire.Conn
	ctx      context.Context //nolint:containedctx // the link's own context, which ends with the link
	end      context.CancelFunc
	unlinked chan struct{} // closed when the link has ended and the store knows that

	bell       chan struct{} // has an element if there may be calls to send
	check      chan struct{} // has an element if this process may have lost the right to the link
	frameLimit *rate.Limiter

	mu         sync.Mutex
	recorded   bool // the store has the link
	offerFixed bool // the node may not change its offer over this link
	calls      map[string]*sentCall
	erased     []string // calls that were erased, and that the node has to be told to end
	// sentWhenGiven are calls that this process has recorded as sent over this link when they were given.
	sentWhenGiven map[string]bool
}

// A sentCall is a call that was sent over a link.
type sentCall struct {
	job       bool
	cancelled bool // the node was told to end it
	reported  time.Time
}

func (l *link) ring()    { notify(l.bell) }
func (l *link) recheck() { notify(l.check) }

// notify puts an element into a channel of capacity 1 unless it has one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// linkTo returns the link that this process has to a node; nil if it has none.
func linkTo(s *Service, node string) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[node]
}

// sendGiven sends a call that was recorded as sent when it was given.
func (l *link) sendGiven(id string) {
	l.mu.Lock()
	l.sentWhenGiven[id] = true
	l.mu.Unlock()
	l.ring()
}

// takeGiven reports whether a call was already recorded as sent over this link when it was given. It returns true once
// for each call.
func (l *link) takeGiven(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := l.sentWhenGiven[id]
	delete(l.sentWhenGiven, id)
	return is
}

func (l *link) isRecorded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recorded
}

// ServeLink serves a node that opens a link, until the link ends. It always answers the request.
func (s *Service) ServeLink(w http.ResponseWriter, r *http.Request) {
	s.serveLink(w, r, s.keyOf, s.cfg.Timing)
}

// serveLink serves a node whose public key lookup returns.
func (s *Service) serveLink(w http.ResponseWriter, r *http.Request, lookup keyLookup, timing wire.Timing) {
	if !s.countLink() {
		http.Error(w, textStopping, http.StatusServiceUnavailable)
		return
	}
	defer s.serving.Done()
	if guest := s.authenticate(w, r, lookup, timing); guest != nil {
		s.serve(context.WithoutCancel(r.Context()), guest)
	}
}

// authenticate lets a node prove its identity. It returns nil if the request was refused.
func (s *Service) authenticate(w http.ResponseWriter, r *http.Request, lookup keyLookup, timing wire.Timing) *wire.Guest {
	select {
	case s.authenticating <- struct{}{}:
		defer func() { <-s.authenticating }()
	default:
		http.Error(w, textBusy, http.StatusServiceUnavailable)
		return nil
	}
	key, err := s.cfg.Key(r.Context())
	if err != nil {
		s.cfg.Log.Error("the key that nodes know this server by cannot be read", slog.Any("error", err))
		http.Error(w, textBusy, http.StatusServiceUnavailable)
		return nil
	}
	guest, err := wire.Server{Key: key, Lookup: lookup, Timing: timing, Buffers: &s.buffers}.Accept(w, r)
	if err != nil {
		s.cfg.Log.Info("a link was not accepted", slog.Any("error", err))
		return nil
	}
	return guest
}

// maxAuthenticating is how many nodes may prove their identity at once: anybody may try, and each attempt needs memory.
const maxAuthenticating = 256

// countLink counts one more link; false if this process accepts no more.
func (s *Service) countLink() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.serving.Add(1)
	}
	return !s.closed
}

// A keyLookup returns the public key of a node that may open a link: see wire.Server.
type keyLookup func(ctx context.Context, name string) ([]byte, error)

// keyOf returns the public key of a node that may open a link.
func (s *Service) keyOf(ctx context.Context, name string) ([]byte, error) {
	n, err := s.cfg.Registry.Node(ctx, name)
	switch {
	case errors.Is(err, stored.ErrUnknown):
		return nil, &wire.Refusal{Reason: wire.ReasonUnknown, Text: textUnknown}
	case err != nil:
		return nil, err
	case n.State == stored.Revoked:
		return nil, &wire.Refusal{Reason: wire.ReasonRevoked, Text: textRevoked}
	case n.IsKeyless(), n.IsTarget(): // nobody can prove to be an edge agent or a target
		return nil, &wire.Refusal{Reason: wire.ReasonUnknown, Text: textUnknown}
	}
	return n.Key, nil
}

// serve serves the link of a node that has proved its identity.
func (s *Service) serve(ctx context.Context, guest *wire.Guest) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	l := &link{
		service: s, node: guest.Name, ctx: ctx, end: end, unlinked: make(chan struct{}),
		bell: make(chan struct{}, 1), check: make(chan struct{}, 1), frameLimit: rate.NewLimiter(frameRate, frameBurst), calls: map[string]*sentCall{}, sentWhenGiven: map[string]bool{},
	}
	defer close(l.unlinked)
	if !s.replaceLink(l) {
		guest.Refuse(wire.ReasonBusy, textStopping)
		return
	}
	defer s.removeLink(l)
	if err := l.record(guest.Offer); err != nil {
		refusal, refused := errors.AsType[*wire.Refusal](err)
		if !refused {
			s.cfg.Log.Warn("the link of a node cannot be recorded", slog.String("node", l.node), slog.Any("error", err))
			refusal = &wire.Refusal{Reason: wire.ReasonBusy, Text: textBusy}
		}
		guest.Refuse(refusal.Reason, refusal.Text)
		return
	}
	var err error
	if l.conn, err = guest.Welcome(); err != nil {
		return
	}
	defer l.conn.Close()
	s.cfg.Log.Info("a node is here", slog.String("node", l.node))
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	beside.Go(l.send)
	beside.Go(l.supervise)
	s.cfg.Log.Info("a node is away", slog.String("node", l.node), slog.Any("error", l.read()))
}

// replaceLink makes l the link of its node, after the link before has ended and the store knows that. It returns false
// if this process accepts no more links.
func (s *Service) replaceLink(l *link) bool {
	for {
		s.mu.Lock()
		old := s.links[l.node]
		if old == nil && !s.closed {
			s.links[l.node] = l
		}
		closed := s.closed
		s.mu.Unlock()
		if old == nil || closed {
			return !closed
		}
		old.end()
		<-old.unlinked
	}
}

// removeLink removes a link that has ended. The store is told first: see replaceLink.
func (s *Service) removeLink(l *link) {
	if l.isRecorded() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), storeTimeout)
		defer cancel()
		if err := s.cfg.Links.Unlink(ctx, l.node, s.cfg.Process, time.Now()); err != nil {
			// Until the next link, or for minutes at most, the node seems to be here.
			s.cfg.Log.Warn("it cannot be recorded that a node is away", slog.String("node", l.node), slog.Any("error", err))
		}
		s.emit(nodeChanged, l.node, "", "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l.node)
}

// record records that this process has the link, and what the node offers. It returns a *wire.Refusal if the node may
// not have a link.
func (l *link) record(offer nodes.Offer) error {
	s := l.service
	raw, err := plainjson.Marshal(offer)
	if err != nil {
		return fmt.Errorf("encode an offer: %w", err)
	}
	n, err := s.cfg.Links.Link(l.ctx, l.node, s.cfg.Process, raw, time.Now())
	switch {
	case errors.Is(err, stored.ErrRevoked):
		return &wire.Refusal{Reason: wire.ReasonRevoked, Text: textRevoked}
	case errors.Is(err, stored.ErrUnknown):
		return &wire.Refusal{Reason: wire.ReasonUnknown, Text: textUnknown}
	case err != nil:
		return err
	}
	l.mu.Lock()
	l.recorded, l.offerFixed = true, n.IsTarget()
	l.mu.Unlock()
	s.cfg.Point("node:linked")
	s.emit(nodeLinked, l.node, s.cfg.Process, "")
	s.emit(nodeChanged, l.node, "", "")
	s.cfg.WaitOver()
	s.announce(l.ctx, n)
	return nil
}

// supervise ends the link when another process has it, or the node was revoked.
func (l *link) supervise() {
	for {
		select {
		case <-l.check:
			l.service.recheck(l.ctx, l)
		case <-l.ctx.Done():
			return
		}
	}
}

// send sends the node's calls over the link, until the link ends.
func (l *link) send() {
	defer l.end()
	for {
		err := l.sendOpen()
		var again <-chan time.Time
		switch {
		case l.ctx.Err() != nil, errors.Is(err, stored.ErrOther), errors.Is(err, errBroken):
			return
		case err != nil:
			l.service.cfg.Log.Warn("a node's calls cannot be sent now", slog.String("node", l.node), slog.Any("error", err))
			again = time.After(storeRetryDelay)
		}
		select {
		case <-l.bell:
		case <-again:
		case <-l.ctx.Done():
			return
		}
	}
}

// errBroken is returned when nothing can be sent over a link anymore.
var errBroken = errors.New("the link is broken")

// sendOpen sends the node all of its open calls that were not sent over this link, and tells it to end the cancelled
// ones.
func (l *link) sendOpen() error {
	if err := l.endErased(); err != nil {
		return err
	}
	open, err := l.service.cfg.Calls.Open(l.ctx, l.node)
	if err != nil {
		return err
	}
	for _, c := range open {
		if err := l.sendCall(c); err != nil {
			return err
		}
	}
	return nil
}

// noteErased makes the link tell the node to end a call that was erased.
func (l *link) noteErased(id string) {
	l.mu.Lock()
	if sent := l.calls[id]; sent != nil && !sent.cancelled {
		sent.cancelled = true
		l.erased = append(l.erased, id)
	}
	l.mu.Unlock()
	l.ring()
}

// endErased tells the node to end the calls that were erased.
func (l *link) endErased() error {
	l.mu.Lock()
	ids := l.erased
	l.erased = nil
	l.mu.Unlock()
	for _, id := range ids {
		if err := l.conn.Write(wire.Frame{Type: wire.Cancel, ID: id}); err != nil {
			return errors.Join(errBroken, err)
		}
	}
	return nil
}

// sendCall sends the node an open call unless it was sent over this link, and tells it to end the call if it is
// cancelled. A cancelled call that the node may not know is not sent; only its end is.
func (l *link) sendCall(c stored.Call) (err error) {
	l.mu.Lock()
	sent := l.calls[c.ID]
	l.mu.Unlock()
	given := l.takeGiven(c.ID)
	switch {
	case sent == nil && !c.Cancelled && given:
		l.service.cfg.Point("node:sent")
	case sent == nil && !c.Cancelled:
		// The call is recorded as sent before it is sent: from now on, nobody may say that it was not.
		c, err = l.service.cfg.Calls.Send(l.ctx, c.ID, l.service.cfg.Process, time.Now())
		if errors.Is(err, stored.ErrUnknown) { // erased
			return nil
		}
		if err != nil || !c.Ended.IsZero() {
			return err
		}
		l.service.cfg.Point("node:sent")
	case sent != nil && (sent.cancelled || !c.Cancelled):
		return nil
	}
	l.mu.Lock()
	l.calls[c.ID] = &sentCall{job: c.Tool == nodes.JobTool, cancelled: c.Cancelled}
	l.mu.Unlock()
	f := wire.Frame{Type: wire.Call, ID: c.ID, Tool: c.Tool, Args: c.Args, Timeout: c.Timeout.Milliseconds(), Approved: c.Approved}
	if c.Cancelled {
		f = wire.Frame{Type: wire.Cancel, ID: c.ID}
	}
	if err := l.conn.Write(f); err != nil {
		return errors.Join(errBroken, err)
	}
	return nil
}

// read reads the node's frames, until the link ends.
func (l *link) read() error {
	for {
		f, err := l.conn.Read(l.ctx)
		if err != nil {
			return err
		}
		costs := 1
		if f.Type == wire.Offer {
			costs = offerFrames
		}
		if err := l.frameLimit.WaitN(l.ctx, costs); err != nil {
			return err
		}
		switch f.Type {
		case wire.Progress:
			err = l.progress(f)
		case wire.Result:
			err = l.result(f)
		case wire.Offer:
			err = l.offer(f)
		}
		if err != nil {
			return err
		}
	}
}

// progress passes on a call's progress report. If the report is about an erased job, the node is told to end the job.
func (l *link) progress(f wire.Frame) error {
	l.mu.Lock()
	sent := l.calls[f.ID]
	passes := sent != nil && time.Since(sent.reported) >= progressEvery
	if passes {
		sent.reported = time.Now()
	}
	l.mu.Unlock()
	if sent == nil || passes && sent.job {
		_, err := l.service.cfg.Calls.Call(l.ctx, f.ID)
		if errors.Is(err, stored.ErrUnknown) {
			return l.conn.Write(wire.Frame{Type: wire.Cancel, ID: f.ID})
		}
	}
	if passes {
		l.service.emit(callProgress, l.node, f.ID, tools.Clip(f.Text, maxProgress))
	}
	return nil
}

// offer records a changed offer of the node.
func (l *link) offer(f wire.Frame) error {
	if f.Offer == nil {
		return errors.New("there is no offer in the frame")
	}
	l.mu.Lock()
	fixed := l.offerFixed
	l.mu.Unlock()
	if fixed {
		return errors.New("what a target offers is recorded before its link only")
	}
	if err := wire.CheckOffer(*f.Offer); err != nil {
		return fmt.Errorf("the offer exceeds the bounds: %w", err)
	}
	return l.record(*f.Offer)
}

// result records how a call has ended, and then lets the node forget the call. If it can't be recorded, result returns
// an error, which ends the link, and the node sends the result again over the next one. A result of a call that the
// node was not given is not acknowledged.
func (l *link) result(f wire.Frame) error {
	s := l.service
	l.mu.Lock()
	sent := l.calls[f.ID] != nil // over this link, so it is the node's
	l.mu.Unlock()
	if !sent {
		c, err := s.cfg.Calls.Call(l.ctx, f.ID)
		switch {
		case errors.Is(err, stored.ErrUnknown): // it was erased
			return l.acknowledge(f.ID)
		case err != nil:
			return err
		case c.Node != l.node:
			return errors.New("the node reports the result of a call of another node")
		}
	}
	raw, err := plainjson.Marshal(checkedOutcome(f.Outcome))
	if err != nil {
		return fmt.Errorf("encode an outcome: %w", err)
	}
	if _, err = s.cfg.Calls.End(l.ctx, f.ID, raw, time.Now()); err != nil && !errors.Is(err, stored.ErrUnknown) {
		return err
	}
	s.cfg.Point("node:ended")
	s.emit(callEnded, l.node, f.ID, "")
	return l.acknowledge(f.ID)
}

// acknowledge lets the node forget a call.
func (l *link) acknowledge(id string) error {
	l.mu.Lock()
	delete(l.calls, id)
	l.mu.Unlock()
	err := l.conn.Write(wire.Frame{Type: wire.Ack, ID: id})
	l.service.cfg.Point("node:acked")
	return err
}

// checkedOutcome returns an outcome in the form in which it is recorded: invalid values become a failure that says so.
func checkedOutcome(o *nodes.Outcome) nodes.Outcome {
	if o == nil {
		return nodes.Outcome{Status: nodes.Failed, Error: tools.Errorf(tools.ExecutionFailed, textNoOutcome)}
	}
	out := nodes.Outcome{Status: o.Status, Milliseconds: max(0, o.Milliseconds)}
	switch o.Status {
	case nodes.Done:
		out.Content = o.Content
		if len(o.Content) > nodes.MaxResult || !json.Valid(o.Content) {
			out = nodes.Outcome{Status: nodes.Failed, Error: tools.Errorf(tools.ExecutionFailed, textTooLarge, nodes.MaxResult)}
		}
		return out
	case nodes.Failed, nodes.NotRun, nodes.Unknown:
	default:
		out.Status = nodes.Failed
	}
	out.Error = tools.Errorf(tools.ExecutionFailed, textNoReason)
	if o.Error != nil {
		out.Error = tools.Errorf(knownCode(o.Error.Code), "%s", tools.Clip(o.Error.Message, maxFailureMessage))
	}
	if out.Status == nodes.Unknown {
		out.Error.Code = tools.OutcomeUnknown
	}
	return out
}

const maxFailureMessage = 4000 // bytes of a node's message about a failure

// knownCode returns the code if a node may use it for a failure, and ExecutionFailed otherwise.
func knownCode(code tools.Code) tools.Code {
	switch code {
	case tools.NotFound, tools.InvalidArgs, tools.PermissionDenied, tools.FileNotFound, tools.InvalidPath, tools.Timeout, tools.Cancelled, tools.OutcomeUnknown:
		return code
	}
	return tools.ExecutionFailed
}
