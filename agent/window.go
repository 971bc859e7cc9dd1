package agent

import (
	"context"
	"errors"
	"log/slog"

	"parley/tools"
)

// maxShrinks is how often a turn makes its request shorter because the provider
// says that it is too long.
const maxShrinks = 6

// answer asks with as much of the log as the model can read. Where the
// provider says that this is still too much, the past is summarised and results
// are cut until it fits: only the provider knows how large the window is, and
// how it counts.
func (a *asker) answer(ctx context.Context, t *turn, r Request) (Answer, error) {
	a.room = a.roomFor(r)
	summarise := true
	for shrunk := 0; ; shrunk++ {
		if summarise {
			var err error
			if summarise, err = a.compact(ctx, t); err != nil {
				return Answer{}, err
			}
		}
		r.Messages = render(a.journal.entries(), a.room)
		fit(r.Messages, a.room)
		answer, err := a.ask(ctx, t, r)
		fault, ok := errors.AsType[*ModelError](err)
		if !ok || fault.Fault != ModelOverflow {
			return answer, err
		}
		sent := estimateMessages(r.Messages)
		if shrunk == maxShrinks || !a.shrink(r, fault) {
			return Answer{}, a.tooLong(t, fault)
		}
		a.slog.Info("the request was too long for the model; making it shorter", slog.String("turn", t.id),
			slog.Int("tokens", sent), slog.Int("window", fault.Window), slog.Int("room", a.room))
	}
}

// roomFor is how many tokens of messages there is room for: what is configured, or
// less where the model's window is known and the rest of the request needs some.
func (a *asker) roomFor(r Request) int {
	has := a.agent.Model.Info().ContextTokens
	if has <= 0 {
		return a.room
	}
	r.Messages = nil
	left := max(has-estimate(r)-min(answerTokens, has/4), has/8)
	return min(a.room, left)
}

// shrink lowers the room for messages after a request that was too long, and
// tells whether there is any left.
func (a *asker) shrink(r Request, fault *ModelError) bool {
	sent := estimateMessages(r.Messages)
	next := sent / 2
	if fault.Window > 0 {
		rest := estimate(r) - sent
		room := fault.Window - rest - min(answerTokens, fault.Window/4)
		// Where that is no less than was sent, the provider counts differently.
		if room > 0 && room < sent*3/4 {
			next = room
		}
	}
	if next < leastRoom {
		return false
	}
	if a.room <= 0 || next < a.room {
		a.room = next
	}
	return true
}

// leastRoom is the fewest tokens of messages with which there is any use in asking.
const leastRoom = 64

// tooLong ends a turn whose own messages are longer than the model can read.
func (a *asker) tooLong(t *turn, fault *ModelError) *ending {
	_, end := a.classifyModelError(fault, 1, t)
	return end
}

// fit cuts results that are longer than a quarter of the room, where all does not
// fit. The same log and the same room give the same bytes.
func fit(messages []Message, limit int) {
	if limit <= 0 || estimateMessages(messages) <= limit {
		return
	}
	most := limit * bytesPerToken / 4
	for _, m := range messages {
		for i, b := range m.Blocks {
			if b.Kind == BlockToolResult && len(b.Content) > most {
				m.Blocks[i].Content, _ = tools.Truncate(b.Content, most, "")
			}
		}
	}
}
