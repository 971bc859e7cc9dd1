package agent

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agent/delegation"
	"parley/agent/journal"
	"parley/agent/quote"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// handleDecision records that an ask has ended. The turn continues if it waits for no
// other ask.
func (r *sessionRun) handleDecision(ctx context.Context, in bus.Inbound) error {
	t, a, err := r.findAsk(in.ID)
	if err != nil {
		return err
	}
	if a != nil && a.ended == nil {
		end := bus.Ask{ID: a.ID, State: in.Decision.State, Ended: in.SentAt, Answer: bus.Answer{Text: in.Decision.Text, Reason: in.Decision.Reason, By: in.From}}
		if t, err = r.endAsk(ctx, t, a, end, in.ID); err != nil {
			return err
		}
	}
	if r.cfg.Asks != nil { // also for a turn that is over or unknown
		if err := r.cfg.Asks.Told(ctx, in.ID); err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
	}
	return r.continueTurn(ctx, t)
}

// handleReport gives the report of a task to the turn that waits for it. If none does any
// more, the report is dropped.
func (r *sessionRun) handleReport(ctx context.Context, in bus.Inbound) error {
	t, a, err := r.findAsk(in.ID)
	if err != nil {
		return err
	}
	if a != nil && a.ended == nil {
		out := &outcome{}
		out.result, out.failed = delegation.Result(in)
		ended := sessions.AskEnded{Ask: a.ID, State: bus.AskAnswered, Answer: in.Task.State}
		if t, err = r.recordEnd(ctx, t, a, ended, in.ID, "", out); err != nil {
			return err
		}
	}
	if r.cfg.Tasks != nil { // also for a turn that is over or unknown
		if err := r.cfg.Tasks.Told(ctx, in.Task.ID); err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
	}
	return r.continueTurn(ctx, t)
}

// continueTurn runs a turn that waited, unless it is nil, has ended, or still waits.
func (r *sessionRun) continueTurn(ctx context.Context, t *turn) error {
	if t == nil || t.parked || t.done != nil {
		return nil
	}
	release, err := r.resumeCount(ctx, t.person, t.route.Owner)
	if err != nil {
		return err
	}
	defer release()
	r.emit(t, bus.Event{Type: bus.TurnStart, Causes: t.causes})
	return r.runTurn(ctx, t, newAsker(r.session))
}

// findAsk returns an ask by its id and the turn that waits for it; nil if no turn does.
func (s *session) findAsk(id string) (*turn, *ask, error) {
	parked, err := s.parkedTurns()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range parked {
		for _, a := range t.asks {
			if a.ID == id {
				return t, a, nil
			}
		}
	}
	return nil, nil, nil
}

// endAsk tells people how an ask has ended, and writes it to the log: with the result of
// the call if that is known, and with an entry that the turn continues if it waited for
// no other ask. It writes the entries more with them. It returns the turn after that.
func (r *sessionRun) endAsk(ctx context.Context, t *turn, a *ask, end bus.Ask, cause string, more ...sessions.Entry) (*turn, error) {
	if err := r.showEnd(ctx, t, a, end); err != nil {
		return nil, err
	}
	ended := sessions.AskEnded{Ask: a.ID, State: end.State, Answer: end.Answer.Text, Reason: end.Answer.Reason, Name: end.Answer.By.Name}
	if a.Kind == bus.AskQuestion {
		ended.Question = questionText(a)
	}
	return r.recordEnd(ctx, t, a, ended, cause, end.Answer.By.ID, outcomeOf(a, end), more...)
}

// recordEnd writes to the log that an ask has ended, with the outcome of its call; nil if
// the call is still to run.
func (r *sessionRun) recordEnd(ctx context.Context, t *turn, a *ask, ended sessions.AskEnded, cause, by string, out *outcome, more ...sessions.Entry) (*turn, error) {
	e := journal.NewEntry(t.id, sessions.KindAskEnded, ended)
	e.Cause, e.Person, e.Call = cause, by, a.Call
	entries := append([]sessions.Entry{e}, more...)
	if out != nil {
		content, _ := tools.Truncate(r.redactor().JSON(out.content()), r.resultLimit(), "")
		entries = append(entries, resultEntry(t, a.call, content, out))
	}
	if len(t.openAsks()) == 1 {
		entries = append(entries, journal.NewEntry(t.id, sessions.KindTurnUnparked, nil))
	}
	r.point("unpark:before")
	if err := r.journal.Append(ctx, entries...); err != nil {
		if _, seen := errors.AsType[*sessions.SeenError](err); seen {
			return t, nil
		}
		return nil, err
	}
	r.point("unpark")
	if out != nil {
		r.reportAnswered(t, a, out, by)
	}
	return fold(t.id, r.journal.Records())
}

// outcomeOf returns the outcome of a call about which people were asked; nil if the call
// was approved and is still to run.
func outcomeOf(a *ask, end bus.Ask) *outcome {
	by := end.Answer.By.NameAndID()
	switch {
	case end.State == bus.AskExpired:
		return notRun(tools.Timeout, "Nobody answered in time, so nothing was done.")
	case end.State != bus.AskAnswered:
		return notRun(tools.Cancelled, "The request was withdrawn, so nothing was done.")
	case a.Kind == bus.AskQuestion:
		raw, err := json.Marshal(map[string]string{"answer": choiceOf(end.Answer.Text, a.Choices)})
		if err != nil { // a text always marshals
			panic(err)
		}
		return &outcome{result: tools.Result{Content: raw}}
	case end.Answer.Text != bus.Deny:
		return nil
	case end.Answer.Reason != "":
		return notRun(tools.PermissionDenied, "Denied by %s: %s", by, end.Answer.Reason)
	}
	return notRun(tools.PermissionDenied, "Denied by %s, without a reason. Do not try the same in another way: ask what is wanted.", by)
}

// reportAnswered reports to audit, metrics and watchers a call that has got its result
// without running.
func (r *sessionRun) reportAnswered(t *turn, a *ask, out *outcome, by string) {
	verdict := tools.Ask
	if a.Kind != bus.AskApproval { // the call itself was allowed
		verdict = tools.Allow
	}
	result := resultCode(out.failed)
	r.audit(t, a.call, sessions.AuditRecord{
		Arguments: a.Args, Verdict: string(verdict), Result: result, Bytes: int64(len(out.result.Content)), Detail: by,
	})
	e := bus.Event{Type: bus.ToolEnd, Tool: a.call.use.Name, Call: a.Call}
	if out.failed != nil {
		e.Error = &bus.Failure{Code: result, Message: r.redactor().Text(out.failed.Message)}
	}
	r.cfg.Observer.Tool(a.call.use.Name, result, 0)
	r.slog.Info("tool call", slog.String("turn", t.id), slog.String("call", a.Call), slog.String("tool", a.call.use.Name),
		slog.String("person", t.person), slog.String("result", result), slog.Duration("waited", time.Since(t.parkedAt)))
	r.emit(t, e)
}

// handleMeanwhile handles a message that comes while a turn waits. If the person who was
// asked a question writes, that is the answer. Any other message is kept for the turn,
// and its sender is told what the turn waits for.
func (r *sessionRun) handleMeanwhile(ctx context.Context, t *turn, in bus.Inbound) error {
	unnoted, err := r.whyNotNoted(ctx, item{in: in})
	if err != nil {
		return err
	}
	if a := openQuestion(t, in); a != nil && r.cfg.Asks != nil {
		of, err := r.cfg.Asks.Answer(ctx, a.ID, bus.Answer{Text: strings.TrimSpace(in.Text), By: in.From, Cause: in.ID})
		switch {
		case err == nil:
			if t, err = r.endAsk(ctx, t, a, of, in.ID, fileEntries(t.id, in, unnoted)...); err != nil {
				return err
			}
			return r.continueTurn(ctx, t)
		case !bus.AnswerRefused(err):
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
	}
	if _, known := r.journal.Find(in.ID); !known {
		if err := r.journal.Append(ctx, userEntries(t.id, in, len(t.causes)+1, unnoted)...); err != nil {
			if _, seen := errors.AsType[*sessions.SeenError](err); seen {
				return nil
			}
			return err
		}
	}
	if in.Kind != bus.Said {
		return nil
	}
	return r.replyAwaited(ctx, t, in)
}

// replyAwaited tells the sender of a message what the turn waits for.
func (r *sessionRun) replyAwaited(ctx context.Context, t *turn, in bus.Inbound) error {
	if r.isDeserted() {
		return nil
	}
	p := r.commandPrefix(in.At)
	to := routeOf(in)
	return r.publish(ctx, bus.Outbound{
		ID: bus.ReplyID(in.ID), To: to.At, ReplyTo: to.ReplyTo,
		Text: fmt.Sprintf("I have noted that. I wait for %s and then go on. `%sstop` ends it.", r.awaitedText(t, in.At), p),
	})
}

// openQuestion returns the open question that a message answers; nil if it answers none.
func openQuestion(t *turn, in bus.Inbound) *ask {
	if strings.TrimSpace(in.Text) == "" || in.Kind != bus.Said {
		return nil
	}
	for _, a := range t.openAsks() {
		if a.Kind == bus.AskQuestion && (in.From.ID == t.person || in.From.Owner) {
			return a
		}
	}
	return nil
}

// questionText returns a question with its choices, each with its number.
func questionText(a *ask) string {
	var text strings.Builder
	text.WriteString(a.Question)
	for i, choice := range a.Choices {
		fmt.Fprintf(&text, " (%d) %s", i+1, choice)
	}
	return text.String()
}

// choiceOf returns the choice that an answer names by its number or its words, or else
// the answer itself.
func choiceOf(text string, choices []string) string {
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(strings.TrimSuffix(text, ".")); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1]
	}
	for _, c := range choices {
		if strings.EqualFold(strings.TrimSpace(c), text) {
			return c
		}
	}
	return text
}

// notRun returns the outcome of a call that did not run: a failure.
func notRun(code tools.Code, format string, args ...any) *outcome {
	return &outcome{failed: tools.Errorf(code, format, args...)}
}

// answerAsk carries out a command that answers an ask, in this conversation or another.
// The reply is "" if the message of the ask itself shows the answer.
func (c *commander) answerAsk(ctx context.Context, in bus.Inbound) (string, error) {
	p := c.commandPrefix(in.At)
	if c.cfg.Asks == nil {
		return "Nothing can be asked here, so there is nothing to answer.", nil
	}
	id, words := parseAskArgs(in.Args)
	if id == "" {
		return fmt.Sprintf("Which request? Say `%s%s ID`; the request names its ID.", p, in.Text), nil
	}
	answer := bus.Answer{By: in.From, Cause: in.ID}
	switch in.Text {
	case cmdApprove:
		answer.Text = bus.Approve
		if strings.EqualFold(words, bus.ApproveSession) {
			answer.Text = bus.ApproveSession
		}
	case cmdDeny:
		answer.Text, answer.Reason = bus.Deny, words
	default:
		answer.Text = words
	}
	ask, err := c.cfg.Asks.Answer(ctx, id, answer)
	switch {
	case errors.Is(err, bus.ErrNoAsk):
		return fmt.Sprintf("I know no request `%s`.", quote.Inline(id)), nil
	case errors.Is(err, bus.ErrMayNotAnswer) && ask.Kind == bus.AskQuestion:
		return "You may not answer this: the person whom I have asked may, or an owner.", nil
	case errors.Is(err, bus.ErrMayNotAnswer):
		return "You may not decide this: owners may, and the approvers of that channel.", nil
	case errors.Is(err, bus.ErrBadAnswer) && ask.Kind == bus.AskQuestion:
		return fmt.Sprintf("This is a question: say `%s%s %s WORDS`.", p, cmdAnswer, ask.ID), nil
	case errors.Is(err, bus.ErrBadAnswer):
		return fmt.Sprintf("This is to be approved or denied: say `%[1]s%[2]s %[4]s` or `%[1]s%[3]s %[4]s REASON`.", p, cmdApprove, cmdDeny, ask.ID), nil
	case errors.Is(err, bus.ErrDecided):
		return fmt.Sprintf("Request `%s` is decided already: %s.", ask.ID, ask.Ending()), nil
	case err != nil:
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	if ask.At == in.At || slices.Contains(ask.Asked, in.At) {
		return "", nil
	}
	return fmt.Sprintf("Request `%s`: %s.", ask.ID, ask.Ending()), nil
}

// parseAskArgs splits the arguments of an answering command into the ask's id and the
// other words.
func parseAskArgs(args string) (id, words string) {
	id, words, _ = strings.Cut(strings.TrimSpace(args), " ")
	return strings.ToLower(strings.Trim(id, "`")), strings.TrimSpace(words)
}

// questionOf returns the ask of a call whose tool only asks people; nil for other calls.
func (r *callRunner) questionOf(ctx context.Context, p *preparedCall) (*tools.Error, *sessions.Ask, error) {
	q, asks, err := tools.QuestionOf(p.tool, p.input)
	if !asks {
		return nil, nil, nil
	}
	if err != nil {
		return asToolError(err), nil, nil
	}
	if r.cfg.Asks == nil || r.isDeserted() {
		return tools.Errorf(tools.PermissionDenied, "Nobody can be asked from here: end the turn with the question instead."), nil, nil
	}
	why, err := r.whyCannotAsk(ctx)
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		return tools.Errorf(tools.PermissionDenied, "Nobody can be asked now: %s. End the turn with the question instead.", why), nil, nil
	}
	a := r.newAsk(p, bus.AskQuestion)
	a.Question, a.Choices = q.Text, q.Choices
	return nil, a, nil
}

func asToolError(err error) *tools.Error {
	if known, ok := err.(*tools.Error); ok { //nolint:errorlint // tools return it unwrapped
		return known
	}
	return tools.Errorf(tools.InvalidArgs, "%v", err)
}

// whyCannotAsk returns why nobody can be asked now; "" if people can be asked.
func (r *callRunner) whyCannotAsk(ctx context.Context) (string, error) {
	why, err := r.cfg.Asks.Ready(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	return why, nil
}

func (r *callRunner) newAsk(p *preparedCall, kind string) *sessions.Ask {
	return &sessions.Ask{
		ID: askID(r.key(), p.input.Key), Call: p.id, Kind: kind,
		Expires: time.Now().Add(r.approvals().Expires).UTC().Truncate(time.Second),
	}
}

// askID returns the id of the ask about a call, which is always the same.
func askID(session, call string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + call))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:bus.AskIDLength]
}
