package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/agent/asks"
	"parley/agent/budget"
	"parley/agent/journal"
	"parley/agent/model"
	"parley/agent/route"
	"parley/agent/spans"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
)

// The commands that a session answers, in addition to those that answer asks and the one that stops turns. A gateway
// carries out forget, export, memory, recall, link and ui itself: they come here only from terminals and the web page.
const (
	cmdNew     = "new"
	cmdStatus  = "status"
	cmdHelp    = "help"
	cmdForget  = "forget"
	cmdExport  = "export"
	cmdMemory  = "memory"
	cmdRecall  = "recall"
	cmdLink    = "link"
	cmdUI      = "ui"
	cmdUndo    = "undo" // undoes changes of files
	cmdUsage   = "usage"
	cmdCompact = "compact"
	cmdContext = "context"
)

// noticeUndo is the code of the notice that tells the model about an /undo.
const noticeUndo = "undo"

// A commander carries out the commands in a session's mail.
type commander struct {
	lifecycle
	askers *model.Askers
	inbox  *inbox
	stop   *turnStop
}

// runsAtOnce reports whether a command is carried out while a turn runs.
func runsAtOnce(name string) bool {
	switch name {
	case turn.CommandStop, cmdStatus, cmdUsage, cmdContext, cmdHelp, asks.Approve, asks.Deny, asks.Answer:
		return true
	}
	return false
}

// announceWait tells the sender of /new or /undo that the command waits until the current work, if there is any, is
// done. An error is only logged, because the command itself is answered in any case.
func (c *commander) announceWait(ctx context.Context, in bus.Inbound) {
	// If the log has the command, it was carried out before and only needs its reply again.
	then, waits := map[string]string{cmdNew: "start a new conversation", cmdUndo: "undo"}[in.Text]
	if _, known := c.Journal.Find(in.ID); !waits || known || !c.isWorking() {
		return
	}
	to := route.Of(in)
	err := c.publish(ctx, bus.Outbound{
		ID: "noted:" + in.ID, To: to.At, ReplyTo: to.ReplyTo,
		Text: fmt.Sprintf(textFinishFirst, then, c.CommandPrefix(in.At)),
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("nobody was told that a command waits", slog.String("command", in.Text), slog.Any("error", err))
	}
}

// run carries out a command, writes its entry and replies. If the command is already in the log, run only
// repeats the reply, under the same id.
func (c *commander) run(ctx context.Context, it *item) error {
	began := time.Now()
	if it.in.Text == turn.CommandStop {
		it.stopsWork = c.isBusy() // now, because the work that is canceled next may end before the reply is made
		c.inbox.cancelBefore(it.seq)
	}
	done, known := c.Journal.Find(it.in.ID)
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
		if it.in.Text == turn.CommandStop {
			c.stop.stop()                                                    // after the entry, so that a process that resumes the turn stops it too
			if _, err := c.stopJobsAndSubAgents(ctx, it.in.ID); err != nil { // including those that the turn has just begun
				c.Log.Warn("a job or a sub-agent may go on that a turn began as it was stopped", slog.Any("error", err))
			}
		}
		done, _ = c.Journal.Find(it.in.ID)
	}
	cmd, ok := done.Data.(sessions.Command)
	if !ok { // it was dropped together with what /new covers
		return nil
	}
	spans.RecordCommand(c.Session, &it.in, began)
	return c.reply(ctx, cmd)
}

// carryOut carries out a command. It returns the reply to its sender, or "" for none, and a summary if the
// command changes what the model sees of the past; otherwise nil.
func (c *commander) carryOut(ctx context.Context, it *item) (text string, summary *sessions.Summary, err error) {
	switch it.in.Text {
	case cmdCompact:
		return c.compactNow(ctx, it.in)
	case cmdNew:
		newest := c.Journal.Newest()
		summary = &sessions.Summary{Covers: newest, Keep: transcript.KeepEpisodes(c.Journal.LoggedRecords(), newest, time.Now(), transcript.EpisodeTokens)}
	}
	text, err = c.replyText(ctx, it)
	return text, summary, err
}

// compactNow summarizes the past, unless a turn waits for people, whose answers refer to what was said in it.
func (c *commander) compactNow(ctx context.Context, in bus.Inbound) (text string, _ *sessions.Summary, err error) {
	parked, err := c.currentParked()
	if err != nil {
		return "", nil, err
	}
	if parked != nil {
		return textCannotSumUp, nil, nil
	}
	return c.askers.New(c.Session).CompactNow(ctx, in)
}

// record writes a command's entry, and the summary if there is one. Before that, /new ends the approvals that hold for
// the session, and drops its sub-agents.
func (c *commander) record(ctx context.Context, in bus.Inbound, cmd sessions.Command, summary *sessions.Summary) error {
	e := journal.NewEntry(in.ID, sessions.KindCommand, cmd)
	e.Cause, e.Person = in.ID, in.From.ID
	if cmd.Name == cmdUndo { // tells the model that its files have changed
		told := journal.NewEntry(in.ID, sessions.KindNotice, sessions.Notice{Code: noticeUndo, Text: textUndone(cmd.Reply.Text)})
		told.Person = in.From.ID
		return c.Journal.Append(ctx, e, told)
	}
	if summary == nil {
		return c.Journal.Append(ctx, e)
	}
	if cmd.Name == cmdNew && c.Config.Asks != nil { // before the summary, so that no approval outlives the conversation
		if err := c.Config.Asks.EndGrants(ctx, c.Key()); err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
	}
	if cmd.Name == cmdNew && c.Config.SubAgents != nil {
		if err := c.Config.SubAgents.Drop(ctx, c.Key(), in.ID); err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
	}
	if err := c.Journal.Append(ctx, e, journal.NewEntry("", sessions.KindSummary, *summary)); err != nil {
		return err
	}
	c.Journal.Forget(*summary)
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

// replyText carries out a command and returns the reply; "" means that none is sent.
func (c *commander) replyText(ctx context.Context, it *item) (string, error) {
	switch it.in.Text {
	case cmdNew:
		text := textStartedNew
		if parked, err := c.parkedTurns(); err != nil || len(parked) > 0 {
			text += fmt.Sprintf(textKeepsWaiting, c.CommandPrefix(it.in.At))
		}
		return text, nil
	case turn.CommandStop:
		beside, err := c.stopJobsAndSubAgents(ctx, it.in.ID)
		if err != nil {
			return "", err
		}
		switch busy := it.stopsWork || c.isBusy(); {
		case beside != "" && busy:
			return textStoppedAlso(beside), nil
		case beside != "":
			return "Stopped " + beside + ".", nil
		case busy:
			return "Stopped.", nil
		}
		if it.in.Group && !it.in.Mentioned {
			return "", nil // the /stop may have been meant for somebody else in the group
		}
		return textNothingRuns, nil
	case cmdStatus:
		return c.status(ctx, it)
	case cmdUsage:
		if c.Config.Usage == nil {
			return textNoUsage, nil
		}
		return c.Config.Usage(ctx, it.in)
	case cmdContext:
		// A turn may be running at the same time, so Aside leaves out the turn's own counts.
		return c.askers.New(c.WithoutTurnState()).ContextText(ctx, it.in)
	case asks.Approve, asks.Deny, asks.Answer:
		return c.answerAsk(ctx, it.in)
	case cmdUndo:
		return c.undo(ctx, it.in)
	case cmdForget, cmdExport: // gateways answer these in chats on platforms
		return fmt.Sprintf(textOnlyOnPlatforms, it.in.From.ID), nil
	case cmdUI:
		return textPageHere, nil
	case cmdLink:
		return c.link(ctx, it.in)
	case cmdMemory: // likewise
		return textOnlyInPrivate, nil
	case cmdRecall: // likewise; here the log would keep what was found
		return textRecallHere, nil
	case cmdHelp:
		prefix, own := c.CommandPrefix(it.in.At), ""
		if c.Config.OwnData == nil || c.Config.OwnData(it.in.At.Channel) {
			own = fmt.Sprintf(textOwnDataHelp, prefix)
		}
		return fmt.Sprintf(textHelp, prefix, own), nil
	}
	return fmt.Sprintf(textUnknownCommand, c.CommandPrefix(it.in.At), it.in.Text), nil
}

// link links the sender with another of their accounts, if this server links accounts.
func (c *commander) link(ctx context.Context, in bus.Inbound) (string, error) {
	if c.Config.Link == nil {
		return textOnlyInPrivate, nil
	}
	answer, err := c.Config.Link(ctx, in)
	return cmp.Or(answer, textOnlyInPrivate), err
}

// stopJobsAndSubAgents asks the session's background jobs and sub-agents to end, and says in words how many
// there were, or "" for none.
func (c *commander) stopJobsAndSubAgents(ctx context.Context, cause string) (string, error) {
	var stopped []string
	if c.Config.Jobs != nil {
		n, err := c.Config.Jobs.StopAll(ctx, c.Key(), cause)
		if err != nil {
			return "", fmt.Errorf("stop the jobs: %w", err)
		}
		if n > 0 {
			stopped = append(stopped, textJobs(n))
		}
	}
	if c.Config.SubAgents != nil {
		n, err := c.Config.SubAgents.StopAll(ctx, c.Key(), cause)
		if err != nil {
			return "", fmt.Errorf("stop the sub-agents: %w", err)
		}
		if n > 0 {
			stopped = append(stopped, textSubAgentCount(n))
		}
	}
	return strings.Join(stopped, " and "), nil
}

// undo undoes what turns have changed in the session's files, or lists what can be undone, and returns the
// reply.
func (c *commander) undo(ctx context.Context, in bus.Inbound) (string, error) {
	if c.Config.History == nil {
		return textNoCopies, nil
	}
	u := agent.UndoCommand{Session: c.Key(), ID: in.ID, Person: in.From.ID, Args: in.Args, Prefix: c.CommandPrefix(in.At), CheckLease: c.Lease.Held}
	account, err := c.AccountOf(ctx, in.From.ID)
	if err != nil {
		return "", err
	}
	u.MayUndoFor = func(person string) bool {
		theirs, err := c.AccountOf(ctx, person)
		return in.From.Owner || person == in.From.ID || err == nil && theirs == account
	}
	waiting, err := c.parkedTurns()
	if err != nil {
		return "", err
	}
	for _, t := range waiting {
		u.Waiting = append(u.Waiting, t.ID)
	}
	if c.Config.Jobs != nil {
		if u.Jobs, err = c.Config.Jobs.Count(ctx, c.Key()); err != nil {
			return "", fmt.Errorf("count the jobs: %w", err)
		}
	}
	return c.Config.History.Undo(ctx, u)
}

// runningTurn returns the turn that has begun and is neither parked nor ended, or else the parked one that began last; nil if
// there is neither. A parked turn waits for people, sub-agents or a node.
func (c *commander) runningTurn() (*turn.Turn, error) {
	var waits *turn.Turn
	for _, id := range journal.Unfinished(c.Journal.Current()) {
		t, err := c.Fold(id)
		if err != nil {
			return nil, err
		}
		switch {
		case t.Parked:
			waits = t
		case t.Done == nil:
			return t, nil
		}
	}
	return waits, nil
}

// isBusy reports whether a turn runs or waits for people, its answer is being read aloud, or a message waits for a turn.
func (c *commander) isBusy() bool {
	t, err := c.runningTurn()
	return t != nil || err != nil || c.stop.isSet() || c.hasUnanswered()
}

// isWorking reports whether a turn runs, its answer is being read aloud, or a message waits for a turn.
func (c *commander) isWorking() bool {
	t, err := c.runningTurn()
	return t != nil && !t.Parked || err != nil || c.isReading() || c.hasUnanswered()
}

// isReading reports whether the answer of a turn that has ended is being read aloud.
func (c *commander) isReading() bool {
	return c.stop.isSet() && slices.ContainsFunc(journal.Unfinished(c.Journal.Current()), func(id string) bool {
		t, err := c.Fold(id)
		return err == nil && t.Done != nil && t.Done.Aloud
	})
}

// hasUnanswered reports whether there is a message that no turn is answering yet.
func (c *commander) hasUnanswered() bool {
	return slices.ContainsFunc(c.inbox.unhandled(), func(it *item) bool {
		_, known := c.Journal.Find(it.in.ID)
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
	case t == nil && c.isReading():
		b.WriteString(textReadingAloud)
	case t == nil:
		b.WriteString(textNothingRuns)
	case t.Parked:
		fmt.Fprintf(&b, textBeenWaiting, time.Since(t.ParkedAt).Round(time.Second), c.waitReasonText(t, it.in.At))
	default:
		fmt.Fprintf(&b, textBeenWorking, (time.Since(t.Started) - t.WaitingTime()).Round(time.Second), t.ModelCalls+1, c.Agent.MaxIterations, runningToolNames(t))
	}
	if c.Config.Jobs != nil {
		jobs, err := c.Config.Jobs.Count(ctx, c.Key())
		if err != nil {
			return "", fmt.Errorf("count the jobs: %w", err)
		}
		if jobs > 0 {
			fmt.Fprintf(&b, textInBackground, jobs)
		}
	}
	if c.Config.SubAgents != nil {
		n, err := c.Config.SubAgents.Count(ctx, c.Key())
		if err != nil {
			return "", fmt.Errorf("count the sub-agents: %w", err)
		}
		if n > 0 {
			fmt.Fprintf(&b, textSubAgents, n)
		}
	}
	limits := c.Config.Limits()
	fmt.Fprintf(&b, textStatusList, c.Agent.Model.Info().Name, len(c.inbox.unhandled()), limits.MaxWaiting)
	account, err := c.AccountOf(ctx, it.in.From.ID)
	if err != nil {
		return "", err
	}
	if limits.TokensAlways || !c.Agent.Model.Info().Priced {
		spent, reserved, err := budget.SpentToday(ctx, c.Config.Budget, account)
		if err != nil {
			return "", fmt.Errorf("read the budget: %w", err)
		}
		fmt.Fprintf(&b, textTokensToday, bill.Grouped(spent), bill.Grouped(limits.TokensDay))
		if reserved > 0 {
			fmt.Fprintf(&b, textSetAside, bill.Grouped(reserved))
		}
	}
	fmt.Fprintf(&b, textSession, c.Key())
	return b.String(), nil
}

// runningToolNames returns the names of the tools whose calls are running, as the end of a sentence; "" if there are
// none.
func runningToolNames(t *turn.Turn) string {
	var names []string
	for _, call := range t.OpenCalls() {
		if call.Attempts > 0 {
			names = append(names, call.Use.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", in " + strings.Join(names, ", ")
}

// answerAsk carries out a command that answers an ask, in this conversation or another one. The reply is "" if
// the message of the ask itself shows the answer.
func (c *commander) answerAsk(ctx context.Context, in bus.Inbound) (string, error) {
	p := c.CommandPrefix(in.At)
	if c.Config.Asks == nil {
		return textNoAsks, nil
	}
	id, answer := asks.Parse(in)
	if id == "" {
		return fmt.Sprintf(textWhichRequest, p, in.Text), nil
	}
	of, err := c.Config.Asks.Answer(ctx, id, answer)
	if err == nil || errors.Is(err, bus.ErrDecided) {
		if err := c.removeDuplicateButtons(ctx, in, of); err != nil {
			return "", err
		}
	}
	if why := asks.RefusalText(err, id, of, p); why != "" {
		return why, nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	if of.At == in.At || slices.Contains(of.Asked, in.At) {
		return "", nil
	}
	return fmt.Sprintf(textRequestEnded, of.ID, of.Ending()), nil
}

// removeDuplicateButtons removes the buttons from the message on which somebody has pressed one, if that isn't
// the ask's own message: a send that was cut off and repeated may have shown the ask twice. The channel knows
// whether it did.
func (c *commander) removeDuplicateButtons(ctx context.Context, in bus.Inbound, of bus.Ask) error {
	if !in.Pressed || in.ReplyTo == "" || of.State == bus.AskOpen {
		return nil
	}
	to := in.At
	for _, at := range of.AskedAt() {
		if at.Channel == in.At.Channel && at.Chat == in.At.Chat {
			to = at
		}
	}
	v := asks.View{Ask: of, ShowsAll: c.Config.ShowsWholeTexts, Presses: c.Config.Presses}
	err := c.publish(ctx, bus.Outbound{
		ID: bus.DerivedID(in.ID, "#double"), To: to, Subject: of.ID, Double: in.ReplyTo, Text: v.Text(to) + asks.EndText(of),
	})
	if errors.Is(err, bus.ErrInvalid) {
		err = nil
	}
	return err
}
