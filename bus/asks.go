package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The kinds of asks.
const (
	AskApproval = "approval" // whether a tool call may run
	AskQuestion = "question" // what a person has to say to something
)

// The states of an ask. All but the first are for good.
const (
	AskOpen      = "open"
	AskAnswered  = "answered"
	AskExpired   = "expired"   // nobody answered in time
	AskWithdrawn = "withdrawn" // nobody needs to know any more
)

// The answers to an approval. That to a question is any text.
const (
	Approve        = "approve" // this call, once
	ApproveSession = "session" // this call, and exactly the same in this conversation
	Deny           = "deny"
)

// AskIDLength is how long the id of an ask is, of a-z and 2-7: people type it, and
// platforms give a button little room.
const AskIDLength = 10

// An Ask is what a parked turn waits for.
type Ask struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Call    string `json:"call"`
	// Person is whose turn it is: CHANNEL:USER.
	Person string `json:"person"`
	// Of an approval: the tool, the arguments that it would run with (as people may
	// see them), why it needs one, and a sum of all that is approved.
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Hash      string          `json:"hash,omitempty"`
	// Once is set if its conversation is over: an approval is for this call alone,
	// whatever is answered.
	Once bool `json:"once,omitempty"`
	// Of a question.
	Question string   `json:"question,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	// At is the conversation; Asked is where people are asked.
	At      Address   `json:"address"`
	Asked   []Address `json:"asked,omitempty"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`

	State  string    `json:"state"`
	Answer Answer    `json:"answer,omitzero"` // once answered
	Ended  time.Time `json:"ended,omitzero"`  // when it ceased to be open
}

// An Answer is what somebody says to an ask.
type Answer struct {
	// Text is Approve, ApproveSession or Deny, or what is said to a question.
	Text string `json:"text"`
	// Reason is why it is denied.
	Reason string `json:"reason,omitempty"`
	By     Person `json:"by,omitzero"`
	// Cause is the id of the message or request that brought it: the same one may
	// come again, and is no second answer.
	Cause string `json:"cause,omitempty"`
}

// Why an answer is not taken.
var (
	// ErrNoAsk says that there is no ask of that id.
	ErrNoAsk = errors.New("there is no such request")
	// ErrMayNotAnswer says that somebody else has to answer.
	ErrMayNotAnswer = errors.New("somebody else has to answer")
	// ErrBadAnswer says that the answer is none to this kind of ask.
	ErrBadAnswer = errors.New("that is no answer to this")
	// ErrDecided says that the ask is not open any more.
	ErrDecided = errors.New("it is decided already")
)

// AnswerRefused tells an answer that was not taken from one of which that is not known.
func AnswerRefused(err error) bool {
	return errors.Is(err, ErrNoAsk) || errors.Is(err, ErrMayNotAnswer) || errors.Is(err, ErrBadAnswer) || errors.Is(err, ErrDecided)
}

// MayAnswer tells whether a person may answer. Owners may; an approval may be given
// by approvers of the channel where the conversation is or where people are asked;
// a question is answered by the person whose turn it is.
func (a Ask) MayAnswer(who Person) bool {
	switch {
	case who.ID == "":
		return false
	case who.Owner:
		return true
	case a.Kind == AskQuestion:
		return who.ID == a.Person
	case who.EveryApprover:
		return who.ID != a.Person
	case !who.Approver:
		return false
	}
	channel, _, _ := strings.Cut(who.ID, ":")
	if channel == a.At.Channel {
		return true
	}
	for _, at := range a.Asked {
		if at.Channel == channel {
			return true
		}
	}
	return false
}

// Takes tells whether an answer is one to this kind of ask.
func (a Ask) Takes(answer Answer) bool {
	if a.Kind == AskQuestion {
		return answer.Text != ""
	}
	switch answer.Text {
	case Approve, ApproveSession, Deny:
		return true
	}
	return false
}

// Inbound is the mail that tells an ask's session how the ask ended. It is the same
// however often it is published.
func (a Ask) Inbound() Inbound {
	return Inbound{
		ID: a.ID, Kind: Decided, From: a.Answer.By, At: a.At, SentAt: a.Ended,
		Decision: &Decision{State: a.State, Text: a.Answer.Text, Reason: a.Answer.Reason},
	}
}

// A Decision is how an ask ended.
type Decision struct {
	State  string `json:"state"` // AskAnswered, AskExpired or AskWithdrawn
	Text   string `json:"text,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Ending says in words how an ask ended, and by whom.
func (a Ask) Ending() string {
	by := a.Answer.By.Called()
	switch {
	case a.State == AskExpired:
		return "expired: nobody answered in time"
	case a.State == AskWithdrawn:
		return "withdrawn: the turn was ended"
	case a.State == AskOpen:
		return "open"
	case a.Kind == AskQuestion:
		return "answered by " + by
	case a.Answer.Text == Deny:
		return "denied by " + by
	case a.Answer.Text == ApproveSession:
		return "approved for this conversation by " + by
	}
	return "approved by " + by
}

// PublishAnswer tells an ask's session how the ask ended.
func PublishAnswer(ctx context.Context, b Bus, a Ask) error {
	return PublishNotice(ctx, b, a.Session, a.Inbound())
}

// The kinds of timers.
const (
	AskTimer      = "ask"      // an ask expires
	ScheduleTimer = "schedule" // a slot of a schedule is due
)

// A Timer is what is due at a time.
type Timer struct {
	Kind string `json:"kind"`
	// ID is what it is about: of an AskTimer the ask, of a ScheduleTimer the schedule.
	ID string `json:"id"`
	// Slot tells apart the times at which something is due more than once.
	Slot int64 `json:"slot,omitempty"`
	// Session and Person are whose it is, so that it can be forgotten with them.
	Session string `json:"session,omitempty"`
	Person  string `json:"person,omitempty"`
}

// PublishTimer has a timer be due at a time. It has a mailbox of its own. There is one for
// an id, or for each Slot of it.
func PublishTimer(ctx context.Context, b Bus, t Timer, due time.Time) error {
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode timer %s: %w", t.ID, err)
	}
	id := t.Kind + ":" + t.ID
	if t.Slot != 0 {
		id += ":" + strconv.FormatInt(t.Slot, 10)
	}
	if err := b.Publish(ctx, TimersTopic, Message{ID: id, Key: id, NotBefore: due, Body: body}); err != nil {
		return fmt.Errorf("publish timer %s: %w", t.ID, err)
	}
	return nil
}

// DecodeTimer reads what PublishTimer writes.
func DecodeTimer(body []byte) (Timer, error) {
	var t Timer
	if err := json.Unmarshal(body, &t); err != nil {
		return Timer{}, fmt.Errorf("decode a timer: %w", err)
	}
	return t, nil
}

// A Button answers something by a press: to press it is to say Says.
type Button struct {
	Label string `json:"label"`
	Says  string `json:"says"`
}
