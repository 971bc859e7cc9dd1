package sessions

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Kind says what an entry records, and so which shape its Data has.
type Kind string

// The blocks: what was said, as the model sees it.
const (
	KindUser       Kind = "user"        // User
	KindThinking   Kind = "thinking"    // Thinking
	KindText       Kind = "text"        // Text
	KindToolUse    Kind = "tool_use"    // ToolUse
	KindToolResult Kind = "tool_result" // ToolResult
	KindSummary    Kind = "summary"     // Summary
	KindNotice     Kind = "notice"      // Notice
)

// The journal: how far a turn has come.
const (
	KindTurnStarted Kind = "turn_started" // TurnStarted
	KindToolStarted Kind = "tool_started" // ToolStarted
	KindUsage       Kind = "usage"        // Usage
	KindResumed     Kind = "resumed"      // no data: a new holder went on with the turn
	KindSuspended   Kind = "suspended"    // no data: its holder shut down in good order
	KindTurnDone    Kind = "turn_done"    // TurnDone
	KindPublished   Kind = "published"    // no data: the turn's outbound messages are on the bus
	KindCommand     Kind = "command"      // Command: a command was carried out
	// Releases from before these leave a session alone that has one.
	KindTurnParked   Kind = "turn_parked"   // TurnParked: the turn waits for people, and nobody works on it
	KindAskEnded     Kind = "ask_ended"     // AskEnded: one of the things that it waits for
	KindTurnUnparked Kind = "turn_unparked" // no data: nothing is waited for any more, the turn goes on
	KindPicture      Kind = "picture"       // Picture: a tool's result shows it to the model
	KindAttached     Kind = "attached"      // Attached: a file came with a message
	KindFetched      Kind = "fetched"       // Fetched: it is in the workspace now, or never will be
)

// An Entry is one record of a session's log.
type Entry struct {
	// N is its number in the log, from 1.
	N int64 `json:"n"`
	// Turn is the turn that it belongs to; a command and a notice outside of
	// any have their cause here.
	Turn string `json:"turn"`
	Kind Kind   `json:"kind"`
	// At is when it was appended. Two entries that differ only in At are the same.
	At time.Time `json:"at"`
	// Cause is the id of the message that brought it, if one did. It is unique
	// in a session.
	Cause string `json:"cause,omitempty"`
	// Person is who said it, or on whose behalf it was spent: CHANNEL:USER.
	Person string `json:"person,omitempty"`
	// Call is the id of the tool call that it belongs to.
	Call string `json:"call,omitempty"`
	// Data is the kind's own part, as JSON.
	Data json.RawMessage `json:"data,omitempty"`
}

// NewEntry makes an entry of a kind's data; nil is for kinds without any.
func NewEntry(turn string, kind Kind, data any) (Entry, error) {
	e := Entry{Turn: turn, Kind: kind}
	if data == nil {
		return e, nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return Entry{}, fmt.Errorf("encode %s entry: %w", kind, err)
	}
	e.Data = raw
	return e, nil
}

// Decode reads an entry's data as T, the shape of its kind.
func Decode[T any](e Entry) (T, error) {
	var v T
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return v, fmt.Errorf("decode %s entry %d: %w", e.Kind, e.N, err)
	}
	return v, nil
}

// User is what a person said. Its entry has a Cause and a Person.
type User struct {
	Name   string    `json:"name,omitempty"` // what the platform calls them
	Text   string    `json:"text"`
	Sent   time.Time `json:"sent,omitzero"`
	Quotes []Quote   `json:"quotes,omitempty"`
	// Schedule is the schedule of theirs that says it; "" if they have just said it.
	Schedule string `json:"schedule,omitempty"`
	// Deleted says that the person has deleted it, and that nothing of it is left.
	Deleted bool `json:"deleted,omitempty"`
}

// Quote is what came with a message and was written by somebody else, or at
// another time. Kind, and what stands in the other fields, is as in bus.Quote.
type Quote struct {
	Kind   string    `json:"kind"`
	Person string    `json:"person,omitempty"` // CHANNEL:USER
	Name   string    `json:"name,omitempty"`
	Chat   string    `json:"chat,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Text   string    `json:"text"`
}

// Thinking is what the model thought.
type Thinking struct {
	Text string `json:"text,omitempty"`
	// Provider is what the provider wants back word for word: signatures,
	// encrypted reasoning.
	Provider json.RawMessage `json:"provider,omitempty"`
}

// Text is what the model said.
type Text struct {
	Text string `json:"text"`
}

// ToolUse is a tool call that the model asked for. Its entry has a Call, which
// is ours.
type ToolUse struct {
	Name string `json:"name"`
	// Args is what the model wrote, a JSON object wherever it can be read as one.
	Args json.RawMessage `json:"args"`
	// ProviderID is the provider's own id of the call.
	ProviderID string          `json:"provider_id,omitempty"`
	Provider   json.RawMessage `json:"provider,omitempty"`
}

// ToolResult is what came of a call, as the model sees it. Its entry has a Call.
type ToolResult struct {
	Content json.RawMessage `json:"content"` // truncated already
	Code    string          `json:"code,omitempty"`
	// Untrusted says that strangers may have written what it holds.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Picture is a picture that the model is shown behind the results of a step. Its entry
// has the Call that shows it. The log refers to the workspace and holds no bytes.
type Picture struct {
	Path string `json:"path"` // of what it shows, as the model knows it
	View string `json:"view"` // the file with the picture as it is shown
	Hash string `json:"hash"` // of the content of that file
	Type string `json:"type"` // MIME type
}

// Attached is a file that came with a message; it is written beside that. Its entry has
// the Person who sent it. What it says of the file is the sender's word.
type Attached struct {
	Message string `json:"message"` // the Cause of what was said
	Kind    string `json:"kind"`    // as in bus.Attachment, like the rest
	Name    string `json:"name,omitempty"`
	Type    string `json:"type,omitempty"`
	Size    int64  `json:"size,omitempty"`
	Ref     string `json:"ref"`
}

// Fetched is what became of a file that came with a message. Either Path is set, or
// Problem. Its entry has the Person who sent it.
type Fetched struct {
	Attached int64  `json:"attached"`       // the number of its entry
	Message  string `json:"message"`        // that it came with
	Path     string `json:"path,omitempty"` // in the workspace
	Type     string `json:"type,omitempty"` // as its content says
	Size     int64  `json:"size,omitempty"`
	Hash     string `json:"hash,omitempty"` // SHA-256 of its content
	// Problem says why it cannot be had, for people and models to read.
	Problem string `json:"problem,omitempty"`
	// Picture is what the model is shown of it.
	Picture *Picture `json:"picture,omitempty"`
	// Words are what is said in a voice message, and Unheard why nobody knows that.
	Words   string `json:"words,omitempty"`
	Unheard string `json:"unheard,omitempty"`
	// Untrusted says that the words are not those of the person who sent it.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Summary stands for everything up to entry Covers. With no text the past is
// simply gone from the model's sight: /new.
type Summary struct {
	Covers int64  `json:"covers"`
	Text   string `json:"text"`
	// Untrusted says that strangers may have written some of what it sums up.
	Untrusted bool `json:"untrusted,omitempty"`
	// Turn is the turn that goes on though it covers the beginning of it. Releases from
	// before it would take that turn for one that /new has left behind.
	Turn string `json:"turn,omitempty"`
	// Keep are the numbers of entries that the model sees word for word though they are
	// covered: what people have said, and the files that came with it.
	Keep []int64 `json:"keep,omitempty"`
	// Cleared is up to which entry results of calls are shown as emptied.
	Cleared int64 `json:"cleared,omitempty"`
}

// Hides tells whether it covers an entry and does not keep it.
func (s Summary) Hides(n int64) bool { return n <= s.Covers && !slices.Contains(s.Keep, n) }

// Notice is what the system says: to the model, and where it ends a turn also
// to the person.
type Notice struct {
	Code   string  `json:"code"`
	Text   string  `json:"text"`
	Quotes []Quote `json:"quotes,omitempty"`
	// Of is the cause of the message that it is about.
	Of string `json:"of,omitempty"`
}

// NoticeUnfetched is the code of a notice of a file that came with the message it is about
// and was not fetched, as a process of an older release would not know what that is.
const NoticeUnfetched = "unfetched"

// TurnStarted begins a turn. Its entry has the Person who asked.
type TurnStarted struct {
	// Route is where the reply goes, as the agent encoded it.
	Route json.RawMessage `json:"route"`
	Agent string          `json:"agent,omitempty"`
}

// ToolStarted is written before a call runs. Its entry has a Call.
type ToolStarted struct {
	Attempt int `json:"attempt"` // from 1
	// Args are the arguments that it runs with where these are not the model's own,
	// and Note is what the model is told of the difference.
	Args json.RawMessage `json:"args,omitempty"`
	Note string          `json:"note,omitempty"`
}

// Usage is what one model call has cost. Its entry has the Person who pays.
type Usage struct {
	Model     string `json:"model"`
	Agent     string `json:"agent,omitempty"`
	Input     int64  `json:"input"`            // tokens of the prompt, cached ones included
	Cached    int64  `json:"cached,omitempty"` // of them
	Output    int64  `json:"output"`
	Reasoning int64  `json:"reasoning,omitempty"` // of Output
	Estimated bool   `json:"estimated,omitempty"` // the provider reported none
	// Cost is what the call has cost, in micro-dollars; nil where that is not known.
	Cost *int64 `json:"microdollars,omitempty"`
}

// The ways in which a turn ends.
const (
	TurnCompleted = "done"
	TurnFailed    = "failed"
	TurnCancelled = "cancelled"
)

// TurnDone ends a turn.
type TurnDone struct {
	State string `json:"state"`
	// Outbound is what the turn publishes at its end, id and text; the same
	// after a crash.
	Outbound []Reply `json:"outbound,omitempty"`
}

// Reply is one outbound message of a turn or command.
type Reply struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Files are the files that go with it, as the agent encoded them. Releases from before
	// these would send the text alone.
	Files json.RawMessage `json:"files,omitempty"`
}

// Command is a command that was carried out. Its entry has a Cause and a Person.
type Command struct {
	Name  string          `json:"name"`
	Route json.RawMessage `json:"route"`
	Reply Reply           `json:"reply"`
}

// TurnParked is what a turn waits for, all that one step has asked for.
type TurnParked struct {
	Asks []Ask `json:"asks"`
}

// Ask is one thing that a parked turn waits for: what somebody has to say about a
// call. The kinds are those of bus.Ask.
type Ask struct {
	ID   string `json:"id"`
	Call string `json:"call"`
	Kind string `json:"kind"`
	// Args, if set, are the arguments to approve, where these are not the model's own.
	Args json.RawMessage `json:"args,omitempty"`
	Hash string          `json:"hash,omitempty"` // of what is to be approved
	// Reason is why a call has to be approved.
	Reason   string   `json:"reason,omitempty"`
	Question string   `json:"question,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	// Places are the addresses where people are asked, as the agent encoded them.
	Places  json.RawMessage `json:"places,omitempty"`
	Expires time.Time       `json:"expires"`
}

// AskEnded is how an ask ended. Its entry has a Call, a Cause, and the Person who
// answered, if somebody did.
type AskEnded struct {
	Ask    string `json:"ask"`
	State  string `json:"state"`            // as that of bus.Ask
	Answer string `json:"answer,omitempty"` // what was said
	Reason string `json:"reason,omitempty"`
	Name   string `json:"name,omitempty"` // what the platform calls the person
}
