package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"parley/sessions"
	"parley/tools"
)

const (
	// maxAudited is the most of a call's arguments that an audit record has, in bytes.
	maxAudited = 4096
	// auditTime bounds how long a call waits for its record.
	auditTime = 10 * time.Second
)

// verdictOf is what was said of a call: by the guard, or by what comes before it. It
// is empty for a call that only its effect was judged by.
func (p *preparedCall) verdictOf(executed bool, failed *tools.Error) tools.Decision {
	switch {
	case executed:
		return cmp.Or(p.verdict, tools.Allow) // what was asked about was approved
	case failed == nil || failed.Code == tools.OutcomeUnknown:
		return ""
	}
	return cmp.Or(p.verdict, tools.Deny)
}

// auditCall keeps a record of a call that was run, or refused.
func (r *callRunner) auditCall(ctx context.Context, t *turn, p *preparedCall, out *outcome, executed bool, took time.Duration) {
	r.audit(ctx, t, p.call, sessions.AuditRecord{
		Arguments: p.input.Args, Verdict: string(p.verdictOf(executed, out.failed)), Result: resultOf(out.failed),
		ExitCode: exitCode(out.result.Content), Bytes: int64(len(out.result.Content)), Elapsed: took.Milliseconds(),
	})
}

// audit keeps a record of a call whose result is in the log. The record comes after
// C5: what the log does not know of has not happened. Who dies between the two loses
// the record, and the log still has call and result. A record that cannot be kept
// fails nothing that has been done: it is told loudly, and counted.
func (s *session) audit(ctx context.Context, t *turn, c *call, r sessions.AuditRecord) {
	if s.cfg.Audit == nil {
		return
	}
	r.At, r.Kind, r.By = time.Now(), sessions.AuditTool, t.person
	r.Agent, r.Session, r.Turn, r.Call, r.Tool = s.agent.Name, s.key(), t.id, c.id, c.use.Name
	if r.Arguments == nil {
		r.Arguments = c.use.Args
	}
	r.Arguments, _ = tools.Truncate(r.Arguments, max(2*len(r.Arguments), maxAudited), "") // what is no JSON becomes a text of it
	r.Arguments, _ = tools.Truncate(s.redactor().JSON(r.Arguments), maxAudited, "")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	if err := s.cfg.Audit(ctx, r); err != nil {
		s.cfg.Observer.AuditLost()
		s.slog.Error("a tool call is in the log and not in the audit", slog.String("turn", t.id), slog.String("call", c.id),
			slog.String("tool", c.use.Name), slog.Any("error", err))
	}
}

// resultOf is "ok" or the code of an error.
func resultOf(failed *tools.Error) string {
	if failed == nil {
		return "ok"
	}
	return string(failed.Code)
}

// exitCode is the exit code that a command's result begins with, nil for others.
func exitCode(content json.RawMessage) *int {
	rest, found := bytes.CutPrefix(content, []byte(`{"exit_code":`))
	if !found {
		return nil
	}
	end := bytes.IndexAny(rest, ",}")
	if end < 0 {
		return nil
	}
	n, err := strconv.Atoi(string(rest[:end]))
	if err != nil {
		return nil
	}
	return &n
}
