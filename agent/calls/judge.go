package calls

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"

	"parley/agent/excerpt"
	"parley/agent/judge"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/sessions"
	"parley/tools"
)

// AskJudge asks the model that judges calls of a session's agent about a call of a turn. Its error ends the run; if
// the model gives no verdict, the verdict says so.
type AskJudge func(ctx context.Context, t *turn.Turn, q *judge.Question) (judge.Verdict, error)

// judge has a model judge a call, if the operator wants that for such calls. It comes after the rules and the hooks,
// with the arguments as they will run, and only makes their decision stricter. A call that has begun was judged
// before, and one that a person has approved needs no model's verdict anymore: both are in the log, so whoever
// resumes the turn does the same.
func (r *Runner) judge(ctx context.Context, t *turn.Turn, d *decision) (*tools.Error, error) {
	j := r.Agent.Judge
	judged := d.Attempts > 0 && bytes.Equal(d.input.Args, d.args) // hooks may want other arguments than it was begun with
	if j == nil || judged || d.Ask.IsApproved() || !j.Judges(d.input) {
		return nil, nil
	}
	q := r.judgeQuestion(t, d)
	v, err := r.askJudge(ctx, t, q)
	if err != nil {
		return nil, err
	}
	r.Log.Info("a model has judged a tool call", slog.String("turn", t.ID), slog.String("call", d.ID), slog.String("verdict", v.Word()), slog.Bool("known", v.Remembered), slog.Duration("took", v.Took))
	r.AuditJudgement(t, d.Call, v.Decision, cmp.Or(string(v.Fault), "ok"), v.Took)
	d.failureUntrusted = d.input.Untrusted
	switch {
	case v.Decision == tools.Deny:
		d.verdict, d.rule = tools.Deny, sessions.DetailJudged
		return v.Denied(d.input.Name), nil
	case v.Decision == tools.Ask, !q.IsWhole():
		if !d.ask {
			d.verdict, d.rule = tools.Ask, sessions.DetailJudged
		}
		why := v.AskReason(d.input.Untrusted, j.Timeout)
		if d.why != "" {
			why = d.why + "; " + why
		}
		d.ask, d.why = true, why
	}
	return nil, nil
}

// judgeQuestion returns what the model that judges calls is shown about a call, without secrets.
func (r *Runner) judgeQuestion(t *turn.Turn, d *decision) *judge.Question {
	records := r.Journal.Records()
	q := &judge.Question{Call: d.input, WillAsk: d.ask, MemoryUntrusted: r.PromptUntrusted}
	q.Arguments = string(excerpt.EscapeHidden(r.redact.JSON(d.input.Args)))
	q.Earlier, q.Said = transcript.SaidForJudge(records, t.ID, t.Person, r.redact.Text)
	if d.input.Untrusted {
		q.Strangers, q.MoreStrangers = transcript.StrangerTexts(records, t.ID, d.EntryNumber, r.redact.Text)
	}
	for _, texts := range [][]string{q.Earlier, q.Said, q.Strangers} { // names and paths may have secrets, too
		for i, text := range texts {
			texts[i] = r.redact.Text(text)
		}
	}
	return q
}

// decidedBy returns for the audit who decided about a call: the person who approved it, or else sessions.DetailJudged or
// DetailRateLimited; "" if neither did.
func (p *Prepared) decidedBy() string {
	if p.Ask.IsApproved() { // even if the approval came too late
		return p.Ask.By
	}
	return cmp.Or(p.approver, p.rule)
}
