package agent

import (
	"context"
	"log/slog"
	"strings"

	"parley/sessions"
)

const summaryPrompt = `Summarise the conversation so far for yourself: you will go on with nothing but this summary. Keep what people asked for and decided, names, numbers, paths and open tasks, each as exact as it was said. Leave out how you got there. Write plain text, at most 800 words.`

// compact replaces the past by a summary where it does not fit into the window
// any more, even with old results cleared. Only turns that have ended are
// summarised; the turn that asks stays whole. A summary that cannot be had is
// no reason to end the turn: the model may still take what there is.
func (v *visit) compact(ctx context.Context, t *turn, prompt string) error {
	records := v.j.all()
	limit := v.agent.ContextTokens
	if limit <= 0 || t.start == 0 || estimateMessages(render(records, limit)) <= limit {
		return nil
	}
	past := before(records, t.start)
	if len(past) == 0 {
		return nil
	}
	r := Request{System: prompt, Messages: render(past, limit/2)}
	r.Messages = append(r.Messages, Message{Role: RoleUser, Blocks: []Block{{Kind: BlockText, Text: summaryPrompt}}})
	if err := v.purse.pay(ctx, v, t, int64(estimate(r))+answerTokens); err != nil {
		return err
	}
	answer, err := v.agent.Model.Generate(ctx, r, func(Delta) {})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v.slog.Warn("summarising failed; going on without", slog.Any("error", err))
		return nil
	}
	v.purse.spent += answer.Usage.Input + answer.Usage.Output
	var text strings.Builder
	for _, b := range answer.Blocks {
		if b.Kind == BlockText {
			text.WriteString(b.Text)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	covers := past[len(past)-1].N
	// The cost belongs to the person but is no step of the turn.
	used := v.usage("", t.person, answer)
	if err := v.j.append(ctx, used, entry("", sessions.KindSummary, sessions.Summary{Covers: covers, Text: text.String()})); err != nil {
		return err
	}
	v.j.forget(covers)
	return nil
}

// before returns the records that precede a number.
func before(records []record, n int64) []record {
	for i, r := range records {
		if r.N >= n {
			return records[:i]
		}
	}
	return records
}
