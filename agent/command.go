package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions"
)

// The commands that an agent carries out. The gateway recognises them.
const (
	cmdNew    = "new"
	cmdStop   = "stop"
	cmdStatus = "status"
	cmdHelp   = "help"
)

// helpText has the channel's prefix where it has percent signs.
const helpText = `Just write to me; I answer, and I can use my tools to work in this conversation's own folder.

- %[1]snew begins a new conversation; files and memory stay
- %[1]sstop ends what I am doing
- %[1]sstatus says what I am doing and what it has cost
- %[1]shelp says this`

// prefix is what people begin a command with where they are.
func (v *visit) prefix(at bus.Address) string {
	if v.w.cfg.Prefix == nil {
		return "/"
	}
	return v.w.cfg.Prefix(at.Channel)
}

// bypasses tells whether a command is carried out at once, beside a turn that runs.
func bypasses(name string) bool {
	switch name {
	case cmdStop, cmdStatus, cmdHelp:
		return true
	}
	return false
}

// promise says at once of a command that waits for its turn that it does. Where
// that cannot be said it is not: the command itself is answered in any case.
func (v *visit) promise(ctx context.Context, in bus.Inbound) {
	if _, known := v.j.knows(in.ID); in.Text != cmdNew || known { // known ones are carried out
		return
	}
	err := v.lease.Held(ctx)
	if err == nil {
		to := routeOf(in)
		err = v.w.publish(ctx, bus.Outbound{
			ID: "noted:" + in.ID, To: to.At, ReplyTo: to.ReplyTo, Session: v.lease.Claim().Key, At: time.Now(),
			Text: fmt.Sprintf("I first finish what was asked before this, and then begin a new conversation. %sstop ends it at once.", v.prefix(in.At)),
		})
	}
	if err != nil && ctx.Err() == nil {
		v.slog.Warn("nobody was told that a command waits", slog.String("command", in.Text), slog.Any("error", err))
	}
}

// command carries out a command, logs it by its cause and replies. One that is
// logged already is only replied to again, under the same id.
func (v *visit) command(ctx context.Context, it item) error {
	if it.in.Text == cmdStop {
		v.in.stop(it.seq)
	}
	done, known := v.j.knows(it.in.ID)
	if !known {
		cmd := sessions.Command{Name: it.in.Text, Route: routeOf(it.in).encode(), Reply: sessions.Reply{ID: replyID(it.in.ID)}}
		text, err := v.carryOut(ctx, it)
		if err != nil {
			return err
		}
		cmd.Reply.Text = text
		if err := v.log(ctx, it.in, cmd); err != nil {
			if _, seen := errors.AsType[*sessions.SeenError](err); seen {
				return nil
			}
			return err
		}
		if it.in.Text == cmdStop {
			v.stopTurn()
		}
		done, _ = v.j.knows(it.in.ID)
	}
	cmd, ok := done.data.(sessions.Command)
	if !ok { // it was forgotten with what /new covers
		return nil
	}
	return v.reply(ctx, cmd)
}

// log writes a command's entry; that of /new also ends what the model sees.
func (v *visit) log(ctx context.Context, in bus.Inbound, cmd sessions.Command) error {
	e := entry(in.ID, sessions.KindCommand, cmd)
	e.Cause, e.Person = in.ID, in.From.ID
	if cmd.Name != cmdNew {
		return v.j.append(ctx, e)
	}
	covers := v.j.newest()
	if err := v.j.append(ctx, e, entry("", sessions.KindSummary, sessions.Summary{Covers: covers})); err != nil {
		return err
	}
	v.j.forget(covers)
	return nil
}

func (v *visit) reply(ctx context.Context, cmd sessions.Command) error {
	if cmd.Reply.Text == "" {
		return nil
	}
	var to route
	if err := json.Unmarshal(cmd.Route, &to); err != nil {
		return fmt.Errorf("decode the route of a command: %w", err)
	}
	if err := v.lease.Held(ctx); err != nil {
		return fmt.Errorf("before replying to a command: %w", err)
	}
	return v.w.publish(ctx, bus.Outbound{
		ID: cmd.Reply.ID, To: to.At, ReplyTo: to.ReplyTo, Text: cmd.Reply.Text,
		Session: v.lease.Claim().Key, At: time.Now(),
	})
}

// carryOut does what a command says, but for what the log does, and returns the
// reply; "" says nothing.
func (v *visit) carryOut(ctx context.Context, it item) (string, error) {
	switch it.in.Text {
	case cmdNew:
		return "A new conversation begins. Files and memory stay.", nil
	case cmdStop:
		if v.busy() {
			return "Stopped.", nil
		}
		if it.in.Group && !it.in.Mentioned {
			return "", nil // it need not have been meant for us
		}
		return "Nothing is running.", nil
	case cmdStatus:
		return v.status(ctx, it)
	case cmdHelp:
		return fmt.Sprintf(helpText, v.prefix(it.in.At)), nil
	}
	return fmt.Sprintf("I do not know the command %[1]s%[2]s. %[1]shelp lists those I know.", v.prefix(it.in.At), it.in.Text), nil
}

// current is the turn that has begun and not ended; nil if there is none.
func (v *visit) current() (*turn, error) {
	for _, id := range unfinished(v.j.all()) {
		t, err := fold(id, v.j.all())
		if err != nil {
			return nil, err
		}
		if t.done == nil {
			return t, nil
		}
	}
	return nil, nil
}

// busy tells whether a turn runs, or something waits that no turn has taken yet.
func (v *visit) busy() bool {
	if t, err := v.current(); t != nil || err != nil {
		return true
	}
	return slices.ContainsFunc(v.in.unhandled(), func(it item) bool {
		_, known := v.j.knows(it.in.ID)
		return it.speaks(bus.Said) && !known
	})
}

func (v *visit) status(ctx context.Context, it item) (string, error) {
	var b strings.Builder
	t, err := v.current()
	if err != nil {
		return "", err
	}
	if t == nil {
		b.WriteString("Nothing is running.")
	} else {
		fmt.Fprintf(&b, "Working for %s, step %d of at most %d.", time.Since(t.started).Round(time.Second), t.asked+1, v.agent.MaxIterations)
	}
	limits := v.w.cfg.Limits()
	fmt.Fprintf(&b, "\n\n- model: %s\n- waiting: %d of at most %d", v.agent.Model.Info().Name, len(v.in.unhandled()), limits.MaxWaiting)
	spent, err := v.w.cfg.Budget.Spent(ctx, it.in.From.ID, time.Now())
	if err != nil {
		return "", fmt.Errorf("read the budget: %w", err)
	}
	fmt.Fprintf(&b, "\n- your tokens today: %d of at most %d\n- session: `%s`", spent, limits.TokensDay, v.lease.Claim().Key)
	return b.String(), nil
}

// agentOf is the agent's name in a session's key.
func agentOf(key string) string {
	name, _, _ := strings.Cut(key, ":")
	return name
}
