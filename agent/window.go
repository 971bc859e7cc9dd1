package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/transcript"
	"parley/sessions"
)

// maxShrinks is how often a turn makes its request shorter because the provider
// says that it is too long.
const maxShrinks = 6

// answer asks with as much of the log as the model can read. Where the
// provider says that this is still too much, the past is summarised and results
// are cut until it fits: only the provider knows how large the window is, and
// how it counts.
func (a *asker) answer(ctx context.Context, t *turn, r llm.Request) (llm.Answer, error) {
	a.room = a.roomFor(r)
	summarise := true
	for shrunk := 0; ; shrunk++ {
		r.Messages = a.render(t)
		if summarise && t.firstEntry != 0 && a.room > 0 && transcript.EstimateMessages(r.Messages) > a.room {
			var err error
			if summarise, err = a.compact(ctx, t); err != nil {
				return llm.Answer{}, err
			}
			r.Messages = a.render(t)
		}
		transcript.TruncateResults(r.Messages, a.room)
		a.loadPictures(ctx, r.Messages)
		answer, err := a.ask(ctx, t, r)
		fault, ok := errors.AsType[*llm.Error](err)
		if !ok || fault.Fault != llm.Overflow {
			return answer, err
		}
		sent := transcript.EstimateMessages(r.Messages)
		if shrunk == maxShrinks || !a.shrink(r, fault) {
			return llm.Answer{}, a.tooLong(t, fault)
		}
		a.slog.Info("the request was too long for the model; making it shorter", slog.String("turn", t.id),
			slog.Int("tokens", sent), slog.Int("window", fault.Window), slog.Int("room", a.room))
	}
}

// render is what the model is shown of the log, as far as there is room.
func (a *asker) render(t *turn) []llm.Message {
	return transcript.Render(a.journal.Records(), t.id, a.room)
}

// roomFor is how many tokens of messages there is room for: what is configured, or
// less where the model's window is known and the rest of the request needs some.
func (a *asker) roomFor(r llm.Request) int {
	has := a.agent.Model.Info().ContextTokens
	if has <= 0 {
		return a.room
	}
	r.Messages = nil
	left := max(has-transcript.Estimate(r)-min(answerTokens, has/4), has/8)
	return min(a.room, left)
}

// shrink lowers the room for messages after a request that was too long, and
// tells whether there is any left.
func (a *asker) shrink(r llm.Request, fault *llm.Error) bool {
	sent := transcript.EstimateMessages(r.Messages)
	next := sent / 2
	if fault.Window > 0 {
		rest := transcript.Estimate(r) - sent
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

// loadPictures reads the pictures that the model is shown. One that is not there as it
// was, and each where the model does not see, is named in words.
func (a *asker) loadPictures(ctx context.Context, messages []llm.Message) {
	why := "it is not there any more as it was shown"
	blind := a.agent.Picture == nil || a.agent.Model.Info().Blind
	if blind {
		why = "you cannot see pictures"
	}
	for _, m := range messages {
		for i, b := range m.Blocks {
			if b.Kind != llm.BlockPicture {
				continue
			}
			if !blind {
				b.Picture.Data = a.agent.Picture(ctx, a.key(), *b.Picture)
			}
			if len(b.Picture.Data) == 0 {
				m.Blocks[i] = llm.Block{Kind: llm.BlockText, Text: transcript.NamePicture(b.Picture.Path, why)}
			}
		}
	}
}

// leastRoom is the fewest tokens of messages with which there is any use in asking.
const leastRoom = 64

// tooLong ends a turn whose own messages are longer than the model can read.
func (a *asker) tooLong(t *turn, fault *llm.Error) *ending {
	return a.modelFailed(fault, t)
}

const summaryPrompt = `Summarise the conversation so far for yourself: you will go on with nothing but this summary. Keep what people asked for and decided, names, numbers, paths and open tasks, each as exact as it was said. Leave out how you got there. Write plain text, at most 800 words.`

// shorterPrompt is for a model that did not come to an end with the other.
const shorterPrompt = `Summarise the conversation so far for yourself in at most 200 words of plain text: what people asked for and decided, names, numbers, paths and open tasks.`

// compact replaces the past, which does not fit into the window any more even with old
// results cleared, by a summary. Only turns that have ended are
// summarised; the turn that asks stays whole. A summary that cannot be had is
// no reason to end the turn: the model may still take what there is. False says
// that there is no use in trying again.
func (a *asker) compact(ctx context.Context, t *turn) (bool, error) {
	records := a.journal.Records()
	if s, ok := transcript.NewestSummary(records); ok && s.Covers >= t.firstEntry {
		return false, nil // it is shown itself alone
	}
	past := before(records, t.firstEntry)
	if len(past) == 0 {
		return false, nil
	}
	text, err := a.summarise(ctx, t, past)
	if err != nil || text == "" {
		return false, err
	}
	covers := past[len(past)-1].N
	if err := a.journal.Append(ctx, journal.NewEntry("", sessions.KindSummary, sessions.Summary{Covers: covers, Text: text, Untrusted: transcript.Untrusted(past, "", covers+1)})); err != nil {
		return false, err
	}
	a.journal.Forget(covers)
	return true, nil
}

// summarise has the model sum up the past, piece by piece where it is longer
// than fits. It gives "" where there is no summary that could replace the past.
func (a *asker) summarise(ctx context.Context, t *turn, past []journal.Record) (string, error) {
	retold := transcript.TextOnly(transcript.Render(past, "", a.room))
	earlier := ""
	if s, ok := transcript.NewestSummary(past); ok && s.Text != "" {
		earlier, retold = s.Text, retold[1:] // which it begins with
	}
	if len(retold) == 0 {
		return "", nil
	}
	room := max(a.room*transcript.BytesPerToken/2, transcript.MinPiece)
	for size := room; size >= room/8; size /= 2 {
		text, err := a.summarisePieces(ctx, t, earlier, transcript.Split(retold, size))
		if fault, ok := errors.AsType[*llm.Error](err); ok && fault.Fault == llm.Overflow {
			continue // smaller pieces then
		}
		if err == nil && len(text) > (len(earlier)+transcript.TextLength(retold))*4/5 {
			text = "" // it would save nothing
		}
		if failed, ok := errors.AsType[*llm.Error](err); ok {
			a.slog.Warn("summarising failed; going on without", slog.Any("error", failed))
			return "", nil
		}
		return text, err
	}
	a.slog.Warn("summarising failed, because the window is too small; going on without")
	return "", nil
}

// summarisePieces sums up one piece after another, each with the summary of
// what came before it.
func (a *asker) summarisePieces(ctx context.Context, t *turn, summary string, pieces [][]llm.Block) (string, error) {
	for _, piece := range pieces {
		if summary != "" {
			piece = append([]llm.Block{{Kind: llm.BlockText, Text: transcript.FrameSummary(summary)}}, piece...)
		}
		text, err := a.summariseOne(ctx, t, piece)
		if err != nil || text == "" {
			return "", err
		}
		summary = text
	}
	return summary, nil
}

// summariseOne asks for one summary, and for a shorter one where that did not
// come to its end. What is cut off does not stand for what it was cut from.
func (a *asker) summariseOne(ctx context.Context, t *turn, piece []llm.Block) (string, error) {
	for _, prompt := range []string{summaryPrompt, shorterPrompt} {
		blocks := append(slices.Clip(piece), llm.Block{Kind: llm.BlockText, Text: prompt})
		r := llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: blocks}}}
		if err := a.reserve(ctx, t, r); err != nil {
			return "", err
		}
		r.Session = a.key()
		r.Retry = func(ctx context.Context, again llm.Retry) error { return a.spendVoid(ctx, t, again.Void) }
		answer, err := a.agent.Model.Generate(ctx, r, func(llm.Delta) {})
		if err != nil {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			if fault, ok := errors.AsType[*llm.Error](err); ok {
				if err := a.spendVoid(ctx, t, fault.Void); err != nil {
					return "", err
				}
			}
			return "", err
		}
		// The cost belongs to the person but is no step of the turn.
		a.reservation.spend(answer)
		if err := a.journal.Append(ctx, a.usageEntry("", t.person, answer)); err != nil {
			return "", err
		}
		if text := textOf(answer); answer.Stop == llm.StopWhole && text != "" {
			return text, nil
		}
		a.slog.Warn("a summary did not come to its end", slog.String("turn", t.id), slog.String("stop", string(answer.Stop)))
	}
	return "", nil
}

func textOf(answer llm.Answer) string {
	var text strings.Builder
	for _, b := range answer.Blocks {
		if b.Kind == llm.BlockText {
			text.WriteString(b.Text)
		}
	}
	return strings.TrimSpace(text.String())
}

// before returns the records that precede a number.
func before(records []journal.Record, n int64) []journal.Record {
	for i, r := range records {
		if r.N >= n {
			return records[:i]
		}
	}
	return records
}
