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

// A Story says what became of one message.
type Story struct {
	Message string `json:"message"`
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Outcome string `json:"outcome"` // refused, or one of the outcomes in texts.go
	Says    string `json:"says"`    // the outcome in words, and what to do
	Steps   []Step `json:"steps"`
}

// A Step is one thing that happened to a message.
type Step struct {
	At time.Time `json:"at,omitzero"` // left out if it is unknown
	// Kind is received, refused, command, turn, model, call, waits, answered, resumed, ended, send or dead_letter.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The kinds of steps.
const (
	stepReceived   = "received"
	stepRefused    = "refused"
	stepCommand    = "command"
	stepTurn       = "turn"
	stepModel      = "model"
	stepCall       = "call"
	stepWaits      = "waits"
	stepAnswered   = "answered"
	stepResumed    = "resumed"
	stepEnded      = "ended"
	stepSend       = "send"
	stepDeadLetter = "dead_letter"
)

// add adds a step.
func (s *Story) add(at time.Time, kind, format string, args ...any) {
	if !at.IsZero() {
		at = at.UTC()
	}
	s.Steps = append(s.Steps, Step{at, kind, fmt.Sprintf(format, args...)})
}

// end sets the outcome, and its text with more appended to it.
func (s *Story) end(outcome string, more ...string) {
	s.Outcome = outcome
	s.Says = strings.Join(append([]string{outcomeInWords(outcome)}, more...), " ")
}

// arrivedAt returns when the message arrived, or the first time that is known about it.
func (s *Story) arrivedAt() time.Time {
	for _, step := range s.Steps {
		if !step.At.IsZero() {
			return step.At
		}
	}
	return time.Time{}
}

// refuse reports that the message was refused.
func (s *Story) refuse(r sessions.AuditRecord) {
	s.Session, s.Turn = r.Session, r.Turn
	from := ""
	if r.By != "" {
		from = " from " + r.By
	}
	s.add(r.At, stepRefused, "it arrived%s at %s, and the rule %s refused it", from, r.Address, r.Result)
	if r.Count > 1 {
		s.add(time.Time{}, stepRefused, "in all, this rule has refused %s there; the time shown is when the newest was refused", countInWords(int(r.Count), "message"))
	}
	s.end(stepRefused, ruleInWords(r.Result))
}

// ofMessage reports on the message with an id, or on the message that has an answer, request or part with that id.
// The story has no steps if nothing is known.
func (q *query) ofMessage(ctx context.Context, id string) (Story, error) {
	s := Story{Message: id}
	for _, look := range []func(context.Context, *Story) error{q.asInbound, q.asAsk, q.asSubmission, q.asOutbound, q.asRefused, q.asBuried, q.asReplayed, q.asWaiting} {
		if err := look(ctx, &s); err != nil || len(s.Steps) > 0 {
			return s, err
		}
	}
	return s, nil
}

// asInbound reports on a message that a session knows. Like the functions below whose names begin with "as", it adds
// nothing to the story if it does not find the message.
func (q *query) asInbound(ctx context.Context, s *Story) error {
	id := s.Message
	key, err := q.find(ctx, id, nil)
	if base, derived := bus.Cause(id); err == nil && key == "" && derived {
		id = base // it is an answer to the message, or about it
		key, err = q.find(ctx, id, nil)
	}
	if err != nil || key == "" {
		return err
	}
	s.Message = id
	return q.follow(ctx, s, key)
}

// asAsk reports on the message whose turn has asked people.
func (q *query) asAsk(ctx context.Context, s *Story) error {
	id, _ := bus.Cause(s.Message)
	if len(id) != bus.AskIDLength {
		return nil
	}
	ask, err := q.cfg.Book.LookupAsk(ctx, id)
	if errors.Is(err, bus.ErrNoAsk) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Message = ask.Turn
	return q.follow(ctx, s, ask.Session)
}

// asSubmission reports on a message that a program or a webhook has submitted.
func (q *query) asSubmission(ctx context.Context, s *Story) error {
	id, _, _ := strings.Cut(s.Message, "/")
	p, err := q.cfg.Book.Submission(ctx, id)
	if errors.Is(err, channels.ErrNoSend) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Message = p.ID
	key, err := q.find(ctx, p.ID, p.Destinations)
	if err != nil {
		return err
	}
	if key != "" {
		return q.follow(ctx, s, key)
	}
	var to []string
	for _, at := range p.Destinations {
		to = append(to, at.String())
	}
	s.add(p.At, stepReceived, "%s submitted it for %s", p.Origin, strings.Join(to, ", "))
	state := channels.Sent
	for i, at := range p.Destinations {
		one, err := q.tellSend(ctx, s, fmt.Sprintf("%s/%d", p.ID, i), at.Channel, p.At)
		if err != nil {
			return err
		}
		state = worseState(state, one)
	}
	s.end(outcomeOf(state))
	return nil
}

// asOutbound reports on a message that was sent and answers no known message.
func (q *query) asOutbound(ctx context.Context, s *Story) error {
	sent, err := q.cfg.Book.Lookup(ctx, s.Message)
	if errors.Is(err, channels.ErrNoSend) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Session = sent.Session
	state, err := q.tellSend(ctx, s, sent.ID, sent.To.Channel, sent.At)
	if err == nil {
		s.end(outcomeOf(state))
	}
	return err
}

// asRefused reports on a message that was refused.
func (q *query) asRefused(ctx context.Context, s *Story) error {
	found, err := q.refusals(ctx, sessions.AuditQuery{Message: s.Message})
	if err == nil && len(found) > 0 {
		*s = found[0]
	}
	return err
}

// asBuried reports on a message that was given up before a session knew it.
func (q *query) asBuried(ctx context.Context, s *Story) error {
	d, found, err := q.deadLetter(ctx, bus.InboundTopic, s.Message)
	if found {
		s.Session = d.Message.Key
		s.bury(d)
	}
	return err
}

// buried reports on the newest messages in a session that were given up.
func (q *query) buried(ctx context.Context, key string) (all []Story, err error) {
	letters, err := q.deadLetters(ctx)
	for _, d := range letters {
		if d.Message.Key == key && len(all) < maxReported {
			s := Story{Message: d.Message.ID, Session: key}
			s.bury(d)
			all = append(all, s)
		}
	}
	return all, err
}

// bury reports that the message was given up.
func (s *Story) bury(d bus.DeadLetter) {
	s.add(d.BuriedAt, stepDeadLetter, textGaveUpAfter, countInWords(d.Attempts, "attempt"), d.Topic, d.Reason)
	s.end(outcomeGivenUp)
}

// asReplayed reports on a dead letter that was published again under another id.
func (q *query) asReplayed(ctx context.Context, s *Story) error {
	again := s.Message + "~1"
	key, err := q.find(ctx, again, nil)
	if err != nil || key == "" {
		return err
	}
	s.add(time.Time{}, stepDeadLetter, textReplayed, again)
	s.Message = again
	return q.follow(ctx, s, key)
}

// asWaiting reports on a message that may be among the waiting mail of the place where it was said.
func (q *query) asWaiting(ctx context.Context, s *Story) error {
	channel, chat, ok := chatOfMessageID(s.Message)
	if !ok {
		return nil
	}
	own := s.Message[strings.LastIndexByte(s.Message, ':')+1:] // on Slack a message begins the thread with its id
	var keys []string
	for _, agent := range q.cfg.Agents() {
		for _, thread := range []string{"", own} {
			if key, err := sessions.Key(agent, channel, chat, thread); err == nil {
				keys = append(keys, key)
			}
		}
	}
	for _, key := range keys {
		has, err := q.cfg.Mail.HasMail(ctx, bus.InboundTopic, key)
		if err != nil {
			return err
		}
		if has {
			s.Session = key
			s.add(time.Time{}, stepWaits, "it isn't in any log, but conversation %s has messages that no worker has started on yet: it may be one of them", key)
			s.end(outcomeWaiting)
			return nil
		}
	}
	return nil
}

// sendRecordLifetime is how long the book knows what was sent.
const sendRecordLifetime = 30 * 24 * time.Hour

// tellSend reports what became of an outbound message in a channel, which was published at that time, and returns
// its state.
func (q *query) tellSend(ctx context.Context, s *Story, id, channel string, published time.Time) (string, error) {
	letter, buried, err := q.deadLetter(ctx, bus.OutboundTopic(channel), id)
	if err != nil {
		return "", err
	}
	sent, err := q.cfg.Book.Lookup(ctx, id)
	state := sent.State()
	switch {
	case err != nil && !errors.Is(err, channels.ErrNoSend):
		return "", err
	case err != nil && !buried && time.Since(published) > sendRecordLifetime:
		s.add(time.Time{}, stepSend, "there's no longer any record of what became of %s", id)
		return channels.OutcomeUnknown, nil
	case err != nil && !buried:
		s.add(time.Time{}, stepSend, "%s is on the bus, waiting to be sent, or for the channel", id)
		return channels.Queued, nil
	case err == nil:
		s.add(sent.At, stepSend, "%s", sendInWords(sent))
	}
	if buried {
		s.add(letter.BuriedAt, stepDeadLetter, textGaveUpOn, id, letter.Topic, letter.Reason)
		return channels.Failed, nil
	}
	return state, nil
}

// sendInWords says what state a sent message is in.
func sendInWords(sent channels.Send) string {
	var posted []string
	failed := ""
	for _, p := range sent.Parts {
		if p.State == channels.Sent && p.PlatformID != "" {
			posted = append(posted, p.PlatformID)
		}
		if p.State == channels.Failed && p.Code != "" {
			failed = ": the platform says " + p.Code
		}
	}
	at := ""
	if len(posted) > 0 {
		at = " as " + strings.Join(posted, ", ")
	}
	switch state := sent.State(); state {
	case channels.Sent:
		return fmt.Sprintf("%s was sent to %s%s", sent.ID, sent.To, at)
	case channels.Failed:
		return fmt.Sprintf("%s was not sent to %s%s", sent.ID, sent.To, failed)
	case channels.OutcomeUnknown:
		return fmt.Sprintf("%s was cut off on its way to %s, and nobody can tell whether it arrived", sent.ID, sent.To)
	default:
		return fmt.Sprintf("%s is being sent to %s", sent.ID, sent.To)
	}
}
