// Package channels is how people are reached: what a channel is, and what its side of the bot must remember.
//
// A Channel (channels.go) is one account on one chat platform; abilities.go is what
// only some can do, buttons (buttons.go) and places that people open (welcome.go) among
// it; mention.go is what they heed in groups. Adapters know nothing of retries,
// deduplication, splitting or permissions; they translate. For them there are
// commands.go (what people mean by /stop), reachability.go, lease_check.go, the
// transport under which they call their platform, and channels/backoff. book.go is the
// Book: what was sent, who was admitted, and what people were asked.
//
// channels/gateway publishes what people say; channels/dispatch sends what the bot
// says. Both keep to channels/pacing and show channels/reactions. channels/asks decides
// what people were asked, by their answers and by the time.
package channels

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/channels/markup"
)

// A Channel is one account on one chat platform. channelstest.RunChannel checks what
// is promised here, and in abilities.go, on each adapter with a fake of its platform.
type Channel interface {
	// Receive hands what people say to publish until ctx is done. It tells the
	// platform that a message has arrived only after publish has returned nil;
	// when publish fails it hands the same message again, a little later, and
	// nothing of the same chat before it. Outages are survived with backoff; it
	// returns a *SendError of kind Stop when the platform refuses this account.
	// publish may be called for several chats at once. An ErrUnjudged of publish is
	// about one person: the others of the chat need not wait for them.
	Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error

	// Send delivers one part, rendered in the dialect of Limits and within them,
	// and returns the platform's id for it. Its errors are *SendError; any other
	// error counts as Unknown.
	Send(ctx context.Context, to bus.Address, part Part) (id string, err error)

	// Limits says how the channel is to be talked to.
	Limits() Limits
}

// ErrUnjudged says that nobody can tell now whether the sender of a message may
// talk to the bot, because the platform does not say who they are.
var ErrUnjudged = errors.New("the platform does not tell now who this is")

// A Part is one message as the platform takes it.
type Part struct {
	// Key names the part for good: the message's id and the part's number.
	Key string
	// Text is in the channel's dialect, Plain the same without markup, for
	// platforms that refuse a text whose markup they cannot read.
	Text  string
	Plain string
	// Markdown is the same where the platform shows it better than Text; "" is nothing
	// better. A platform that does not take it shows Text.
	Markdown string
	// ReplyTo is the platform's id of the message to quote; "" quotes none.
	ReplyTo string
	// Under is the platform's id of an earlier message that this belongs to: the
	// part goes into its thread, or quotes it. "" is none.
	Under string
	// File is the name of the file that goes with it; "" is none.
	File string
	// Buttons are shown below the text, by a ButtonShower. An edit without any
	// removes those that there are.
	Buttons []bus.Button
	// Growing says of what only shows an answer while it is being made how far that is;
	// nil of all else. See Limits.Streams.
	Growing *Growth
}

// A Growth is what there is of an answer that is being made.
type Growth struct {
	// Turn is the turn's id: that of the message that it answers, where one began it.
	Turn string
	// Answer counts what a turn says: after a tool has run it begins another.
	Answer int
	Text   string // Markdown, as it was said
	// Step counts the tools that the turn has begun. Doing is what the last of them does, as
	// Markdown, and Title the same as it is; "" is none.
	Step         int
	Doing, Title string
}

// PartKey is the key of the n-th part, counted from 0, of the message with that id.
func PartKey(id string, n int) string { return id + "/" + strconv.Itoa(n) }

// AnsweredTurn is the turn of whose answer a part with that key is one; false if it
// is a part of something else.
func AnsweredTurn(key string) (turn string, ok bool) {
	id := key[:max(0, strings.LastIndexByte(key, '/'))]
	turn = bus.ReplyCause(id)
	if turn == id {
		return "", false
	}
	return turn, true
}

// Limits is what a platform asks of those who send.
type Limits struct {
	Dialect markup.Dialect
	Length  int // of one part, in the dialect's unit
	// EditBytes bounds what takes the place of a text, beside Length: in bytes of
	// UTF-8, as it is sent. 0 is no other bound.
	EditBytes int
	// Markdown says that parts may have Part.Markdown.
	Markdown bool
	// Streams says that parts may have Part.Growing: there are messages that grow. To
	// FindSent one is named so too.
	Streams bool
	Chat    Pace
	Group   Pace // of chats for which IsGroup holds; zero is Chat
	Account Pace // all chats together
	// IsGroup tells which pace a chat has; nil means that there are no groups.
	IsGroup func(chat string) bool
	// DraftEvery is how often an answer may be shown anew in a chat while it is
	// being made, by an Editor; 0 shows none before it is whole.
	DraftEvery time.Duration
	// Drafts is the pace of edits in all chats together. A draft that is begun
	// counts too: its last edit is the answer.
	Drafts Pace
}

// A Pace is how often something may be sent: Burst at once, then one in Every.
// The zero Pace is unlimited.
type Pace struct {
	Every time.Duration
	Burst int
}

// A Fault says what a failed send means.
type Fault string

// The faults.
const (
	// Retry: it was not sent; try again, not before RetryAfter.
	Retry Fault = "retry"
	// Rejected: this message or this place will never work.
	Rejected Fault = "rejected"
	// Stop: the platform refuses this account; nothing will work.
	Stop Fault = "stop"
	// Unknown: nobody can tell whether it was sent.
	Unknown Fault = "unknown"
)

// A SendError is why a platform did not take something.
type SendError struct {
	Fault      Fault
	RetryAfter time.Duration // with Retry: what the platform asks for; 0 where it asks for nothing
	// Limited says, with Retry, that it was a rate limit: it is not counted as
	// an attempt. Account says that the limit is the whole account's.
	Limited bool
	Account bool
	// Setting is, with Stop, which of the channel's settings is at fault, "" being
	// bot_token; Remedy is what the operator is to do, "" being to set another.
	Setting string
	Remedy  string
	// MovedTo is the chat's new id, where the platform says that it has one.
	MovedTo string
	Code    string // the platform's, for logs and metrics: never a text that somebody wrote
	Err     error
}

// Error is the fault, the platform's code and the cause.
func (e *SendError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s (%s)", e.Fault, e.Code)
	}
	return fmt.Sprintf("%s (%s): %v", e.Fault, e.Code, e.Err)
}

// Unwrap is the cause.
func (e *SendError) Unwrap() error { return e.Err }
