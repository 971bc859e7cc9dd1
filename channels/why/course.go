package why

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions"
)

// How much of a log is read for one message.
const (
	entriesBefore  = 30   // how many entries before the message's own, because a turn's first entry precedes it
	maxEntriesRead = 3000 // how many entries in all
	maxCalls       = 20   // how many calls are reported one by one
)

// follow reports on a message that is in the log of the session with this key.
func (q *query) follow(ctx context.Context, s *Story, key string) error {
	e, err := q.cfg.Sessions.Find(ctx, key, s.Message)
	if errors.Is(err, sessions.ErrNotFound) {
		return nil // it was just erased
	}
	if err != nil {
		return err
	}
	s.Session = key
	from := ""
	if e.Person != "" {
		from = " from " + e.Person
	}
	s.add(e.At, stepReceived, "it arrived%s, was accepted, and is in conversation %s", from, key)
	channel := ""
	if parts, err := sessions.ParseKey(key); err == nil {
		channel = parts.Channel
	}
	if e.Kind == sessions.KindCommand {
		return q.followCommand(ctx, s, e, channel)
	}
	s.Turn = e.Turn
	c := course{story: s, message: e, calls: map[string]*toolCall{}, asks: map[string]string{}}
	n := 0
	for entry, err := range q.cfg.Sessions.Read(ctx, key, max(1, e.N-entriesBefore)) {
		if err != nil {
			return err
		}
		if entry.Turn == e.Turn {
			if err := c.add(entry); err != nil {
				return err
			}
		}
		if n++; n > maxEntriesRead || c.published {
			break
		}
	}
	return q.conclude(ctx, &c, channel)
}

// followCommand reports on a command, which no turn answers.
func (q *query) followCommand(ctx context.Context, s *Story, e sessions.Entry, channel string) error {
	done, err := sessions.Decode[sessions.Command](e)
	if err != nil {
		return err
	}
	s.add(e.At, stepCommand, textCarriedOut, done.Name)
	if done.Reply.ID == "" || done.Reply.Text == "" {
		s.end(channels.Sent)
		return nil
	}
	state, err := q.tellSend(ctx, s, done.Reply.ID, channel, e.At)
	if err == nil {
		s.end(outcomeOf(state))
	}
	return err
}

// conclude reports how the turn ended and what became of its answer, or what it is doing now.
func (q *query) conclude(ctx context.Context, c *course, channel string) error {
	s := c.story
	c.addCounts()
	switch {
	case c.done == nil && c.parked:
		s.end(outcomeWaitsForPeople)
		return nil
	case c.done == nil:
		s.end(outcomeRunning)
		return nil
	}
	reason := ""
	if c.done.Code != "" {
		reason = ": " + c.done.Code
	}
	if c.done.Refused {
		s.add(c.ended, stepRefused, "the rule %s ended the turn before it did anything", c.done.Code)
	} else {
		s.add(c.ended, stepEnded, "the turn %s%s", turnEndInWords(c.done.State), reason)
	}
	state := channels.Sent
	for _, reply := range c.done.Outbound {
		if channel == bus.SubAgents {
			continue // its answer is the report to the agent that handed out the task
		}
		one, err := q.tellSend(ctx, s, reply.ID, channel, c.ended)
		if err != nil {
			return err
		}
		state = worseState(state, one)
	}
	letter, buried, err := q.deadLetter(ctx, bus.InboundTopic, s.Message)
	if err != nil {
		return err
	}
	switch {
	case buried:
		s.bury(letter)
	case c.done.Refused:
		s.end(stepRefused, ruleInWords(c.done.Code))
	case state != channels.Sent:
		s.end(outcomeOf(state))
	case c.done.State == sessions.TurnFailed:
		s.end(outcomeFailed, reasonInWords(c.done.Code))
	case c.done.State == sessions.TurnCancelled:
		s.end(outcomeCancelled)
	case len(c.done.Outbound) == 0:
		s.end(outcomeSilent)
	default:
		s.end(outcomeOf(state))
	}
	return nil
}

// A course is a turn as read from the log.
type course struct {
	story        *Story
	message      sessions.Entry // the message that the question is about
	calls        map[string]*toolCall
	asks         map[string]string // the kinds of the requests to people, by id
	callsBegun   int               // how many calls have begun
	callsOmitted int               // how many of them are not reported one by one

	agent, name string // the agent, and the model that was asked last
	modelCalls  int    // how often a model was asked
	askedAt     time.Time
	parked      bool
	done        *sessions.TurnDone
	ended       time.Time
	published   bool
}

// A toolCall is a tool call.
type toolCall struct {
	tool      string
	started   time.Time
	stepIndex int // its index in the story's steps; -1 if it has none
}

// add adds the next entry of the turn.
func (c *course) add(e sessions.Entry) error {
	switch e.Kind {
	case sessions.KindTurnStarted:
		began, err := sessions.Decode[sessions.TurnStarted](e)
		if err != nil {
			return err
		}
		c.agent = began.Agent
	case sessions.KindUser:
		c.addMessage(e)
	case sessions.KindUsage:
		used, err := sessions.Decode[sessions.Usage](e)
		if err != nil {
			return err
		}
		c.modelCalls, c.name, c.askedAt = c.modelCalls+1, used.Model, e.At
	case sessions.KindToolUse, sessions.KindToolStarted, sessions.KindToolResult:
		return c.addCall(e)
	case sessions.KindTurnParked, sessions.KindAskEnded, sessions.KindTurnUnparked:
		return c.addWaiting(e)
	case sessions.KindResumed:
		c.story.add(e.At, stepResumed, "another process continued it, or the same one did after a restart")
	case sessions.KindTurnDone:
		done, err := sessions.Decode[sessions.TurnDone](e)
		if err != nil {
			return err
		}
		c.done, c.ended, c.published = &done, e.At, len(done.Outbound) == 0
	case sessions.KindPublished:
		c.published = true
	}
	return nil
}

// addMessage reports that the turn begins with the message, or takes it in. It doesn't report messages other than
// the one that the question is about.
func (c *course) addMessage(e sessions.Entry) {
	if e.Cause != c.message.Cause {
		return
	}
	if e.Cause == e.Turn {
		who := ""
		if c.agent != "" {
			who = " of the agent " + c.agent
		}
		c.story.add(e.At, stepTurn, "it started the turn %s%s", e.Turn, who)
		return
	}
	c.story.add(e.At, stepTurn, "it joined the turn %s", e.Turn)
}

// addCall reports on a call: that it is running, or how it ended.
func (c *course) addCall(e sessions.Entry) error {
	one := c.calls[e.Call]
	if one == nil {
		one = &toolCall{stepIndex: -1}
		c.calls[e.Call] = one
	}
	switch e.Kind {
	case sessions.KindToolUse:
		use, err := sessions.Decode[sessions.ToolUse](e)
		one.tool = use.Name
		return err
	case sessions.KindToolStarted:
		one.started = e.At
		if one.stepIndex >= 0 || e.N < c.message.N {
			return nil
		}
		if c.callsBegun++; c.callsBegun > maxCalls {
			c.callsOmitted++
			return nil
		}
		one.stepIndex = len(c.story.Steps)
		c.story.add(e.At, stepCall, "%s was called and hasn't finished", one.tool)
		return nil
	default:
		result, err := sessions.Decode[sessions.ToolResult](e)
		if err != nil || one.stepIndex < 0 {
			return err
		}
		how := "ok"
		if result.Code != "" {
			how = result.Code
		}
		c.story.Steps[one.stepIndex].Text = fmt.Sprintf("%s was called, with the result %s after %s", one.tool, how, e.At.Sub(one.started).Round(time.Millisecond))
		return nil
	}
}

// addWaiting reports that the turn is waiting, and what it has waited for.
func (c *course) addWaiting(e sessions.Entry) error {
	switch e.Kind {
	case sessions.KindTurnParked:
		parked, err := sessions.Decode[sessions.TurnParked](e)
		if err != nil {
			return err
		}
		c.parked = true
		var what []string
		for _, a := range parked.Asks {
			needs := askInWords(a)
			if one := c.calls[a.Call]; one != nil && a.Kind == bus.AskApproval {
				needs += " of " + one.tool
			}
			c.asks[a.ID] = a.Kind
			what = append(what, fmt.Sprintf("%s (%s, until %s)", needs, a.ID, a.Expires.UTC().Format(time.RFC3339)))
		}
		c.story.add(e.At, stepWaits, "it's waiting for %s", strings.Join(what, ", "))
	case sessions.KindAskEnded:
		end, err := sessions.Decode[sessions.AskEnded](e)
		if err != nil {
			return err
		}
		by := ""
		if e.Person != "" {
			by = " by " + e.Person
		}
		if c.asks[end.Ask] == sessions.AskNode {
			c.story.add(e.At, stepAnswered, "it stopped waiting for the node")
			break
		}
		c.story.add(e.At, stepAnswered, "the request %s %s%s", end.Ask, askEndInWords(end, c.asks[end.Ask]), by)
	default:
		c.parked = false
	}
	return nil
}

// askEndInWords says how a request of that kind ended, to follow its id. An answer to a question isn't reported, because it belongs to
// whoever gave it.
func askEndInWords(end sessions.AskEnded, kind string) string {
	switch {
	case end.State == bus.AskExpired:
		return "expired"
	case end.State != bus.AskAnswered || kind != bus.AskApproval:
		return "was " + end.State
	case end.Answer == bus.Deny:
		return "was denied"
	case end.Answer == bus.ApproveSession:
		return "was approved for the conversation"
	}
	return "was approved"
}

// addCounts says how often a model was asked, and how many calls are not reported one by one.
func (c *course) addCounts() {
	if c.callsOmitted > 0 {
		c.story.add(time.Time{}, stepCall, "%s ran", countInWords(c.callsOmitted, "more call"))
	}
	if c.modelCalls > 0 {
		c.story.add(c.askedAt, stepModel, "the model %s was sent %s", c.name, countInWords(c.modelCalls, "request"))
	}
}
