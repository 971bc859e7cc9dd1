package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/tools/plainjson"
)

// These are the kinds of asks: approvals and questions.
const (
	AskApproval = "approval" // asks whether a tool call may run
	AskQuestion = "question" // asks for an answer in a person's own words
)

// These are the states of an ask. Once it has left AskOpen, the state does not change anymore.
const (
	AskOpen      = "open"
	AskAnswered  = "answered"
	AskExpired   = "expired"   // nobody answered in time
	AskWithdrawn = "withdrawn" // the answer is no longer needed, for example because the turn was stopped
)

// These are the answers to an approval. An answer to a question may be any text.
const (
	Approve        = "approve" // the call may run, this once
	ApproveSession = "session" // the call may run, and identical calls later in this conversation may too
	Deny           = "deny"
)

// AskIDLength is the number of characters, from a-z and 2-7, in the id of an ask. Ids are short because
// people type them, and because platforms give a button little room.
const AskIDLength = 10

// An Ask is a request to people for which a parked turn waits: to approve a tool call, or
// to answer a question.
type Ask struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Call    string `json:"call"`
	// Person is the person whose turn waits: CHANNEL:USER.
	Person string `json:"person"`
	// For an approval: the tool, the arguments with which it would run (as people may see
	// them), the reason why it needs approval, and a hash of everything that is
	// approved.
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Shown describes what the call would do in the tool's own terms, such as a command line. People see
	// it in place of the arguments that ShownOf names; if it is "", they see all arguments.
	Shown   string   `json:"shown,omitempty"`
	ShownOf []string `json:"shown_of,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Hash    string   `json:"hash,omitempty"`
	// Filed says that the call is too long for a chat message. In a chat, a file shows all of it, and the
	// call can be approved only once that file has arrived. See FileID.
	Filed bool `json:"filed,omitempty"`
	// Once says that the conversation in which the ask arose is over (/new was given): an approval
	// then covers only this call, no matter what the answer says.
	Once bool `json:"once,omitempty"`
	// For a question: its text, and answers to choose from.
	Question string   `json:"question,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	// At is where the conversation with the agent takes place; Asked are the addresses at which
	// people are asked, which may be elsewhere.
	At    Address   `json:"address"`
	Asked []Address `json:"asked,omitempty"`
	// Approvers are the people, besides owners, who may decide about the call: CHANNEL:USER. If it is nil, those of the
	// channels may.
	Approvers []string  `json:"approvers,omitzero"`
	Made      time.Time `json:"made"`
	Expires   time.Time `json:"expires"`

	State  string    `json:"state"`
	Answer Answer    `json:"answer,omitzero"` // set once the ask is answered
	Ended  time.Time `json:"ended,omitzero"`  // when it left AskOpen
}

// An Answer is a person's answer to an ask.
type Answer struct {
	// Text is Approve, ApproveSession or Deny, or the answer to a question.
	Text string `json:"text"`
	// Reason says why the call is denied.
	Reason string `json:"reason,omitempty"`
	By     Person `json:"by,omitzero"`
	// Cause is the id of the message or request that brought the answer: the same one may
	// be delivered again, and does not count as a second answer.
	Cause string `json:"cause,omitempty"`
	// At is where the answer was said; zero means by a program or on the command line.
	At Address `json:"at,omitzero"`
}

// These are the reasons why an answer is refused.
var (
	// ErrNoAsk says that no ask has that id.
	ErrNoAsk = errors.New("there is no such request")
	// ErrMayNotAnswer says that this person may not answer the ask.
	ErrMayNotAnswer = errors.New("somebody else has to answer")
	// ErrBadAnswer says that the text does not answer this kind of ask, such as a text that neither
	// approves nor denies.
	ErrBadAnswer = errors.New("that is not an answer to this")
	// ErrNotShown says that the call cannot be approved from that chat, because the people who were asked
	// there were not shown all of it.
	ErrNotShown = errors.New("it was not shown in full")
	// ErrDecided says that the ask has ended already.
	ErrDecided = errors.New("it has already been decided")
)

// AnswerRefused reports whether an error means that an answer was refused for good. After
// any other error, it is unknown whether it was accepted.
func AnswerRefused(err error) bool {
	return errors.Is(err, ErrNoAsk) || errors.Is(err, ErrMayNotAnswer) || errors.Is(err, ErrBadAnswer) || errors.Is(err, ErrNotShown) || errors.Is(err, ErrDecided)
}

// MayAnswer reports whether a person may answer the ask. Owners always may. A question may also be
// answered by the person whose turn it is, and an approval by approvers of the channel where the
// conversation is or where people are asked. Somebody who is an approver on all channels may decide
// about any call but their own. If the ask names approvers, these and owners may answer it, and nobody else.
func (a Ask) MayAnswer(who Person) bool {
	switch {
	case who.ID == "":
		return false
	case who.Owner:
		return true
	case a.Kind == AskQuestion:
		return who.ID == a.Person
	case a.Approvers != nil:
		return slices.Contains(a.Approvers, who.ID)
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

// Accepts reports whether this kind of ask can be answered that way.
func (a Ask) Accepts(answer Answer) bool {
	if a.Kind == AskQuestion {
		return answer.Text != ""
	}
	switch answer.Text {
	case Approve, ApproveSession, Deny:
		return true
	}
	return false
}

// FileID returns the id of the message that shows people at an address all of a Filed call, in a file.
func (a Ask) FileID(at Address) string {
	sum := sha256.Sum256([]byte(at.String()))
	return a.ID + "#call/" + hex.EncodeToString(sum[:8])
}

// AskedAt returns the addresses at which people are asked to answer. If these are elsewhere, people in
// the conversation only learn that others are asked.
func (a Ask) AskedAt() []Address {
	if len(a.Asked) > 0 {
		return a.Asked
	}
	return []Address{a.At}
}

// Inbound returns the mail that tells the ask's session how the ask ended. It has the ask's
// id, so publishing it again has no effect.
func (a Ask) Inbound() Inbound {
	return Inbound{
		ID: a.ID, Kind: Decided, From: a.Answer.By, At: a.At, SentAt: a.Ended,
		Decision: &Decision{State: a.State, Text: a.Answer.Text, Reason: a.Answer.Reason},
	}
}

// A Decision says how an ask ended, in the mail that tells its session.
type Decision struct {
	State  string `json:"state"` // AskAnswered or AskExpired
	Text   string `json:"text,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Ending returns a text for people that says how an ask ended, and by whom.
func (a Ask) Ending() string {
	by := a.Answer.By.NameAndID()
	switch {
	case a.State == AskExpired:
		return "expired: nobody answered in time"
	case a.State == AskWithdrawn:
		return "withdrawn: the turn has ended"
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

// PublishAnswer publishes to the ask's session how the ask ended.
func PublishAnswer(ctx context.Context, b Bus, a Ask) error {
	return PublishNotice(ctx, b, a.Session, a.Inbound())
}

// These are the kinds of timers.
const (
	AskTimer      = "ask"      // an ask expires
	ScheduleTimer = "schedule" // a slot of a schedule is due
)

// A Timer is something that is due at a certain time.
type Timer struct {
	Kind string `json:"kind"`
	// ID names what is due: the ask of an AskTimer, the schedule of a ScheduleTimer.
	ID string `json:"id"`
	// Slot distinguishes the times of something that is due more than once; for something due once
	// it is 0.
	Slot int64 `json:"slot,omitempty"`
	// Session and Person name the owners of the timer, so that it can be erased with their data.
	Session string `json:"session,omitempty"`
	Person  string `json:"person,omitempty"`
}

// PublishTimer publishes a timer that becomes due at that time, in a mailbox of its own.
// There is one timer for each id, or for each Slot of an id.
func PublishTimer(ctx context.Context, b Bus, t Timer, due time.Time) error {
	body, err := plainjson.Marshal(t)
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

// DecodeTimer reads a timer that PublishTimer has encoded.
func DecodeTimer(body []byte) (Timer, error) {
	var t Timer
	if err := json.Unmarshal(body, &t); err != nil {
		return Timer{}, fmt.Errorf("decode a timer: %w", err)
	}
	return t, nil
}

// A Button is shown below a message. Pressing it has the same effect as saying the text in Says.
type Button struct {
	Label string `json:"label"`
	Says  string `json:"says"`
}
