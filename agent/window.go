package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/tally"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
)

const (
	// maxOverflows is how often a step makes its request shorter because the provider
	// says that it is too long.
	maxOverflows = 6
	// maxSummaries is how many summaries a turn tries between two steps.
	maxSummaries = 2
	// leastRoom is the fewest tokens of messages with which there is any use in asking.
	leastRoom = 64
	// mostSaid is how much of what people said a summary keeps, in tokens.
	mostSaid = 20_000
)

// What came of making a request shorter, for metrics.
const (
	compactCleared   = "cleared"
	compactSummed    = "summarised"
	compactTooLittle = "too_little" // it would have saved less than a fifth
	compactFailed    = "failed"
)

// answer asks with as much of the log as the model can read. The provider has the last
// word about how much that is: where it says that a request is too long, that is made
// shorter and asked again.
func (a *asker) answer(ctx context.Context, t *turn, r llm.Request) (llm.Answer, error) {
	a.learnFromLog(r)
	tried := t.summaries
	for overflows := 0; ; overflows++ {
		if err := a.fit(ctx, t, &r, &tried); err != nil {
			return llm.Answer{}, err
		}
		a.loadPictures(ctx, r.Messages)
		r.Tokens = a.tokens(r)
		answer, err := a.ask(ctx, t, r)
		if err == nil {
			a.count.Add(cmp.Or(answer.Model, a.model()), transcript.Estimate(r), answer.Usage)
			return answer, nil
		}
		fault, ok := errors.AsType[*llm.Error](err)
		if !ok || fault.Fault != llm.Overflow {
			return llm.Answer{}, err
		}
		sent := a.tokens(r)
		if overflows == maxOverflows || !a.lower(r, fault) {
			return llm.Answer{}, a.tooLong(t, fault)
		}
		a.slog.Info("the request was too long for the model; making it shorter", slog.String("turn", t.id),
			slog.Int("tokens", sent), slog.Int("window", fault.Window), slog.Int("limit", a.ceiling))
	}
}

// model is the name of the one that is asked first.
func (a *asker) model() string { return a.agent.Model.Info().Name }

// tokens is how many tokens a request has, as far as that can be known.
func (a *asker) tokens(r llm.Request) int { return a.count.Of(a.model(), transcript.Estimate(r)) }

// learnFromLog takes in what the provider has counted of the session's last request, where
// nothing is known of this model yet: after a start of the process.
func (a *asker) learnFromLog(r llm.Request) {
	if _, known := a.count.Tally.Ratio(a.model()); known {
		return
	}
	records := a.journal.Records()
	for i := len(records) - 1; i >= 0; i-- {
		use, ok := records[i].Data.(sessions.Usage)
		if !ok || use.Estimated || use.Model != a.model() || records[i].Turn == "" {
			continue
		}
		r.Messages = nil
		if !tally.Plausible(transcript.Estimate(r), use.Input) {
			return // nothing would be learned of it, and rendering takes as long as it is
		}
		r.Messages = transcript.Render(records[:i], records[i].Turn)
		a.count.Tally.Learn(a.model(), transcript.Estimate(r), use.Input)
		return
	}
}

// limit is how many tokens a request may have, with its prompt and its tools. However
// long these are, an eighth of it is left for messages.
func (a *asker) limit(r llm.Request) int {
	limit := a.agent.ContextTokens
	lower := func(to int) {
		if to > 0 && (limit <= 0 || to < limit) {
			limit = to
		}
	}
	if has := a.agent.Model.Info().ContextTokens; has > 0 {
		lower(has - min(answerTokens, has/4))
	}
	lower(a.ceiling)
	return max(limit, a.restOf(r)+limit/8)
}

// restOf is how many tokens a request has beside its messages.
func (a *asker) restOf(r llm.Request) int {
	r.Messages = nil
	ratio, _ := a.count.Tally.Ratio(a.model())
	return int(float64(transcript.Estimate(r)) * ratio)
}

// fit renders the log for the request, and makes it shorter until it fits: first old
// results are emptied, many at once, so that the next requests begin with the same bytes;
// then the past is summed up, also that of the turn itself. What does not help is not done
// again before the next step. Tried is how many summaries were tried since the last.
func (a *asker) fit(ctx context.Context, t *turn, r *llm.Request, tried *int) error {
	r.Messages = transcript.Render(a.journal.Records(), t.id)
	limit := a.limit(*r)
	ratio, _ := a.count.Tally.Ratio(a.model())
	a.room = int(float64(limit-a.restOf(*r)) / ratio)
	for a.tokens(*r) > limit {
		done, err := a.clear(ctx, t, r)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		if *tried >= maxSummaries {
			break
		}
		if err := a.compact(ctx, t, r, tried); err != nil {
			return err
		}
	}
	if has := a.agent.Model.Info().ContextTokens; has > 0 && *tried >= maxSummaries && a.count.IsLearned(a.model()) && a.tokens(*r) > max(has, limit) {
		return a.tooLong(t, &llm.Error{Fault: llm.Overflow, Window: has})
	}
	transcript.TruncateResults(r.Messages, a.room)
	return nil
}

// clear empties old results, where that saves so much that it need not be done again
// soon. It tells whether it has.
func (a *asker) clear(ctx context.Context, t *turn, r *llm.Request) (bool, error) {
	records := a.journal.Records()
	upTo, saves := transcript.Clear(records, t.id, a.room/3)
	view, _ := transcript.NewestSummary(records)
	if upTo <= view.Cleared || transcript.EstimateMessages(r.Messages)-saves > a.room*4/5 || saves < a.room/5 {
		return false, nil
	}
	view.Cleared = upTo
	before := a.tokens(*r)
	if err := a.journal.Append(ctx, journal.NewEntry("", sessions.KindSummary, view)); err != nil {
		return false, err
	}
	r.Messages = transcript.Render(a.journal.Records(), t.id)
	a.compacted(t, compactCleared, before, a.tokens(*r))
	return true, nil
}

// compact puts a summary in the place of what the model was shown, but for the newest
// steps and what people said. One that saves less than a fifth is not used. A summary that
// cannot be had is no reason to end the turn: the model may still take what there is.
func (a *asker) compact(ctx context.Context, t *turn, r *llm.Request, tried *int) error {
	budgets := transcript.Budgets{Steps: a.room / 4, Unread: a.room / 2, Own: a.room / 2, Said: min(mostSaid, a.room/8)}
	if *tried > 0 {
		budgets.Steps, budgets.Unread, budgets.Said = a.room/16, a.room/4, 0
	}
	*tried++
	within, err := a.maySumUpWithin(ctx)
	if err != nil {
		return err
	}
	s, ok, err := a.sumUp(ctx, t, within, budgets)
	if failed, is := errors.AsType[*llm.Error](err); is {
		a.slog.Warn("summarising failed; going on without", slog.String("turn", t.id), slog.Any("error", failed))
		return nil
	}
	if err != nil || !ok {
		return err
	}
	before, length := a.tokens(*r), transcript.EstimateMessages(r.Messages)
	shorter := *r
	shorter.Messages = transcript.Render(transcript.WithSummary(a.journal.Records(), s), t.id)
	if transcript.EstimateMessages(shorter.Messages) > length*4/5 {
		a.compacted(t, compactTooLittle, before, before)
		return nil
	}
	a.point("compact:before")
	if err := a.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindSummary, s)); err != nil {
		return err
	}
	a.point("compact")
	a.journal.Forget(s)
	*r = shorter
	a.compacted(t, compactSummed, before, a.tokens(*r))
	return nil
}

// maySumUpWithin tells whether a summary may stand for a part of the turn that goes on.
func (a *asker) maySumUpWithin(ctx context.Context) (bool, error) {
	if a.agent.MaySumUp == nil {
		return true, nil
	}
	may, err := a.agent.MaySumUp(ctx)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errBusAway, err)
	}
	return may, nil
}

// sumUp makes a summary; false where there is none that could replace the past.
func (a *asker) sumUp(ctx context.Context, t *turn, within bool, budgets transcript.Budgets) (sessions.Summary, bool, error) {
	records := a.journal.Records()
	s, ok := transcript.Cut(records, t.id, within, budgets)
	if !ok {
		return s, false, nil
	}
	// The log keeps the summary, so it is made of nothing that the log does not keep.
	text, err := transcript.SumUp(ctx, transcript.Tell(a.journal.Lasting(), t.id, s.Covers), a.room, func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		return a.askForSummary(ctx, t, r)
	})
	if err != nil || text == "" {
		a.cfg.Observer.Compaction(compactFailed)
		return s, false, err
	}
	s.Text, s.Untrusted = text, transcript.Untrusted(records, "", records[len(records)-1].N+1)
	return s, true, nil
}

// askForSummary asks for one summary. The cost belongs to the person but is no step of the turn.
func (a *asker) askForSummary(ctx context.Context, t *turn, r llm.Request) (llm.Answer, error) {
	if err := a.reserve(ctx, t, r); err != nil {
		return llm.Answer{}, err
	}
	r.Session = a.key()
	r.Retry = func(ctx context.Context, again llm.Retry) error { return a.spendVoid(ctx, t, again.Void) }
	a.point("compact:ask")
	answer, err := a.agent.Model.Generate(ctx, r, func(llm.Delta) {})
	if err == nil {
		a.purse.Spend(answer.Usage)
		return answer, a.journal.Append(ctx, a.usageEntry("", t.person, answer))
	}
	if ctx.Err() != nil {
		return llm.Answer{}, context.Cause(ctx)
	}
	if fault, ok := errors.AsType[*llm.Error](err); ok {
		if err := a.spendVoid(ctx, t, fault.Void); err != nil {
			return llm.Answer{}, err
		}
	}
	return llm.Answer{}, err
}

// compacted tells watchers, metrics and the log that the model is shown less.
func (a *asker) compacted(t *turn, result string, before, after int) {
	a.cfg.Observer.Compaction(result)
	a.slog.Info("the conversation was made shorter for the model", slog.String("turn", t.id), slog.String("result", result),
		slog.Int("before", before), slog.Int("after", after))
	if result == compactCleared || result == compactSummed {
		a.emit(t, bus.Event{Type: bus.Compacted, Compaction: &bus.Compaction{Before: before, After: after}})
	}
}

// lower lowers what a request may have after one that was too long, and tells whether
// there is any room left.
func (a *asker) lower(r llm.Request, fault *llm.Error) bool {
	sent := a.tokens(r)
	next := sent / 2
	if fault.Window > 0 {
		a.count.Tally.AtLeast(a.model(), transcript.Estimate(r), fault.Window)
		if limit := fault.Window - min(answerTokens, fault.Window/4); limit < sent*3/4 {
			next = limit // else the provider counts differently
		}
	}
	if next-a.restOf(r) < leastRoom && transcript.EstimateMessages(r.Messages) <= leastRoom {
		return false
	}
	if a.ceiling <= 0 || next < a.ceiling {
		a.ceiling = next
	}
	return true
}

// tooLong ends a turn whose own messages are longer than the model can read.
func (a *asker) tooLong(t *turn, fault *llm.Error) *ending {
	return a.modelFailed(fault, t)
}

// compactNow sums up the conversation because somebody wants that, and says what came of
// it; there is no summary where that would save little.
func (a *asker) compactNow(ctx context.Context, in bus.Inbound) (text string, _ *sessions.Summary, err error) {
	parked, err := a.currentParked()
	if err != nil {
		return "", nil, err
	}
	if parked != nil {
		return "I wait for an answer, and what I have done until then has to stay as it is. Say this again after that.", nil, nil
	}
	defer func() { a.purse.Settle(ctx) }()
	records := a.journal.Records()
	var r llm.Request
	r.Messages = transcript.Render(records, "")
	before, length := a.tokens(r), transcript.EstimateMessages(r.Messages)
	a.room = a.limit(r)
	t := &turn{id: in.ID, person: in.From.ID, route: routeOf(in)}
	s, ok, err := a.sumUp(ctx, t, false, transcript.Budgets{Said: min(mostSaid, length/8)})
	if failed, is := errors.AsType[*llm.Error](err); is {
		a.slog.Warn("summarising failed", slog.String("command", in.ID), slog.Any("error", failed))
		err = a.modelFailed(failed, t)
	}
	if end, is := errors.AsType[*ending](err); is { // or the budget is empty
		return a.redactor().Text(end.text), nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	if ok {
		r.Messages = transcript.Render(transcript.WithSummary(records, s), "")
	}
	if !ok || transcript.EstimateMessages(r.Messages) > length*4/5 {
		return fmt.Sprintf("There is little to sum up: this conversation has about %d tokens.", before), nil, nil
	}
	a.compacted(t, compactSummed, before, a.tokens(r))
	return fmt.Sprintf("I have summed up what is past: about %d tokens in place of %d. What people said lately stays word for word; files and memory stay.", a.tokens(r), before), &s, nil
}

// context says how much of the window the conversation fills.
func (s *session) context(ctx context.Context, in bus.Inbound) (string, error) {
	// A turn may run beside this, so nothing of what it counts with is used.
	a := &asker{session: &session{cfg: s.cfg, lease: s.lease, slog: s.slog, journal: s.journal, agent: s.agent, count: tally.Count{Tally: s.cfg.tally}}}
	prompt, _, err := s.agent.Prompt(ctx, Asker{Session: s.key(), Person: in.From.ID, Private: !in.Group})
	if err != nil {
		return "", fmt.Errorf("make the prompt: %w", err)
	}
	records, own := s.journal.Records(), ""
	for _, id := range unfinished(records) {
		own = id
	}
	r := llm.Request{System: prompt, Tools: s.agent.Tools.Specs(), Messages: transcript.Render(records, own)}
	info := s.agent.Model.Info()
	var b strings.Builder
	fmt.Fprintf(&b, "What I am asked with has about %d of at most %d tokens:\n\n- my instructions: %d\n- my tools: %d\n- this conversation: %d\n\n", a.tokens(r), a.limit(r),
		a.tokens(llm.Request{System: r.System}), a.tokens(llm.Request{Tools: r.Tools}), a.tokens(llm.Request{Messages: r.Messages}))
	if info.ContextTokens > 0 {
		fmt.Fprintf(&b, "%s reads %d, %s. ", info.Name, info.ContextTokens, info.ContextFrom)
	}
	fmt.Fprintf(&b, "Where it would be more, I look at old results no longer, and sum up what is past; %[1]scompact does that now, and %[1]snew begins afresh.", s.commandPrefix(in.At))
	return b.String(), nil
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
