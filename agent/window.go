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
	"parley/agent/route"
	"parley/agent/tally"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
)

const (
	// maxOverflows is how often a step shortens its request because the provider calls it too long.
	maxOverflows = 6
	// maxSummaries is how many summaries a turn tries to make between two steps.
	maxSummaries = 2
	// leastRoom is the smallest size of the messages, in tokens, with which asking makes sense.
	leastRoom = 64
	// mostSaid is how much of what people said a summary keeps, in tokens.
	mostSaid = 20_000
)

// The results of shortening a request, for metrics.
const (
	compactCleared   = "cleared"
	compactSummed    = "summarised"
	compactTooLittle = "too_little" // the summary would have saved less than a fifth
	compactFailed    = "failed"
)

// answer asks the model with as much of the log as it can read. The provider has the
// last word about how much that is: if it calls a request too long, the request is
// shortened and sent again.
func (a *asker) answer(ctx context.Context, t *turn, r *llm.Request) (*llm.Answer, error) {
	a.learnFromLog(r)
	tries := summaryTries{made: t.summaries}
	for overflows := 0; ; overflows++ {
		if err := a.prepare(ctx, t, r, &tries); err != nil {
			return nil, err
		}
		estimate := transcript.Estimate(r) // as long as its messages are there
		answer, err := a.ask(ctx, t, r)
		if err == nil {
			a.count.Add(cmp.Or(answer.Model, a.modelName()), estimate, answer.Usage) // how the provider counts tokens
			return answer, nil
		}
		if err := a.afterOverflow(t, r, err, overflows); err != nil {
			return nil, err
		}
	}
}

// prepare fills in what the request has of the log.
func (a *asker) prepare(ctx context.Context, t *turn, r *llm.Request, tries *summaryTries) error {
	if err := a.fit(ctx, t, r, tries); err != nil {
		return err
	}
	a.loadPictures(ctx, r.Messages)
	r.Tokens = a.countTokens(r)
	return nil
}

// afterOverflow lowers the limit of requests if err says that this one was too long. Else, or if
// it was too long too often, it returns the error that ends the step.
func (a *asker) afterOverflow(t *turn, r *llm.Request, err error, overflows int) error {
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok || fault.Fault != llm.Overflow {
		return err
	}
	sent := a.countTokens(r)
	if overflows == maxOverflows || !a.lowerLimit(r, fault) {
		return a.endingTooLong(t, fault)
	}
	a.slog.Info("the request was too long for the model; making it shorter", slog.String("turn", t.id),
		slog.Int("tokens", sent), slog.Int("window", fault.Window), slog.Int("limit", a.ceiling))
	return nil
}

// summaryTries says what became of the summaries that a step has tried to make.
type summaryTries struct {
	made int // number of tries since the last answer
	// failed is why the model gave none; nil if it did not fail. It is not asked for
	// another before the next step.
	failed *llm.Error
}

// areOver reports whether no further summary may be tried before the next step.
func (s *summaryTries) areOver() bool { return s.failed != nil || s.made >= maxSummaries }

// learnFromLog learns from the provider's number for the session's last request if
// nothing is known of this model yet, as after a start of the process.
func (a *asker) learnFromLog(asked *llm.Request) {
	if _, known := a.count.Tally.Ratio(a.modelName()); known {
		return
	}
	records := a.journal.Records()
	for i := len(records) - 1; i >= 0; i-- {
		use, ok := records[i].Data.(sessions.Usage)
		if !ok || use.Estimated || use.Model != a.modelName() || records[i].Turn == "" {
			continue
		}
		r := llm.Request{System: asked.System, Tools: asked.Tools}
		if !tally.IsPlausible(transcript.Estimate(&r), use.Input) {
			return // nothing could be learned, and rendering a long log takes long
		}
		r.Messages = transcript.Render(records[:i], records[i].Turn)
		a.count.Tally.Learn(a.modelName(), transcript.Estimate(&r), use.Input)
		return
	}
}

// requestLimit returns how many tokens a request may have, including its prompt and its tools. If
// these leave less than an eighth of the limit for messages, it returns so much more than the limit
// that an eighth is left.
func (a *asker) requestLimit(r *llm.Request) int {
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

// restOf estimates how many tokens of a request its prompt and its tools take.
func (a *asker) restOf(r *llm.Request) int {
	ratio, _ := a.count.Tally.Ratio(a.modelName())
	return int(float64(transcript.Estimate(&llm.Request{System: r.System, Tools: r.Tools})) * ratio)
}

// fit renders the log into the request, and shortens it until it fits. First it empties
// old results, many at once, which lets the next requests begin with the same bytes.
// Then it summarises the past, if necessary even that of the turn itself. What does not
// help is not tried again before the next step.
func (a *asker) fit(ctx context.Context, t *turn, r *llm.Request, tries *summaryTries) error {
	limit := a.requestLimit(r)
	ratio, _ := a.count.Tally.Ratio(a.modelName())
	a.room = int(float64(limit-a.restOf(r)) / ratio)
	a.render(t, r)
	for a.countTokens(r) > limit {
		done, err := a.clearResults(ctx, t, r)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		if tries.areOver() {
			break
		}
		if err := a.compact(ctx, t, r, tries); err != nil {
			return err
		}
	}
	if has := a.agent.Model.Info().ContextTokens; has > 0 && tries.areOver() && a.count.IsLearned(a.modelName()) && a.countTokens(r) > max(has, limit) {
		if tries.failed != nil {
			return a.endOrWait(tries.failed, t)
		}
		return a.endingTooLong(t, &llm.Error{Fault: llm.Overflow, Window: has})
	}
	transcript.TruncateResults(r.Messages, a.room)
	return nil
}

// render renders the log into the request. What makes the messages again has the records of which
// these were made: others, such as commands, may write to the log meanwhile.
func (a *asker) render(t *turn, r *llm.Request) {
	records := a.journal.Records()
	r.Messages = transcript.Render(records, t.id)
	r.Render = transcript.Again(r.Messages, records, t.id, a.room)
}

// clearResults empties old results if that saves so much that it need not be repeated
// soon. It reports whether it has.
func (a *asker) clearResults(ctx context.Context, t *turn, r *llm.Request) (bool, error) {
	records := a.journal.Records()
	upTo, saves := transcript.Clear(records, t.id, a.room/3)
	view, _ := transcript.NewestSummary(records)
	if upTo <= view.Cleared || transcript.EstimateMessages(r.Messages)-saves > a.room*4/5 || saves < a.room/5 {
		return false, nil
	}
	view.Cleared = upTo
	before := a.countTokens(r)
	if err := a.journal.Append(ctx, journal.NewEntry("", sessions.KindSummary, view)); err != nil {
		return false, err
	}
	a.render(t, r)
	a.reportCompacted(t, compactCleared, before, a.countTokens(r))
	return true, nil
}

// compact replaces the past with a summary, except the newest steps and what people
// said. A summary that saves less than a fifth is not used. If there is no summary, the
// turn does not end, because the model may still accept the request.
func (a *asker) compact(ctx context.Context, t *turn, r *llm.Request, tries *summaryTries) error {
	budgets := transcript.Budgets{Steps: a.room / 4, Unread: a.room / 2, Own: a.room / 2, Said: min(mostSaid, a.room/8)}
	if tries.made > 0 {
		budgets.Steps, budgets.Unread, budgets.Said = a.room/16, a.room/4, 0
	}
	tries.made++
	within, err := a.maySumUpWithin(ctx)
	if err != nil {
		return err
	}
	s, ok, err := a.sumUp(ctx, t, within, budgets)
	if failed, is := errors.AsType[*llm.Error](err); is {
		a.slog.Warn("summarising failed; going on without", slog.String("turn", t.id), slog.Any("error", failed))
		tries.failed = failed
		return nil
	}
	if err != nil || !ok {
		return err
	}
	before, length := a.countTokens(r), transcript.EstimateMessages(r.Messages)
	shorter := transcript.Render(transcript.WithSummary(a.journal.Records(), s), t.id)
	if transcript.EstimateMessages(shorter) > length*4/5 {
		a.reportCompacted(t, compactTooLittle, before, before)
		return nil
	}
	a.point("compact:before")
	if err := a.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindSummary, s)); err != nil {
		return err
	}
	a.point("compact")
	a.journal.Forget(s)
	a.render(t, r)
	a.reportCompacted(t, compactSummed, before, a.countTokens(r))
	return nil
}

// maySumUpWithin reports whether a summary may cover a part of the current turn; false
// while processes of an older release serve, which would misunderstand it.
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

// sumUp makes a summary of the past; false if there is none that could replace it.
func (a *asker) sumUp(ctx context.Context, t *turn, within bool, budgets transcript.Budgets) (sessions.Summary, bool, error) {
	records := a.journal.Records()
	s, ok := transcript.Cut(records, t.id, within, budgets)
	if !ok {
		return s, false, nil
	}
	// The log keeps the summary, so it is made of nothing that the log does not keep.
	text, err := transcript.SumUp(ctx, transcript.Retell(a.journal.LoggedRecords(), t.id, s.Covers), a.room, func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		return a.askForSummary(ctx, t, r)
	})
	if err != nil || text == "" {
		a.cfg.Observer.Compaction(compactFailed)
		return s, false, err
	}
	s.Text, s.Untrusted = text, transcript.Untrusted(records, "", records[len(records)-1].N+1)
	return s, true, nil
}

// askForSummary asks the model for one summary. The cost is the person's, but it is no
// step of the turn.
func (a *asker) askForSummary(ctx context.Context, t *turn, r llm.Request) (llm.Answer, error) {
	if err := a.reserve(ctx, t, &r); err != nil {
		return llm.Answer{}, err
	}
	r.Session = a.key()
	r.Retry = func(ctx context.Context, again llm.Retry) error {
		a.emitRetry(t, again)
		return a.recordVoid(ctx, t, again.Void)
	}
	a.point("compact:ask")
	answer, err := a.agent.Model.Generate(ctx, &r, func(llm.Delta) {})
	if err == nil {
		a.spend(t, answer)
		return *answer, a.journal.Append(ctx, a.usageEntry("", t.person, *answer))
	}
	if ctx.Err() != nil {
		return llm.Answer{}, context.Cause(ctx)
	}
	if fault, ok := errors.AsType[*llm.Error](err); ok {
		if err := a.recordVoid(ctx, t, fault.Void); err != nil {
			return llm.Answer{}, err
		}
	}
	return llm.Answer{}, err
}

// reportCompacted reports to watchers, metrics and the log how much less the model is
// shown.
func (a *asker) reportCompacted(t *turn, result string, before, after int) {
	a.cfg.Observer.Compaction(result)
	a.slog.Info("the conversation was made shorter for the model", slog.String("turn", t.id), slog.String("result", result),
		slog.Int("before", before), slog.Int("after", after))
	if result == compactCleared || result == compactSummed {
		a.emit(t, bus.Event{Type: bus.Compacted, Compaction: &bus.Compaction{Before: before, After: after}})
	}
}

// lowerLimit lowers the limit of requests after one that was too long. It returns false
// if no room would be left for messages.
func (a *asker) lowerLimit(r *llm.Request, fault *llm.Error) bool {
	sent := a.countTokens(r)
	next := sent / 2
	if fault.Window > 0 {
		a.count.Tally.RaiseRatio(a.modelName(), transcript.Estimate(r), fault.Window)
		if limit := fault.Window - min(answerTokens, fault.Window/4); limit < sent*3/4 {
			next = limit // otherwise the provider counts differently
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

// endingTooLong returns the ending of a turn whose own messages are longer than the
// model can read.
func (a *asker) endingTooLong(t *turn, fault *llm.Error) *ending {
	return a.endingOf(fault, t)
}

// compactNow summarises the conversation at a person's command. It returns the reply,
// and the summary unless it would save little.
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
	r := &llm.Request{Messages: transcript.Render(records, "")}
	before, length := a.countTokens(r), transcript.EstimateMessages(r.Messages)
	a.room = a.requestLimit(r)
	t := &turn{id: in.ID, person: in.From.ID, route: route.Of(in)}
	s, ok, err := a.sumUp(ctx, t, false, transcript.Budgets{Said: min(mostSaid, length/8)})
	if failed, is := errors.AsType[*llm.Error](err); is {
		a.slog.Warn("summarising failed", slog.String("command", in.ID), slog.Any("error", failed))
		err = a.endingOf(failed, t)
	}
	if end, is := errors.AsType[*ending](err); is { // a budget may be spent
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
	a.reportCompacted(t, compactSummed, before, a.countTokens(r))
	return fmt.Sprintf("I have summed up what is past: about %d tokens in place of %d. What people said lately stays word for word; files and memory stay.", a.countTokens(r), before), &s, nil
}

// contextText returns the reply to /context: how much of what the model can read at once
// the conversation fills.
func (s *session) contextText(ctx context.Context, in bus.Inbound) (string, error) {
	// A turn may run at the same time; therefore nothing that it counts with is used.
	a := &asker{session: &session{cfg: s.cfg, lease: s.lease, slog: s.slog, journal: s.journal, agent: s.agent, count: tally.Count{Tally: s.cfg.tally}}}
	prompt, _, err := s.agent.Prompt(ctx, Asker{Session: s.key(), Person: in.From.ID, Private: !in.Group})
	if err != nil {
		return "", fmt.Errorf("make the prompt: %w", err)
	}
	records, own := s.journal.Records(), ""
	for _, id := range journal.Unfinished(records) {
		own = id
	}
	r := &llm.Request{System: prompt, Tools: s.agent.Tools.Specs(), Messages: transcript.Render(records, own)}
	info := s.agent.Model.Info()
	var b strings.Builder
	fmt.Fprintf(&b, "What I am asked with has about %d of at most %d tokens:\n\n- my instructions: %d\n- my tools: %d\n- this conversation: %d\n\n", a.countTokens(r), a.requestLimit(r),
		a.countTokens(&llm.Request{System: r.System}), a.countTokens(&llm.Request{Tools: r.Tools}), a.countTokens(&llm.Request{Messages: r.Messages}))
	if info.ContextTokens > 0 {
		fmt.Fprintf(&b, "%s reads %d, %s. ", info.Name, info.ContextTokens, info.ContextFrom)
	}
	fmt.Fprintf(&b, "Where it would be more, I look at old results no longer, and sum up what is past; %[1]scompact does that now, and %[1]snew begins afresh.", s.commandPrefix(in.At))
	return b.String(), nil
}
