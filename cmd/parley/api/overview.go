package api

import (
	"context"
	"net/http"
	"strconv"

	"parley/bus"
	"parley/bus/fanout"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// overview serves the events of the whole server as they happen.
type overview struct {
	watchHandler
	hub *fanout.Hub
}

// resetEvent is the type of the event after which a watcher has to read the lists again.
const resetEvent = "reset"

// A serverEvent is the part of an event that watchers of the whole server get.
type serverEvent struct {
	Session string    `json:"session,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Turn    string    `json:"turn,omitempty"`
	Causes  []string  `json:"causes,omitempty"`
	ID      string    `json:"id,omitempty"`
	Kind    string    `json:"kind,omitempty"`
	State   string    `json:"state,omitempty"`
	Topic   bus.Topic `json:"topic,omitempty"`
}

// serverFrame returns an event of the server's feed in the form in which it is sent.
func serverFrame(e bus.Event) []byte {
	said := serverEvent{Session: e.Session, Turn: e.Turn, Causes: e.Causes}
	if e.Session != "" {
		said.Agent = sessions.AgentOf(e.Session)
	}
	if n := e.News; n != nil {
		said.ID, said.Kind, said.State, said.Topic = n.ID, n.Kind, n.State, n.Topic
	}
	frame, err := frameOf(strconv.FormatUint(e.ID, 10), e.Type, said)
	if err != nil { // strings can always be encoded
		panic(err)
	}
	return frame
}

// mayWatchServer reports whether the caller may see any events of the server at all.
func mayWatchServer(c exchange.Caller) bool { return c.MayWatch() || c.MayApprove() }

// maySee reports whether the caller, who may read the sessions in seen, may see an event of the server. A caller who
// may read everything sees all events. Others see the events of the sessions in seen and of their sub-agents, but
// none about dead letters; a caller who may answer approvals also sees the events about all asks.
func (o overview) maySee(ctx context.Context, c exchange.Caller, seen readScope, e *bus.Event) (bool, error) {
	switch {
	case seen.all:
		return true, nil
	case c.MayApprove() && (e.Type == bus.Asked || e.Type == bus.AskResolved):
		return true, nil
	case e.Session == "" || e.Type == bus.DeadLetterMoved:
		return false, nil
	}
	key, err := parseKey(e.Session)
	if err != nil {
		return false, nil //nolint:nilerr // nobody owns a session without a key
	}
	return o.scopes.includes(ctx, seen, key)
}

// watch streams the events of the server that the watcher may see, until it leaves or may see others than before.
func (o overview) watch(w *exchange.Answer, r *http.Request) error {
	seen, err := o.scopes.scopeOf(r.Context(), w.Caller)
	if err != nil {
		return err
	}
	may := func() error { return o.checkSeesTheSame(r, w.Caller, seen) }
	return o.serve(w, r, may, func(ctx context.Context, out *stream) error {
		after, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64)
		if err != nil {
			after = 0
		}
		news, resumed, err := o.hub.Join(ctx, after)
		if err != nil {
			return err
		}
		defer news.Leave()
		if resumed {
			err = out.open()
		} else {
			err = sendReset(out, news)
		}
		for err == nil {
			err = o.sendNews(ctx, out, news, w.Caller, seen)
		}
		return err
	})
}

// sendNews waits for news, and sends the part that the caller may see. If that cannot be determined now, the stream
// ends: the watcher reconnects, and continues with what was not sent.
func (o overview) sendNews(ctx context.Context, out *stream, news *fanout.Watcher, c exchange.Caller, seen readScope) error {
	items, lost, err := news.Next(ctx)
	if err != nil {
		return err
	}
	if lost {
		return sendReset(out, news)
	}
	var frames [][]byte
	for _, i := range items {
		may, err := o.maySee(ctx, c, seen, &i.Event)
		if err != nil {
			return err
		}
		if may {
			frames = append(frames, i.Frame)
		}
	}
	if len(frames) == 0 {
		return nil
	}
	return out.write(frames...)
}

// sendReset tells the watcher to read the lists again.
func sendReset(out *stream, news *fanout.Watcher) error {
	id := ""
	if at := news.Position(); at != 0 {
		id = strconv.FormatUint(at, 10)
	}
	return out.send(id, resetEvent, struct{}{})
}

// checkSeesTheSame returns why a caller who began to watch as was, and could then read the sessions in seen, may
// not continue: the token is gone, now belongs to another name, or allows more or less than it did. It returns nil
// if the caller may continue.
func (o overview) checkSeesTheSame(r *http.Request, was exchange.Caller, seen readScope) error {
	is, err := o.access.identify(r)
	if err != nil {
		return err
	}
	now, err := o.scopes.scopeOf(r.Context(), is)
	if err != nil {
		return err
	}
	if is.Name != was.Name || !mayWatchServer(is) || is.MayApprove() != was.MayApprove() || !now.equals(seen) {
		return exchange.Forbidden("what this token may watch has changed: connect again")
	}
	return nil
}
