package agent

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// An ending is why a turn ends without the model's own last word. As an error
// it ends the loop.
type ending struct {
	state string
	code  string
	text  string // for the person; "" says nothing
}

// Error is the code.
func (e *ending) Error() string { return "turn " + e.state + ": " + e.code }

// failure is an ending that tells the person why.
func failure(code, format string, args ...any) *ending {
	return &ending{state: sessions.TurnFailed, code: code, text: fmt.Sprintf(format, args...)}
}

// finish is C6 for a turn that is ended from outside: every call gets a result,
// the person is told, and then it is published.
func (v *visit) finish(ctx context.Context, t *turn, end *ending) error {
	t, err := fold(t.id, v.j.all()) // what has happened since
	if err != nil {
		return err
	}
	var entries []sessions.Entry
	for _, c := range t.open() {
		failed := tools.Errorf(tools.Cancelled, "The turn ended before this call began.")
		if c.attempts > 0 {
			failed = tools.Errorf(tools.OutcomeUnknown, "The turn ended while this call ran. It may have had its effect: inspect before repeating it.")
		}
		e := entry(t.id, sessions.KindToolResult, sessions.ToolResult{Content: failed.Result().Content, Code: string(failed.Code)})
		e.Call = c.id
		entries = append(entries, e)
	}
	done := sessions.TurnDone{State: end.state}
	if end.text != "" {
		entries = append(entries, entry(t.id, sessions.KindNotice, sessions.Notice{Code: end.code, Text: end.text}))
		done.Outbound = []sessions.Reply{{ID: replyID(t.id), Text: end.text}}
	}
	entries = append(entries, entry(t.id, sessions.KindTurnDone, done))
	v.w.cfg.Point("c6:before")
	if err := v.j.append(ctx, entries...); err != nil {
		return err
	}
	v.w.cfg.Point("c6")
	if end.code != "" {
		v.slog.Warn("turn ended early", slog.String("turn", t.id), slog.String("state", end.state), slog.String("code", end.code))
	}
	if t, err = fold(t.id, v.j.all()); err != nil {
		return err
	}
	v.ended(t)
	return v.publish(ctx, t)
}

// replyID names a turn's reply, or a command's.
func replyID(cause string) string { return cause + "#reply" }

// publish is C7: what the turn says is put on the bus, under ids that are the
// same after a crash, and then noted as published.
func (v *visit) publish(ctx context.Context, t *turn) error {
	if t.done == nil || t.sent || len(t.done.Outbound) == 0 {
		return nil
	}
	if err := v.say(ctx, t); err != nil {
		return err
	}
	v.w.cfg.Point("c7:published")
	if err := v.j.append(ctx, entry(t.id, sessions.KindPublished, nil)); err != nil {
		return err
	}
	v.w.cfg.Point("c7")
	return nil
}

// say puts a turn's outbound messages on the bus.
func (v *visit) say(ctx context.Context, t *turn) error {
	for _, r := range t.done.Outbound {
		if err := v.lease.Held(ctx); err != nil {
			return fmt.Errorf("before publishing: %w", err)
		}
		out := bus.Outbound{
			ID: r.ID, To: t.route.At, Text: r.Text, ReplyTo: t.route.ReplyTo,
			Session: v.lease.Claim().Key, Turn: t.id, Failed: t.done.State == sessions.TurnFailed, At: time.Now(),
		}
		if err := v.w.publish(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// ended tells watchers and metrics that a turn is over.
func (v *visit) ended(t *turn) {
	v.w.cfg.Observer.Turn(t.done.State, time.Since(t.started))
	v.emitEnd(t)
}

func (v *visit) emitEnd(t *turn) {
	e := bus.Event{Type: bus.TurnComplete, Causes: t.causes}
	if t.done.State != sessions.TurnCompleted {
		e.Type, e.Error = bus.TurnError, &bus.Failure{Code: t.done.State, Message: replyText(t)}
	}
	v.emit(t, e)
}

func replyText(t *turn) string {
	var texts []string
	for _, r := range t.done.Outbound {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "\n\n")
}
