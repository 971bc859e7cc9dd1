package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"parley/agent"
	"parley/agent/budget"
	"parley/agent/estimate"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/route"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
)

const (
	// maxOverflows is how often a step shortens its request because the provider calls it too long.
	maxOverflows = 6
	// maxSummaries is how many summaries a turn tries to make between two steps.
	maxSummaries = 2
	// minLongRequest is the smallest request, by its messages in tokens, whose rejection may be due to its length.
	minLongRequest = 1500
	// minRoom is the smallest room for messages, in tokens, with which it makes sense to ask.
	minRoom = 64
	// maxKeptTokens is how many tokens of people's words are kept along with a summary.
	maxKeptTokens = 20_000
)

// The results of shortening a request, for metrics.
const (
	compactCleared    = "cleared"
	compactSummarized = "summarised"
	compactTooLittle  = "too_little" // the summary would have saved less than a fifth
	compactFailed     = "failed"
)

// prepare fills in the part of the request that comes from the log, shortened so that it fits, and its pictures.
func (a *Asker) prepare(ctx context.Context, t *turn.Turn, r *llm.Request, tries *summaryTries) error {
	if err := a.fit(ctx, t, r, tries); err != nil {
		return err
	}
	a.showPictures(ctx, r.Messages)
	r.Tokens = a.countTokens(r)
	return nil
}

// A tooLongAssumption records that a step assumes that a request was too long, after it was rejected for an unknown
// reason.
type tooLongAssumption struct {
	guessed bool
	ceiling int // the limit on requests before the guess
}

// showPictures fills in the pictures that the model is shown. A model that sees none gets a text in place of each.
func (a *Asker) showPictures(ctx context.Context, messages []llm.Message) {
	var read func(p llm.Picture) []byte
	if a.Agent.Picture != nil && !a.Agent.Model.Info().Blind {
		read = func(p llm.Picture) []byte { return a.Agent.Picture(ctx, a.Key(), p) }
	}
	transcript.ShowPictures(messages, read)
}

// afterOverflow lowers the limit on requests if err says that this one was too long. If not, or if that has
// happened too often, it returns the error that ends the step.
func (a *Asker) afterOverflow(ctx context.Context, t *turn.Turn, r *llm.Request, err error, overflows int, guess *tooLongAssumption) error {
	fault, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok:
		return err
	case fault.MayBeLength():
		return a.guessTooLong(ctx, t, r, fault, overflows, guess)
	case fault.Fault != llm.Overflow:
		return err
	}
	sent := a.countTokens(r)
	if overflows == maxOverflows || !a.lowerLimit(r, fault) {
		return a.endingTooLong(t, fault)
	}
	a.Log.Info("the request was too long for the model; making it shorter", slog.String("turn", t.ID),
		slog.Int("tokens", sent), slog.Int("window", fault.Window), slog.Int("limit", a.RequestLimit))
	return nil
}

// guessTooLong handles a request that was rejected for an unknown reason: it lowers the limit on requests if
// the model accepts the request without the past. Otherwise it returns the error that ends the step and leaves
// the limit as it was, because the length was not the reason.
func (a *Asker) guessTooLong(ctx context.Context, t *turn.Turn, r *llm.Request, fault *llm.Error, overflows int, guess *tooLongAssumption) error {
	r.Restore()
	if !guess.guessed && !fault.Explained {
		taken, err := a.acceptsWithoutPast(ctx, t, r)
		if err != nil {
			return err
		}
		*guess = tooLongAssumption{guessed: taken, ceiling: a.RequestLimit}
	}
	if !guess.guessed {
		return a.afterNoAnswer(t, fault)
	}
	if fault.Explained || overflows == maxOverflows || !a.lowerLimit(r, fault) {
		a.RequestLimit = guess.ceiling
		return a.afterNoAnswer(t, fault)
	}
	a.Log.Info("the request was rejected, and is taken without the past; making it shorter", slog.String("turn", t.ID), slog.Int("status", fault.Status), slog.Int("limit", a.RequestLimit))
	return nil
}

// errAccepted stops an answer that isn't needed: its first piece shows that the model accepts the request.
var errAccepted = errors.New("the model takes the request")

// acceptsWithoutPast reports whether the model accepts a request without the past of the conversation. It tries that
// only if the request gets much shorter. People's messages in this turn and the results that the model has not read yet
// stay in the request, because they are probably the reason if the length is not. The log stays unchanged.
func (a *Asker) acceptsWithoutPast(ctx context.Context, t *turn.Turn, r *llm.Request) (bool, error) {
	less, length := *r, a.messageTokens(r.Messages)
	less.Render, less.Messages = nil, transcript.WithoutPast(a.Journal.Records(), t.ID, a.Memory, length/4)
	if length < minLongRequest || a.messageTokens(less.Messages) > length/2 {
		return false, nil
	}
	a.showPictures(ctx, less.Messages)
	less.Tokens = a.countTokens(&less)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	_, err := a.askOutsideTurn(ctx, t, less, func() { stop(errAccepted) })
	if _, failed := errors.AsType[*llm.Error](err); failed {
		return false, nil
	}
	if errors.Is(err, errAccepted) {
		return true, nil
	}
	return err == nil, err
}

// summaryTries keeps track of the summaries that a step has tried to make.
type summaryTries struct {
	attempts int // number of tries since the last answer
	// failed is why the model gave no summary; nil if it has not failed. After a failure the model is not asked
	// for another before the next step.
	failed *llm.Error
}

// areExhausted reports whether no more summaries may be tried before the next step.
func (s *summaryTries) areExhausted() bool { return s.failed != nil || s.attempts >= maxSummaries }

// learnFromLog learns from the provider's number for the session's last request if nothing is known of this
// model yet, for example after the process starts. If this process has made a request for the session before,
// the log can't add anything.
func (a *Asker) learnFromLog(asked *llm.Request) {
	if _, known := a.Estimator.Ratios.Ratio(a.modelName()); known || a.Estimator.Ratios.Asked(a.Key()) > 0 {
		return
	}
	records := a.Journal.Records()
	for i := len(records) - 1; i >= 0; i-- {
		use, ok := records[i].Data.(sessions.Usage)
		if !ok || use.Estimated || use.Model != a.modelName() || records[i].Turn == "" {
			continue
		}
		r := llm.Request{System: asked.System, Tools: asked.Tools}
		if !estimate.IsPlausible(transcript.Estimate(&r), use.Input) {
			return // the number can't be used, and rendering a long log takes long
		}
		r.Messages = transcript.Render(records[:i], records[i].Turn, a.Memory)
		a.Estimator.Ratios.Learn(a.modelName(), transcript.Estimate(&r), use.Input)
		return
	}
}

// requestLimit returns how many tokens a request may have, including its prompt and its tools. If these leave
// less than an eighth of the limit for messages, it raises the limit so that an eighth is left.
func (a *Asker) requestLimit(r *llm.Request) int {
	limit := a.Agent.ContextTokens
	lower := func(to int) {
		if to > 0 && (limit <= 0 || to < limit) {
			limit = to
		}
	}
	if has := a.Agent.Model.Info().ContextTokens; has > 0 {
		lower(has - min(answerTokens, has/4))
	}
	lower(a.RequestLimit)
	return max(limit, a.fixedTokens(r)+limit/8)
}

// fixedTokens estimates how many tokens of a request its prompt, its tools and the memory take. A summary doesn't
// make these shorter.
func (a *Asker) fixedTokens(r *llm.Request) int {
	ratio, _ := a.Estimator.Ratios.Ratio(a.modelName())
	return int(float64(transcript.Estimate(&llm.Request{System: r.System, Tools: r.Tools})+transcript.EstimateMemory(a.Memory)) * ratio)
}

// messageTokens estimates how many tokens the messages of a request have, not counting the memory.
func (a *Asker) messageTokens(messages []llm.Message) int {
	return max(0, transcript.EstimateMessages(messages)-transcript.EstimateMemory(a.Memory))
}

// fit renders the log into the request, and shortens it until it fits. First it empties old results, many at once, so
// that the next requests begin with the same bytes. Then it summarizes the past, if necessary even that of the current
// turn. A measure that doesn't help is not tried again before the next step. A request that remains too long is sent
// nevertheless, unless it exceeds the window that the model is known to have: then fit returns the error that ends the
// step.
func (a *Asker) fit(ctx context.Context, t *turn.Turn, r *llm.Request, tries *summaryTries) error {
	limit := a.requestLimit(r)
	ratio, _ := a.Estimator.Ratios.Ratio(a.modelName())
	a.MessageRoom = int(float64(limit-a.fixedTokens(r)) / ratio)
	a.render(t, r)
	for a.countTokens(r) > limit {
		done, err := a.clearResults(ctx, t, r)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		if tries.areExhausted() {
			break
		}
		if err := a.compact(ctx, t, r, tries); err != nil {
			return err
		}
	}
	if has := a.Agent.Model.Info().ContextTokens; has > 0 && tries.areExhausted() && a.Estimator.IsLearned(a.modelName()) && a.countTokens(r) > max(has, limit) {
		if tries.failed != nil {
			return a.endOrWait(tries.failed, t)
		}
		return a.endingTooLong(t, &llm.Error{Fault: llm.Overflow, Window: has})
	}
	transcript.TruncateResults(r.Messages, a.roomForAll())
	return nil
}

// render renders the log into the request's messages, and sets r.Render, which makes them again. That function keeps
// the records that they were made from, because others, such as commands, may write to the log in the meantime.
func (a *Asker) render(t *turn.Turn, r *llm.Request) {
	records := a.Journal.Records()
	r.Messages = transcript.Render(records, t.ID, a.Memory)
	r.Render = transcript.Recreate(r.Messages, records, t.ID, a.Memory, a.roomForAll())
}

// roomForAll returns how many tokens all messages of a request may have, including the memory.
func (a *Asker) roomForAll() int { return a.MessageRoom + transcript.EstimateMemory(a.Memory) }

// clearResults empties old results if that saves so much that it won't be needed again soon. It reports whether
// it emptied any.
func (a *Asker) clearResults(ctx context.Context, t *turn.Turn, r *llm.Request) (bool, error) {
	records := a.Journal.Records()
	upTo, saves := transcript.FindClearable(records, t.ID, a.MessageRoom/3)
	view, _ := transcript.NewestSummary(records)
	if upTo <= view.Cleared || a.messageTokens(r.Messages)-saves > a.MessageRoom*4/5 || saves < a.MessageRoom/5 {
		return false, nil
	}
	view.Cleared = upTo
	before := a.countTokens(r)
	if err := a.Journal.Append(ctx, journal.NewEntry("", sessions.KindSummary, view)); err != nil {
		return false, err
	}
	a.render(t, r)
	a.reportCompacted(t, compactCleared, before, a.countTokens(r))
	return true, nil
}

// compact replaces the past with a summary, except the newest steps and what people said. A summary that saves
// less than a fifth is not used. Without a summary, the turn doesn't end, because the model may still accept
// the request.
func (a *Asker) compact(ctx context.Context, t *turn.Turn, r *llm.Request, tries *summaryTries) error {
	budgets := transcript.Budgets{Steps: a.MessageRoom / 4, Unread: a.MessageRoom / 2, OwnWords: a.MessageRoom / 2, EarlierWords: min(maxKeptTokens, a.MessageRoom/8), Episodes: a.MessageRoom / 16}
	if tries.attempts > 0 {
		budgets.Steps, budgets.Unread, budgets.EarlierWords = a.MessageRoom/16, a.MessageRoom/4, 0
		budgets.Episodes = 0
	}
	tries.attempts++
	within, err := a.maySummarizeTurn(ctx)
	if err != nil {
		return err
	}
	s, ok, err := a.sumUp(ctx, t, within, budgets)
	if failed, is := errors.AsType[*llm.Error](err); is {
		a.Log.Warn("summarizing failed; going on without", slog.String("turn", t.ID), slog.Any("error", failed))
		tries.failed = failed
		return nil
	}
	if err != nil || !ok {
		return err
	}
	before, length := a.countTokens(r), a.messageTokens(r.Messages)
	shorter := transcript.Render(transcript.WithSummary(a.Journal.Records(), s), t.ID, a.Memory)
	if a.messageTokens(shorter) > length*4/5 {
		a.reportCompacted(t, compactTooLittle, before, before)
		return nil
	}
	a.Point("compact:before")
	if err := a.Journal.Append(ctx, journal.NewEntry(t.ID, sessions.KindSummary, s)); err != nil {
		return err
	}
	a.Point("compact")
	a.Journal.Forget(s)
	a.render(t, r)
	a.reportCompacted(t, compactSummarized, before, a.countTokens(r))
	return nil
}

// maySummarizeTurn reports whether a summary may cover a part of the current turn. It returns false while
// processes of an older release are running, because they would misunderstand such a summary.
func (a *Asker) maySummarizeTurn(ctx context.Context) (bool, error) {
	if a.Agent.MaySummarizeTurn == nil {
		return true, nil
	}
	may, err := a.Agent.MaySummarizeTurn(ctx)
	if err != nil {
		return false, fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	return may, nil
}

// sumUp makes a summary of the past; false if there is nothing that a summary could replace, or if the model has
// written nothing.
func (a *Asker) sumUp(ctx context.Context, t *turn.Turn, within bool, budgets transcript.Budgets) (sessions.Summary, bool, error) {
	records := a.Journal.Records()
	s, ok := transcript.Cut(records, t.ID, within, budgets)
	if !ok {
		return s, false, nil
	}
	// The log keeps the summary, so it must be made only from what the log keeps.
	text, err := transcript.SumUp(ctx, transcript.Retell(a.Journal.LoggedRecords(), t.ID, s.Covers), a.summaryRoom(), func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		return a.askOutsideTurn(ctx, t, r, func() {})
	})
	if err != nil || text == "" {
		a.Config.Observer.Compaction(compactFailed)
		return s, false, err
	}
	s.Text, s.Untrusted = text, transcript.Untrusted(records, "", records[len(records)-1].N+1)
	s.Allowances = transcript.CarriedExpenses(records, s.Covers)
	return s, true, nil
}

// summaryRoom returns roughly how many tokens of messages fit into a request for a summary. Such a request
// contains neither the prompt nor the tools, which can be most of a request in a small window.
func (a *Asker) summaryRoom() int {
	ratio, _ := a.Estimator.Ratios.Ratio(a.modelName())
	return max(a.MessageRoom, int(float64(a.requestLimit(&llm.Request{}))/ratio))
}

// askOutsideTurn asks the model for an answer that is not a step of the turn, such as a summary. The person still
// pays for it. begun is called for each piece of the answer.
func (a *Asker) askOutsideTurn(ctx context.Context, t *turn.Turn, r llm.Request, begun func()) (llm.Answer, error) {
	return askWithin(ctx, ctx, a, t, r, begun)
}

// askWithin does what askOutsideTurn does, but stops asking when asking ends. What the answer cost is recorded as long as ctx
// has not ended.
func askWithin(ctx, asking context.Context, a *Asker, t *turn.Turn, r llm.Request, begun func()) (llm.Answer, error) {
	if err := a.reserve(asking, t, &r); err != nil {
		return llm.Answer{}, err
	}
	r.Session = a.Key()
	r.Retry = func(_ context.Context, again llm.Retry) error {
		a.emitRetry(t, again)
		a.answerBytes = 0
		return a.reserveAgain(ctx, t, &r, again)
	}
	a.Point("compact:ask")
	answer, err := a.Agent.Model.Generate(asking, &r, func(d llm.Delta) {
		a.answerBytes += len(d.Text) + len(d.Name)
		begun()
	})
	if err == nil {
		return *answer, a.recordUnused(ctx, t, answer)
	}
	if asking.Err() != nil {
		a.recordStopped(asking, t)
		return llm.Answer{}, context.Cause(asking)
	}
	if fault, ok := errors.AsType[*llm.Error](err); ok {
		if err := a.recordUnused(ctx, t, fault.Void); err != nil {
			return llm.Answer{}, err
		}
	}
	return llm.Answer{}, err
}

// reportCompacted tells metrics and the log how much less the model is shown, and also watchers if it is less.
func (a *Asker) reportCompacted(t *turn.Turn, result string, before, after int) {
	a.Config.Observer.Compaction(result)
	a.Log.Info("the conversation was made shorter for the model", slog.String("turn", t.ID), slog.String("result", result),
		slog.Int("before", before), slog.Int("after", after))
	if result == compactCleared || result == compactSummarized {
		a.Emit(t, bus.Event{Type: bus.Compacted, Compaction: &bus.Compaction{Before: before, After: after}})
	}
}

// lowerLimit lowers the limit on requests after one that was too long. It returns false if that would leave no
// room for messages.
func (a *Asker) lowerLimit(r *llm.Request, fault *llm.Error) bool {
	sent := a.countTokens(r)
	next := sent / 2
	if fault.Window > 0 {
		a.Estimator.Ratios.RaiseRatio(a.modelName(), transcript.Estimate(r), fault.Window)
		if limit := fault.Window - min(answerTokens, fault.Window/4); limit < sent*3/4 {
			next = limit // otherwise the provider just counts differently
		}
	}
	if next-a.fixedTokens(r) < minRoom && a.messageTokens(r.Messages) <= minRoom {
		return false
	}
	if a.RequestLimit <= 0 || next < a.RequestLimit {
		a.RequestLimit = next
	}
	return true
}

// endingTooLong returns the ending of a turn whose own messages are longer than the model can read.
func (a *Asker) endingTooLong(t *turn.Turn, fault *llm.Error) *turn.Ending {
	return a.endingOf(fault, t)
}

// CompactNow summarizes the conversation when a person asks for it with a command. It returns the reply, and
// the summary, which it doesn't write to the log; nil if that would save little or could not be made.
func (a *Asker) CompactNow(ctx context.Context, in bus.Inbound) (text string, _ *sessions.Summary, err error) {
	defer func() { a.Reservations.Settle(ctx) }()
	records := a.Journal.Records()
	r := &llm.Request{Messages: transcript.Render(records, "", nil)}
	before, length := a.countTokens(r), transcript.EstimateMessages(r.Messages)
	a.MessageRoom = a.requestLimit(r)
	t := &turn.Turn{ID: in.ID, Person: in.From.ID, Route: route.Of(in)}
	s, ok, err := a.sumUp(ctx, t, false, transcript.Budgets{EarlierWords: min(maxKeptTokens, length/8), Episodes: length / 16})
	if failed, is := errors.AsType[*llm.Error](err); is {
		a.Log.Warn("summarizing failed", slog.String("command", in.ID), slog.Any("error", failed))
		err = a.endingOf(failed, t)
	}
	if end, is := errors.AsType[*turn.Ending](err); is { // the budget may be spent
		return a.Redactor().Text(end.Text), nil, nil
	}
	if taken, is := errors.AsType[*budget.SetAsideError](err); is { // a command doesn't wait
		return taken.Over.Words(), nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	if ok {
		r.Messages = transcript.Render(transcript.WithSummary(records, s), "", nil)
	}
	if !ok || transcript.EstimateMessages(r.Messages) > length*4/5 {
		return fmt.Sprintf(textLittleToSumUp, grouped(before)), nil, nil
	}
	a.reportCompacted(t, compactSummarized, before, a.countTokens(r))
	return fmt.Sprintf(textSummedUp, grouped(a.countTokens(r)), grouped(before)), &s, nil
}

// grouped formats a number of tokens for people, with separators.
func grouped(tokens int) string { return bill.Grouped(int64(tokens)) }

// MarkMemory writes an entry that says from where on the model is shown new parts of the memory. Nothing is
// lost if the entry is missing: the memory is marked again. It writes none if there is nothing to mark.
func (a *Asker) MarkMemory(ctx context.Context, t *turn.Turn) error {
	notice, is := transcript.MarkMemory(a.Journal.Records(), t.ID, a.Memory)
	if !is {
		return nil
	}
	return a.Journal.AppendSoon(ctx, journal.NewEntry(t.ID, sessions.KindNotice, notice))
}

// ContextText returns the reply to /context: how much of the model's window the conversation fills.
func (a *Asker) ContextText(ctx context.Context, in bus.Inbound) (string, error) {
	who := agent.Asker{Session: a.Key(), Person: in.From.ID, Private: !in.Group}
	prompt, err := a.Agent.Prompt(ctx, who)
	if err != nil {
		return "", fmt.Errorf("make the prompt: %w", err)
	}
	if a.Agent.Memory != nil { // to people the memory is part of the prompt
		memory, _, err := a.Agent.Memory(ctx, who)
		if err != nil {
			return "", fmt.Errorf("read what is remembered: %w", err)
		}
		for _, m := range memory {
			prompt += m.Text
		}
	}
	records, own := a.Journal.Records(), ""
	for _, id := range journal.Unfinished(records) {
		own = id
	}
	r := &llm.Request{System: prompt, Tools: a.Offered(a.Agent.Tools), Messages: transcript.Render(records, own, nil)}
	info := a.Agent.Model.Info()
	var b strings.Builder
	fmt.Fprintf(&b, textContext, grouped(a.countTokens(r)), grouped(a.requestLimit(r)),
		grouped(a.countTokens(&llm.Request{System: r.System})), grouped(a.countTokens(&llm.Request{Tools: r.Tools})), grouped(a.countTokens(&llm.Request{Messages: r.Messages})))
	if info.ContextTokens > 0 {
		fmt.Fprintf(&b, "%s can read %s tokens, %s. ", info.Name, grouped(info.ContextTokens), info.ContextFrom)
	}
	fmt.Fprintf(&b, textContextFuture, a.CommandPrefix(in.At))
	return b.String(), nil
}
