package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"parley/bus"
	"parley/channels"
	"parley/sessions"
)

// A pastTurn is a turn as the API's snapshot of a session describes it.
type pastTurn struct {
	Turn   string   `json:"turn"`
	Causes []string `json:"causes"`
	State  string   `json:"state"`
}

// catchUp shows what this terminal missed while no server was running. The next server first sends a snapshot of the
// newest turns. From these, catchUp shows the answers for which this terminal is waiting, and every turn that is
// waiting for people or a node. It shows no other turns from before this terminal's own messages.
func (r *Conversation) catchUp(ctx context.Context, data []byte, events chan<- bus.Event) error {
	var past struct {
		Turns  []pastTurn `json:"turns"`
		Blocks []struct {
			Turn  string `json:"turn"`
			Block int    `json:"block"`
		} `json:"blocks"`
	}
	if err := json.Unmarshal(data, &past); err != nil {
		return fmt.Errorf("read a snapshot: %w", err)
	}
	blocks := map[string]int{} // by turn: one more than the highest block number
	for _, b := range past.Blocks {
		blocks[b.Turn] = max(blocks[b.Turn], b.Block+1)
	}
	over := map[string]pastTurn{}
	for _, t := range past.Turns {
		if !r.awaits(t) && t.State != parked {
			continue
		}
		switch t.State {
		case parked:
			if err := r.showAwaited(ctx, t, events); err != nil {
				return err
			}
		case sessions.TurnCompleted, sessions.TurnFailed, sessions.TurnCancelled:
			over[t.Turn] = t
		default: // blocks that were shown but are not in the log don't count, because the model is asked again
			r.pass(ctx, bus.Event{Type: bus.BlockReset, Turn: t.Turn, Block: blocks[t.Turn]}, events)
		}
	}
	return r.passOnMissedEnds(ctx, over, events)
}

// parked is the API's word for a turn that waits for people or a node.
const parked = "parked"

// askJSON is an approval or a question that people are asked, as the API sends it.
type askJSON struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Turn      string          `json:"turn"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Question  string          `json:"question"`
	To        []string        `json:"to"`
}

// ask returns the request in the form of package bus.
func (a askJSON) ask() *bus.Ask {
	ask := &bus.Ask{ID: a.ID, Kind: a.Kind, Tool: a.Tool}
	for _, to := range a.To {
		if at, err := bus.ParseAddress(to); err == nil {
			ask.Asked = append(ask.Asked, at)
		}
	}
	return ask
}

// passAsk passes an event about an ask on to the terminal: that people are asked to approve a tool call or to
// answer a question, or that this has ended.
func (r *Conversation) passAsk(ctx context.Context, n serverEvent, events chan<- bus.Event) error {
	var a struct {
		askJSON
		Ask string `json:"ask"` // the ask that has ended
	}
	if err := json.Unmarshal(n.data, &a); err != nil {
		return err
	}
	ask := a.ask()
	if a.Ask != "" {
		ask.ID = a.Ask
	}
	r.pass(ctx, bus.Event{Type: n.kind, Turn: a.Turn, Ask: ask}, events)
	return nil
}

// showAwaited passes on to the terminal that a turn began to wait while nobody watched, and shows what people are asked.
// If they are asked nothing, the turn waits for a node.
func (r *Conversation) showAwaited(ctx context.Context, t pastTurn, events chan<- bus.Event) error {
	var list struct {
		Asks []askJSON `json:"asks"`
	}
	if err := r.Server.Get(ctx, "/v1/asks?session="+url.QueryEscape(r.Session), &list); err != nil {
		return err
	}
	kind := bus.KindNode // unless people are asked something
	for _, a := range list.Asks {
		if a.Turn != t.Turn {
			continue
		}
		kind = ""
		text := fmt.Sprintf("`%s` needs approval: `/approve %s` or `/deny %s`\n\n```\n%s\n```", a.Tool, a.ID, a.ID, a.Arguments)
		if a.Kind == bus.AskQuestion {
			text = a.Question
		}
		if err := r.show(ctx, channels.PartKey(a.ID+"#ask/0", 0), text); err != nil {
			return err
		}
		r.pass(ctx, bus.Event{Type: bus.Asked, Turn: a.Turn, Ask: a.ask()}, events)
	}
	r.pass(ctx, bus.Event{Type: bus.TurnParked, Kind: kind, Turn: t.Turn, Causes: t.Causes}, events)
	return nil
}

// replyKey returns the key with which a turn's answer is recorded as shown; in a terminal an answer is a single
// part.
func replyKey(turn string) string { return channels.PartKey(bus.ReplyID(turn), 0) }

// awaits reports whether a turn answers something that was said in this terminal and its answer was not shown yet.
func (r *Conversation) awaits(t pastTurn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shown[replyKey(t.Turn)] {
		return false
	}
	for _, id := range t.Causes {
		if _, mine := r.ids[id]; mine {
			return true
		}
	}
	return false
}

// passOnMissedEnds tells the terminal that turns have ended while nobody watched, with their answers from the log.
// ended contains these turns by id.
func (r *Conversation) passOnMissedEnds(ctx context.Context, ended map[string]pastTurn, events chan<- bus.Event) error {
	for after := int64(0); len(ended) > 0; {
		var page struct {
			Entries []sessions.Entry `json:"entries"`
			Next    int64            `json:"next"`
		}
		path := "/v1/sessions/" + url.PathEscape(r.Session) + "?after=" + strconv.FormatInt(after, 10)
		if err := r.Server.Get(ctx, path, &page); err != nil {
			return err
		}
		for _, e := range page.Entries {
			t, ok := ended[e.Turn]
			if !ok || e.Kind != sessions.KindTurnDone {
				continue
			}
			delete(ended, e.Turn)
			if err := r.passEnd(ctx, t, e, events); err != nil {
				return err
			}
		}
		if after = page.Next; after == 0 {
			return nil
		}
	}
	return nil
}

// passEnd tells the terminal that a turn has ended, with its answer from the log entry e.
func (r *Conversation) passEnd(ctx context.Context, t pastTurn, e sessions.Entry, events chan<- bus.Event) error {
	done, err := sessions.Decode[sessions.TurnDone](e)
	if err != nil {
		return err
	}
	text := ""
	for _, reply := range done.Outbound {
		text = reply.Text
	}
	end := bus.Event{Type: bus.TurnComplete, Turn: t.Turn, Causes: t.Causes}
	if done.State != sessions.TurnCompleted {
		end.Type, end.Error = bus.TurnError, &bus.Failure{Code: done.State, Message: text}
	}
	r.pass(ctx, end, events)
	if text == "" {
		return nil
	}
	return r.show(ctx, replyKey(t.Turn), text)
}

// maxEarlier is how many of a conversation's last entries Earlier reads.
const maxEarlier = 1000

// A PastTurn is what the person said earlier in this conversation, with the bot's answer; "" if there is none.
type PastTurn struct {
	Said   string
	Answer string
	Over   bool // whether the conversation was started over after it
}

// Earlier returns what was said in the last maxEarlier entries of this conversation, the oldest first, for the
// terminal's input history and to show where the conversation was left. It reads this from the log, so that no separate
// history is stored. If that fails, Earlier returns nil, because one can talk without it.
func (r *Conversation) Earlier(ctx context.Context) []PastTurn {
	var list struct {
		Sessions []sessions.Info `json:"sessions"`
	}
	// The list begins after a key: after this one without its last byte.
	path := "/v1/sessions?limit=1000&after=" + url.QueryEscape(r.Session[:len(r.Session)-1])
	if err := r.Server.Get(ctx, path, &list); err != nil {
		return nil
	}
	at := slices.IndexFunc(list.Sessions, func(s sessions.Info) bool { return s.Key == r.Session })
	if at < 0 {
		return nil
	}
	after := max(list.Sessions[at].LastEntry-maxEarlier, 0)
	var page struct {
		Entries []sessions.Entry `json:"entries"`
	}
	path = fmt.Sprintf("/v1/sessions/%s?limit=%d&after=%d", url.PathEscape(r.Session), maxEarlier, after)
	if err := r.Server.Get(ctx, path, &page); err != nil {
		return nil
	}
	return pastOf(page.Entries)
}

// pastOf returns the past turns in a log's entries.
func pastOf(entries []sessions.Entry) []PastTurn {
	var past []PastTurn
	last := map[string]int{} // by turn: the index of its last message
	for _, e := range entries {
		switch e.Kind {
		case sessions.KindUser:
			if u, err := sessions.Decode[sessions.User](e); err == nil && !u.Deleted {
				last[e.Turn] = len(past)
				past = append(past, PastTurn{Said: u.Text})
			}
		case sessions.KindTurnDone:
			at, known := last[e.Turn]
			if done, err := sessions.Decode[sessions.TurnDone](e); err == nil && known {
				for _, reply := range done.Outbound {
					past[at].Answer = reply.Text
				}
			}
		case sessions.KindCommand:
			if c, err := sessions.Decode[sessions.Command](e); err == nil && c.Name == "new" && len(past) > 0 {
				past[len(past)-1].Over = true
			}
		}
	}
	return past
}
