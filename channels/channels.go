// Package channels is the contract for reaching people: it defines what a channel is, and what the channel side of
// the bot must remember.
//
// A Channel (channels.go) is one account on one chat platform. abilities.go holds abilities that only some channels
// have; buttons.go, unaddressed.go and welcome.go (for places that people open) hold three more. mention.go says
// which messages in groups are meant for the bot. Adapters only translate; they know nothing about retries,
// deduplication, splitting or permissions. They use commands.go (which recognizes commands such as /stop),
// reachability.go, lease_check.go (the transport for calls to their platform) and channels/backoff. book.go defines
// the Book, which records what was sent, who was admitted, and what people were asked.
//
// channels/gateway publishes what people say; channels/dispatch sends what the bot says. Both use channels/pacing
// and channels/reactions. channels/asks ends asks, by people's answers or when they expire.
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

// A Channel is one account on one chat platform. channelstest.RunChannel checks the promises made here and in
// abilities.go, for each adapter, with a fake of its platform.
type Channel interface {
	// Receive passes what people say to publish until ctx is done. It acknowledges a message to the platform only
	// after publish has returned nil. If publish fails, it passes on the same message again a little later, and no
	// later message of the same chat before it. It survives outages, with backoff; it returns a *SendError with the
	// fault Stop when the platform refuses this account. It may call publish for several chats at once. If publish
	// returns ErrUnjudged, that concerns only the sender: other people's messages in the chat need not wait.
	Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error

	// Send delivers one part and returns the platform's id for it. The part's text is in the dialect that Limits
	// names, and no longer than Limits allow. Its errors are *SendError; any other error counts as Unknown.
	Send(ctx context.Context, to bus.Address, part Part) (id string, err error)

	// Limits returns the platform's limits for sending.
	Limits() Limits
}

// ErrUnjudged says that nobody knows at the moment whether the sender of a message may talk to the bot, because the
// platform can't say who the sender is.
var ErrUnjudged = errors.New("the platform won't say right now who this is")

// A Part is one message in the form in which a platform accepts it; a long text becomes
// several parts.
type Part struct {
	// Key permanently identifies the part: PartKey derives it from the message's id and the
	// part's number.
	Key string
	// Session is the session that wrote the message; "" if none did.
	Session string
	// Text is in the channel's dialect. Plain is the same text without markup, for platforms that refuse a text
	// whose markup they can't parse.
	Text  string
	Plain string
	// Markdown is the same text as Markdown, if the platform shows that better than Text; otherwise "". If the
	// platform refuses it, Text is sent instead.
	Markdown string
	// ReplyTo is the platform's id of the message to quote; "" quotes none.
	ReplyTo string
	// Under is the platform's id of an earlier message to which this part belongs: the part
	// goes into its thread, or quotes it. "" means none.
	Under string
	// File is the name of the file that is sent with the part; "" means none.
	File string
	// Buttons are shown below the text, by a ButtonShower. An edit without buttons removes the existing ones.
	Buttons []bus.Button
	// Growing is set only for a part that shows an unfinished answer, and says how much of the answer exists;
	// otherwise it is nil. See Limits.Streams.
	Growing *Growth
}

// A Growth is the state of an answer that is being written.
type Growth struct {
	// Turn is the id of the turn, which is the id of the message that started it, if a message did.
	Turn string
	// Answer is the number of this text among the turn's texts: after a tool has run, the turn begins a new one.
	Answer int
	Text   string // the answer so far, as Markdown
	// Step counts the tools that the turn has started. Doing describes the last of them as Markdown, and Title
	// describes it without markup; "" if there is none.
	Step         int
	Doing, Title string
}

// PartKey returns the key of a message's part n, counted from 0.
func PartKey(id string, n int) string { return id + "/" + strconv.Itoa(n) }

// AnsweredTurn returns the turn whose answer contains the part with that key; false if the part belongs to
// something else.
func AnsweredTurn(key string) (turn string, ok bool) {
	id := key[:max(0, strings.LastIndexByte(key, '/'))]
	turn = bus.ReplyCause(id)
	if turn == id {
		return "", false
	}
	return turn, true
}

// Limits are a platform's limits for sending.
type Limits struct {
	Dialect markup.Dialect
	Length  int // the longest text of one part, in the dialect's unit
	// EditBytes is an additional limit on a text that replaces another: its size in bytes as UTF-8. 0 means that
	// Length is the only limit.
	EditBytes int
	// Markdown says that the platform accepts Part.Markdown.
	Markdown bool
	// Streams says that the platform accepts Part.Growing, because it has messages that grow while they are
	// written. When a part of such a message is passed to FindSent, its Growing is set too.
	Streams bool
	Chat    Pace
	Group   Pace // the pace in each chat for which IsGroup returns true; zero means that Chat applies
	Account Pace // the pace of all chats together
	// IsGroup reports whether a chat is a group; nil means that there are no groups.
	IsGroup func(chat string) bool
	// DraftEvery is the minimum time between two edits that an Editor makes to show an unfinished answer in a chat;
	// 0 means that answers are shown only once they are finished.
	DraftEvery time.Duration
	// Drafts is the pace of edits in all chats together. Posting a draft counts as an edit too, because the
	// finished answer will edit the draft.
	Drafts Pace
}

// A Pace limits how often something may be sent: Burst at once, then one per period Every. The zero Pace is
// unlimited.
type Pace struct {
	Every time.Duration
	Burst int
}

// A Fault says what a failed send means for further attempts.
type Fault string

// The faults.
const (
	// Retry: the part was not sent; try again, but not before RetryAfter has passed.
	Retry Fault = "retry"
	// Rejected: sending this message, or anything to this place, will never succeed.
	Rejected Fault = "rejected"
	// Stop: the platform refuses this account, so no request will succeed.
	Stop Fault = "stop"
	// Unknown: it is unknown whether the part was sent.
	Unknown Fault = "unknown"
)

// A SendError says why a platform refused a request, or why a request failed.
type SendError struct {
	Fault      Fault
	RetryAfter time.Duration // with Retry: the wait that the platform asks for; 0 if it asks for none
	// RateLimited says, with Retry, that a rate limit was the cause, so the send does not count as an attempt. Account
	// says that it was the limit of the whole account.
	RateLimited bool
	AccountWide bool
	// Setting names, with Stop, the channel's setting that is at fault; "" means bot_token. Remedy says what the
	// operator should do; "" means that the setting needs another value.
	Setting string
	Remedy  string
	// MovedTo is the chat's new id, if the platform says that the chat's id has changed.
	MovedTo string
	Code    string // the platform's code, for logs and metrics: never a text that somebody wrote
	Err     error
}

// Error returns the fault, the platform's code and the cause.
func (e *SendError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s (%s)", e.Fault, e.Code)
	}
	return fmt.Sprintf("%s (%s): %v", e.Fault, e.Code, e.Err)
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
