package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	err := v.say(ctx, t)
	if errors.Is(err, bus.ErrInvalid) {
		return v.unsendable(ctx, t, err)
	}
	if err != nil {
		return err
	}
	v.w.cfg.Point("c7:published")
	if err := v.j.append(ctx, entry(t.id, sessions.KindPublished, nil)); err != nil {
		return err
	}
	v.w.cfg.Point("c7")
	return nil
}

// unsendable ends what no bus will ever take, so that the session goes on: the
// log says so, and the sender, if anything can be sent there at all. Its messages
// become dead letters, by the error that it returns.
func (v *visit) unsendable(ctx context.Context, t *turn, cause error) error {
	v.slog.Error("an answer can never be sent", slog.String("turn", t.id), slog.Any("error", cause))
	if err := v.tellUnsent(ctx, replyID(t.id), t.route); err != nil {
		return err
	}
	err := v.j.append(ctx, entry(t.id, sessions.KindNotice, sessions.Notice{Code: noticeUnsendable, Text: "Your answer could not be sent."}),
		entry(t.id, sessions.KindPublished, nil))
	if err != nil {
		return err
	}
	return errUnsendable
}

// tellUnsent says that an answer cannot be sent, under an id that is short enough.
func (v *visit) tellUnsent(ctx context.Context, id string, to route) error {
	err := v.lease.Held(ctx)
	if err == nil {
		sum := sha256.Sum256([]byte(id))
		err = v.w.publish(ctx, bus.Outbound{
			ID: "unsent:" + hex.EncodeToString(sum[:16]), To: to.At, Session: v.lease.Claim().Key, At: time.Now(), Failed: true,
			Text: "I have an answer for you that cannot be sent: it, or the id of your message, is too long. Ask for less at once, or ask anew.",
		})
	}
	if errors.Is(err, bus.ErrInvalid) {
		return nil // nothing can be sent there
	}
	return err
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
		if len(t.causes) > 1 {
			out.Causes = t.causes
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
