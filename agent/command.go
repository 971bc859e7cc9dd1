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

	"parley/agent/asks"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/bus"
	"parley/sessions"
)

// helpText is a format; its argument is the channel's prefix of commands.
const helpText = `Just write to me; I answer, and I can use my tools to work in this conversation's own folder.

- %[1]snew begins a new conversation; files and memory stay
- %[1]sstop ends what I am doing
- %[1]sstatus says what I am doing, %[1]susage what you have used and what it has cost
- %[1]sundo takes back what I changed last in that folder, and %[1]sundo list shows what can be undone
- %[1]scontext says how much of this conversation I can still read at once, %[1]scompact sums up what is past
- %[1]sapprove ID and %[1]sdeny ID REASON answer a request that I wait for
- %[1]sexport sends you what you have said to me, %[1]sforget erases it
- %[1]smemory shows what I remember of you in all conversations, %[1]slink tells me who you are on another channel
- %[1]shelp says this`

// The command that takes back changes of files, and the code of the notice that tells
// the model.
const (
	cmdUndo    = "undo"
	noticeUndo = "undo"
)

// A commander carries out the commands in a session's mail.
type commander struct {
	*session
	inbox *inbox
	stop  *turnStop
}

// runsAtOnce reports whether a command is carried out while a turn runs.
func runsAtOnce(name string) bool {
	switch name {
	case cmdStop, cmdStatus, cmdUsage, cmdContext, cmdHelp, asks.Approve, asks.Deny, asks.Answer:
		return true
	}
	return false
}

// announceWait tells the sender of a command that it waits for the work before it. An
// error is only logged, because the command itself is answered in any case.
func (c *commander) announceWait(ctx context.Context, in bus.Inbound) {
	// A command that is in the log was carried out before and is only answered again.
	then, waits := map[string]string{cmdNew: "begin a new conversation", cmdUndo: "undo"}[in.Text]
	if _, known := c.journal.Find(in.ID); !waits || known || !c.isWorking() {
		return
	}
	to := route.Of(in)
	err := c.publish(ctx, bus.Outbound{
		ID: "noted:" + in.ID, To: to.At, ReplyTo: to.ReplyTo,
		Text: fmt.Sprintf("I first finish what was asked before this, and then %s. %sstop ends it at once.", then, c.commandPrefix(in.At)),
	})
	if err != nil && ctx.Err() == nil {
		c.slog.Warn("nobody was told that a command waits", slog.String("command", in.Text), slog.Any("error", err))
	}
}

// run carries out a command, writes its entry and replies. If the log has the command
// already, run only repeats the reply, under the same id.
func (c *commander) run(ctx context.Context, it *item) error {
	if it.in.Text == cmdStop {
		it.busy = c.isBusy() // what is cancelled next may end before the reply is made
		c.inbox.cancelBefore(it.seq)
	}
	done, known := c.journal.Find(it.in.ID)
	if !known {
		cmd := sessions.Command{Name: it.in.Text, Route: route.Of(it.in).Encode(), Reply: sessions.Reply{ID: bus.ReplyID(it.in.ID)}}
		text, summary, err := c.carryOut(ctx, it)
		if err != nil {
			return err
		}
		cmd.Reply.Text = text
		if err := c.record(ctx, it.in, cmd, summary); err != nil {
			if _, seen := errors.AsType[*sessions.SeenError](err); seen {
				return nil
			}
			return err
		}
		if it.in.Text == cmdStop {
			c.stop.stop()                                          // after the entry, which makes whoever resumes the turn stop it too
			if _, err := c.stopBeside(ctx, it.in.ID); err != nil { // what the turn has just begun
				c.slog.Warn("a job or a sub-agent may go on that a turn began as it was stopped", slog.Any("error", err))
			}
		}
		done, _ = c.journal.Find(it.in.ID)
	}
	cmd, ok := done.Data.(sessions.Command)
	if !ok { // it was dropped with what /new covers
		return nil
	}
	return c.reply(ctx, cmd)
}

// carryOut carries out a command. It returns the reply to its sender, "" for none, and a
// summary if the command changes what the model sees of the past; else nil.
func (c *commander) carryOut(ctx context.Context, it *item) (text string, summary *sessions.Summary, err error) {
	switch it.in.Text {
	case cmdCompact:
		return newAsker(c.session).compactNow(ctx, it.in)
	case cmdNew:
		summary = &sessions.Summary{Covers: c.journal.Newest()}
	}
	text, err = c.replyText(ctx, it)
	return text, summary, err
}

// record writes a command's entry, with the summary if there is one.
func (c *commander) record(ctx context.Context, in bus.Inbound, cmd sessions.Command, summary *sessions.Summary) error {
	e := journal.NewEntry(in.ID, sessions.KindCommand, cmd)
	e.Cause, e.Person = in.ID, in.From.ID
	if cmd.Name == cmdUndo { // the model must know that its files have changed
		told := journal.NewEntry(in.ID, sessions.KindNotice, sessions.Notice{Code: noticeUndo, Text: "Somebody has said /undo to take back changes of files, and was told: " + cmd.Reply.Text})
		told.Person = in.From.ID
		return c.journal.Append(ctx, e, told)
	}
	if summary == nil {
		return c.journal.Append(ctx, e)
	}
	if cmd.Name == cmdNew && c.cfg.Asks != nil { // before the summary, so that no approval outlives the conversation
		if err := c.cfg.Asks.EndGrants(ctx, c.key()); err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
	}
	if cmd.Name == cmdNew && c.cfg.Tasks != nil {
		if err := c.cfg.Tasks.Drop(ctx, c.key(), in.ID); err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
	}
	if err := c.journal.Append(ctx, e, journal.NewEntry("", sessions.KindSummary, *summary)); err != nil {
		return err
	}
	c.journal.Forget(*summary)
	return nil
}

func (c *commander) reply(ctx context.Context, cmd sessions.Command) error {
	if cmd.Reply.Text == "" {
		return nil
	}
	var to route.Route
	if err := json.Unmarshal(cmd.Route, &to); err != nil {
		return fmt.Errorf("decode the route of a command: %w", err)
	}
	return c.publish(ctx, bus.Outbound{ID: cmd.Reply.ID, To: to.At, ReplyTo: to.ReplyTo, Text: cmd.Reply.Text})
}

// replyText carries out a command and returns the reply; "" sends none.
func (c *commander) replyText(ctx context.Context, it *item) (string, error) {
	switch it.in.Text {
	case cmdNew:
		text := "A new conversation begins. Files and memory stay."
		if parked, err := c.parkedTurns(); err != nil || len(parked) > 0 {
			text += fmt.Sprintf(" What waits for an answer goes on waiting beside it; %sstop ends it.", c.commandPrefix(it.in.At))
		}
		return text, nil
	case cmdStop:
		beside, err := c.stopBeside(ctx, it.in.ID)
		if err != nil {
			return "", err
		}
		switch busy := it.busy || c.isBusy(); {
		case beside != "" && busy:
			return "Stopped, and with it " + beside + ".", nil
		case beside != "":
			return "Stopped " + beside + ".", nil
		case busy:
			return "Stopped.", nil
		}
		if it.in.Group && !it.in.Mentioned {
			return "", nil // it may not have been meant for us
		}
		return "Nothing is running.", nil
	case cmdStatus:
		return c.status(ctx, it)
	case cmdUsage:
		if c.cfg.Usage == nil {
			return "Here nobody keeps count.", nil
		}
		return c.cfg.Usage(ctx, it.in)
	case cmdContext:
		return c.contextText(ctx, it.in)
	case asks.Approve, asks.Deny, asks.Answer:
		return c.answerAsk(ctx, it.in)
	case cmdUndo:
		return c.undo(ctx, it.in)
	case cmdForget, cmdExport: // gateways answer these in chats on platforms
		return fmt.Sprintf("That works in a chat with me on a chat platform. Here `parley forget --user %s` erases what you have said, and `parley sessions` shows it.", it.in.From.ID), nil
	case cmdMemory, cmdLink: // likewise
		return "That works in a chat with me on a chat platform, where we are alone.", nil
	case cmdHelp:
		return fmt.Sprintf(helpText, c.commandPrefix(it.in.At)), nil
	}
	return fmt.Sprintf("I do not know the command %[1]s%[2]s. %[1]shelp lists those I know.", c.commandPrefix(it.in.At), it.in.Text), nil
}

// stopBeside asks the session's background jobs and sub-agents to end, and returns in words
// how many there were; "" for none.
func (c *commander) stopBeside(ctx context.Context, cause string) (string, error) {
	var stopped []string
	if c.cfg.Jobs != nil {
		n, err := c.cfg.Jobs.StopAll(ctx, c.key(), cause)
		if err != nil {
			return "", fmt.Errorf("stop the jobs: %w", err)
		}
		if n > 0 {
			stopped = append(stopped, countJobs(n))
		}
	}
	if c.cfg.Tasks != nil {
		n, err := c.cfg.Tasks.StopAll(ctx, c.key(), cause)
		if err != nil {
			return "", fmt.Errorf("stop the sub-agents: %w", err)
		}
		if n > 0 {
			stopped = append(stopped, tasksInWords(n))
		}
	}
	return strings.Join(stopped, " and "), nil
}

// undo takes back what turns have changed in the session's files, or lists what can be
// taken back, and returns the reply.
func (c *commander) undo(ctx context.Context, in bus.Inbound) (string, error) {
	if c.cfg.History == nil {
		return "I keep nothing of what I change here, so I cannot undo it.", nil
	}
	u := UndoCommand{Session: c.key(), ID: in.ID, Person: in.From.ID, Args: in.Args, Prefix: c.commandPrefix(in.At), Held: c.lease.Held}
	account, err := c.accountOf(ctx, in.From.ID)
	if err != nil {
		return "", err
	}
	u.May = func(person string) bool {
		theirs, err := c.accountOf(ctx, person)
		return in.From.Owner || person == in.From.ID || err == nil && theirs == account
	}
	waiting, err := c.parkedTurns()
	if err != nil {
		return "", err
	}
	for _, t := range waiting {
		u.Waiting = append(u.Waiting, t.id)
	}
	if c.cfg.Jobs != nil {
		if u.Jobs, err = c.cfg.Jobs.Count(ctx, c.key()); err != nil {
			return "", fmt.Errorf("count the jobs: %w", err)
		}
	}
	return c.cfg.History.Undo(ctx, u)
}

// countJobs returns a number of jobs in words.
func countJobs(n int) string {
	if n == 1 {
		return "one job that ran in the background"
	}
	return fmt.Sprintf("%d jobs that ran in the background", n)
}

// tasksInWords returns a number of sub-agents in words.
func tasksInWords(n int) string {
	if n == 1 {
		return "one sub-agent"
	}
	return fmt.Sprintf("%d sub-agents", n)
}

// runningTurn returns the turn that has begun and not ended, or else a turn that waits
// for people; nil if there is neither.
func (c *commander) runningTurn() (*turn, error) {
	var waits *turn
	for _, id := range journal.Unfinished(c.journal.Records()) {
		t, err := c.fold(id)
		if err != nil {
			return nil, err
		}
		switch {
		case t.parked:
			waits = t
		case t.done == nil:
			return t, nil
		}
	}
	return waits, nil
}

// isBusy reports whether a turn runs or waits for people, or a message waits for a turn.
func (c *commander) isBusy() bool {
	t, err := c.runningTurn()
	return t != nil || err != nil || c.hasUnanswered()
}

// isWorking reports whether a turn runs, or a message waits for a turn.
func (c *commander) isWorking() bool {
	t, err := c.runningTurn()
	return t != nil && !t.parked || err != nil || c.hasUnanswered()
}

// hasUnanswered reports whether a message waits that no turn answers yet.
func (c *commander) hasUnanswered() bool {
	return slices.ContainsFunc(c.inbox.unhandled(), func(it *item) bool {
		_, known := c.journal.Find(it.in.ID)
		return it.isKind(bus.Said) && !known
	})
}

func (c *commander) status(ctx context.Context, it *item) (string, error) {
	var b strings.Builder
	t, err := c.runningTurn()
	if err != nil {
		return "", err
	}
	switch {
	case t == nil:
		b.WriteString("Nothing is running.")
	case t.parked:
		fmt.Fprintf(&b, "Waiting, for %s, for %s.", time.Since(t.parkedAt).Round(time.Second), c.awaitedText(t, it.in.At))
	default:
		fmt.Fprintf(&b, "Working for %s, step %d of at most %d.", (time.Since(t.started) - t.waitingTime()).Round(time.Second), t.modelCalls+1, c.agent.MaxIterations)
	}
	if c.cfg.Jobs != nil {
		jobs, err := c.cfg.Jobs.Count(ctx, c.key())
		if err != nil {
			return "", fmt.Errorf("count the jobs: %w", err)
		}
		if jobs > 0 {
			fmt.Fprintf(&b, " In the background: %d.", jobs)
		}
	}
	if c.cfg.Tasks != nil {
		n, err := c.cfg.Tasks.Count(ctx, c.key())
		if err != nil {
			return "", fmt.Errorf("count the sub-agents: %w", err)
		}
		if n > 0 {
			fmt.Fprintf(&b, " Sub-agents that work: %d.", n)
		}
	}
	limits := c.cfg.Limits()
	fmt.Fprintf(&b, "\n\n- model: %s\n- waiting: %d of at most %d", c.agent.Model.Info().Name, len(c.inbox.unhandled()), limits.MaxWaiting)
	account, err := c.accountOf(ctx, it.in.From.ID)
	if err != nil {
		return "", err
	}
	if limits.TokensAlways || !c.agent.Model.Info().Priced {
		spent, err := c.cfg.Budget.Spent(ctx, account, time.Now())
		if err != nil {
			return "", fmt.Errorf("read the budget: %w", err)
		}
		fmt.Fprintf(&b, "\n- your tokens today: %d of at most %d", spent, limits.TokensDay)
	}
	fmt.Fprintf(&b, "\n- session: `%s`", c.key())
	return b.String(), nil
}

// answerAsk carries out a command that answers an ask, in this conversation or another.
// The reply is "" if the message of the ask itself shows the answer.
func (c *commander) answerAsk(ctx context.Context, in bus.Inbound) (string, error) {
	p := c.commandPrefix(in.At)
	if c.cfg.Asks == nil {
		return "Nothing can be asked here, so there is nothing to answer.", nil
	}
	id, answer := asks.Parse(in)
	if id == "" {
		return fmt.Sprintf("Which request? Say `%s%s ID`; the request names its ID.", p, in.Text), nil
	}
	of, err := c.cfg.Asks.Answer(ctx, id, answer)
	if why := asks.RefusalText(err, id, of, p); why != "" {
		return why, nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	if of.At == in.At || slices.Contains(of.Asked, in.At) {
		return "", nil
	}
	return fmt.Sprintf("Request `%s`: %s.", of.ID, of.Ending()), nil
}
