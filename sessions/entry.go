package sessions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley/tools/plainjson"
)

// A Kind says what an entry records, and so the form of its Data.
type Kind string

// The kinds of blocks, which contain what was said, as the model sees it. Each line names the type of the
// entry's data.
const (
	KindUser       Kind = "user"        // User
	KindThinking   Kind = "thinking"    // Thinking
	KindText       Kind = "text"        // Text
	KindToolUse    Kind = "tool_use"    // ToolUse
	KindToolResult Kind = "tool_result" // ToolResult
	KindSummary    Kind = "summary"     // Summary
	KindNotice     Kind = "notice"      // Notice
)

// The kinds of the journal, which record the progress of a turn. Each line names the type of
// the entry's data.
const (
	KindTurnStarted Kind = "turn_started" // TurnStarted
	KindToolStarted Kind = "tool_started" // ToolStarted
	KindUsage       Kind = "usage"        // Usage
	KindResumed     Kind = "resumed"      // no data: another process, or this one after a restart, continued the turn
	KindSuspended   Kind = "suspended"    // no data: the process that worked on the turn stopped in an orderly way, or no model answered
	KindTurnDone    Kind = "turn_done"    // TurnDone
	KindPublished   Kind = "published"    // no data: the turn's outbound messages are on the bus
	KindCommand     Kind = "command"      // Command: a command was carried out
	// Releases that do not know the following kinds do not touch a session that has one.
	KindTurnParked   Kind = "turn_parked"   // TurnParked: the turn waits for people, and no process works on it
	KindAskEnded     Kind = "ask_ended"     // AskEnded: one of the asks that a parked turn waits for has ended
	KindTurnUnparked Kind = "turn_unparked" // no data: all asks have ended, and the turn continues
	KindPicture      Kind = "picture"       // Picture: a tool's result shows it to the model
	KindAttached     Kind = "attached"      // Attached: a file came with a message
	KindFetched      Kind = "fetched"       // Fetched: an attached file is in the workspace now, or never will be
	KindTasked       Kind = "tasked"        // Tasked: a message is the task of a sub-agent, whose session this is
	KindDelegated    Kind = "delegated"     // Delegated: a call has handed a task to a sub-agent
)

// IsProgressOnly reports whether entries of this kind only record the progress of a turn. Once the turn is
// over, a process that continues the session does not need them, except for those that [Peeker] names,
// but it still needs to know where the turn begins and ends. If you add a field to the data of such a
// kind, it is lost with the entries, unless Peeker names them.
func (k Kind) IsProgressOnly() bool {
	switch k {
	case KindToolStarted, KindUsage, KindPublished, KindResumed, KindSuspended, KindTurnParked, KindTurnUnparked:
		return true
	}
	return false
}

// An Entry is one record of a session's log.
type Entry struct {
	// N is the entry's number in the log, from 1.
	N int64 `json:"n"`
	// Turn is the id of the turn that the entry belongs to. For a command or a notice outside of
	// any turn it is the id in Cause.
	Turn string `json:"turn"`
	Kind Kind   `json:"kind"`
	// At is when the entry was appended. Two entries that differ only in At are the same.
	At time.Time `json:"at"`
	// Cause is the id of the message that brought the entry, if a message did. It is
	// unique in a session.
	Cause string `json:"cause,omitempty"`
	// Person is who said it, or the person on whose behalf the tokens were spent: CHANNEL:USER.
	Person string `json:"person,omitempty"`
	// Call is the id of the tool call that the entry belongs to; "" if it belongs to none.
	Call string `json:"call,omitempty"`
	// Data contains the fields of the entry's kind, as JSON.
	Data json.RawMessage `json:"data,omitempty"`
	// encoded is the value from which NewEntry made Data, so that Decode need not read it again.
	// It is set only for the kinds that every turn has, and only if Decode would return the same
	// from Data.
	encoded any
}

// NewEntry makes an entry of that kind with that data; data is nil for kinds without data.
func NewEntry(turn string, kind Kind, data any) (Entry, error) {
	e := Entry{Turn: turn, Kind: kind}
	if data == nil {
		return e, nil
	}
	raw, err := plainjson.Marshal(data)
	if err != nil {
		return Entry{}, fmt.Errorf("encode %s entry: %w", kind, err)
	}
	e.Data = raw
	switch kind {
	case KindTurnStarted, KindUser, KindUsage, KindTurnDone: // every turn has these
		if !bytes.Contains(raw, []byte(`\ufffd`)) { // JSON's replacement for bytes that are not UTF-8
			e.encoded = data
		}
	}
	return e, nil
}

// Decode decodes an entry's data into T, the type that belongs to its kind. JSON within the data,
// such as the arguments of a call, is returned without the escapes that older releases wrote; see
// package plainjson.
func Decode[T any](e Entry) (T, error) {
	if v, ok := e.encoded.(T); ok {
		return v, nil
	}
	var v T
	if err := json.Unmarshal(plainjson.Unescape(e.Data), &v); err != nil {
		return v, fmt.Errorf("decode %s entry %d: %w", e.Kind, e.N, err)
	}
	return v, nil
}

// DecodeAny decodes an entry's data into the type that belongs to its kind; nil for kinds without data. known
// is false for a kind that this release does not know.
func DecodeAny(e Entry) (data any, known bool, err error) {
	switch e.Kind {
	case KindUser:
		data, err = Decode[User](e)
	case KindThinking:
		data, err = Decode[Thinking](e)
	case KindText:
		data, err = Decode[Text](e)
	case KindToolUse:
		data, err = Decode[ToolUse](e)
	case KindToolResult:
		data, err = Decode[ToolResult](e)
	case KindSummary:
		data, err = Decode[Summary](e)
	case KindNotice:
		data, err = Decode[Notice](e)
	case KindTurnStarted:
		data, err = Decode[TurnStarted](e)
	case KindToolStarted:
		data, err = Decode[ToolStarted](e)
	case KindUsage:
		data, err = Decode[Usage](e)
	case KindTurnDone:
		data, err = Decode[TurnDone](e)
	case KindCommand:
		data, err = Decode[Command](e)
	case KindTurnParked:
		data, err = Decode[TurnParked](e)
	case KindAskEnded:
		data, err = Decode[AskEnded](e)
	case KindPicture:
		data, err = Decode[Picture](e)
	case KindAttached:
		data, err = Decode[Attached](e)
	case KindFetched:
		data, err = Decode[Fetched](e)
	case KindTasked:
		data, err = Decode[Tasked](e)
	case KindDelegated:
		data, err = Decode[Delegated](e)
	case KindResumed, KindSuspended, KindPublished, KindTurnUnparked: // no data
	default:
		return nil, false, nil
	}
	return data, true, err
}

// User is what a person said. Its entry has a Cause (the message's id) and a Person.
type User struct {
	Name   string    `json:"name,omitempty"` // what the platform calls the person
	Text   string    `json:"text"`
	Sent   time.Time `json:"sent,omitzero"`
	Quotes []Quote   `json:"quotes,omitempty"`
	Chat   string    `json:"chat,omitempty"` // what the platform calls the group in which it was said
	// Schedule is the id of the person's schedule that sent this; "" if the person said it.
	Schedule string `json:"schedule,omitempty"`
	// Untrusted says that a model wrote the text on the person's behalf, after it had read
	// something that strangers may have written.
	Untrusted bool `json:"untrusted,omitempty"`
	// Deleted says that the person has deleted the message and that none of its content is
	// left.
	Deleted bool `json:"deleted,omitempty"`
}

// Quote is a text that came with a message but was written by somebody else, or at another time. Kind and
// the other fields have the same meaning as in bus.Quote.
type Quote struct {
	Kind   string    `json:"kind"`
	Person string    `json:"person,omitempty"` // CHANNEL:USER
	Name   string    `json:"name,omitempty"`
	Chat   string    `json:"chat,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Text   string    `json:"text"`
	Own    bool      `json:"own,omitempty"`
	// Operator says that an operator has said it here in person.
	Operator bool `json:"operator,omitempty"`
}

// The kinds of quotes whose author is known; the same as in package bus.
const (
	quoteTold   = "told"
	quoteEdited = "edited"
)

// MayBeFromStrangers reports whether strangers may have written the quote, which came with an entry of this
// kind and person. Own counts only for what an agent has passed on: then a person whom the bot knows said
// it, who could have said it in this session.
func (q Quote) MayBeFromStrangers(kind Kind, person string) bool {
	if q.Kind == quoteTold && q.Own {
		return false
	}
	isTheirs := (kind == KindUser || q.Kind == quoteEdited) && q.Person != "" && q.Person == person
	return !isTheirs
}

// Thinking is the model's reasoning before its answer.
type Thinking struct {
	Text string `json:"text,omitempty"`
	// Provider is what the model's provider wants to get back word for word with the next request:
	// signatures, encrypted reasoning.
	Provider json.RawMessage `json:"provider,omitempty"`
}

// Text is a text that the model has written.
type Text struct {
	Text string `json:"text"`
	// Provider is what the model's provider wants to get back word for word with the next request:
	// whether the text is an answer or a remark before one.
	Provider json.RawMessage `json:"provider,omitempty"`
}

// ToolUse is a tool call that the model asked for. Its entry's Call is the id that Parley
// gave it.
type ToolUse struct {
	Name string `json:"name"`
	// Args are the arguments as the model wrote them, a JSON object wherever they can be
	// read as one.
	Args json.RawMessage `json:"args"`
	// ProviderID is the model provider's own id of the call.
	ProviderID string          `json:"provider_id,omitempty"`
	Provider   json.RawMessage `json:"provider,omitempty"`
}

// ToolResult is the result of a call. Its entry has a Call. Result returns it in the form in which programs read it.
type ToolResult struct {
	Content json.RawMessage `json:"content"` // the result as the model sees it, already cut if it was long
	Code    string          `json:"code,omitempty"`
	// Untrusted says that strangers may have written some of the result.
	Untrusted bool `json:"untrusted,omitempty"`
	// IsPlaceholder says that Content only replaces a result that the model saw in its turn and that is not
	// stored.
	IsPlaceholder bool `json:"fleeting,omitempty"`
	// Allowances are those of the call's ToolStarted, which is not always read with the log; see Peeker.
	Allowances []string `json:"spends,omitempty"`
	// Field is the field of Content that has the main text; "" if none has. MIME is the type of that text, or of a
	// Content that is a text; "" for plain text.
	Field string `json:"field,omitempty"`
	MIME  string `json:"mime,omitempty"`
	// Bytes is the length of the result's text, as Result returns it, before Content was cut; 0 if it is not cut.
	Bytes int64 `json:"bytes,omitempty"`
	// AnswerFiles are paths of files in the workspace that go with the turn's answer. A process of an older release ignores
	// them: if it ends the turn, the answer goes without them.
	AnswerFiles []string `json:"enclosed,omitempty"`
}

// Picture is a picture that the model is shown after the results of a step. Its entry has the Call that
// shows it. The log only names files in the workspace; their bytes are not in it.
type Picture struct {
	Path string `json:"path"` // the path of the file that the picture shows, as the model knows it
	View string `json:"view"` // the path of the file with the picture in the form that the model is shown, such as a smaller copy
	Hash string `json:"hash"` // the hash of that file's content
	Type string `json:"type"` // MIME type
}

// Attached is a file that came with a message. Its entry is written next to that message's
// and has the Person who sent it. The fields are the sender's claims about the file.
type Attached struct {
	Message string `json:"message"` // the id of the message, which is the Cause of its own entry
	Kind    string `json:"kind"`    // the kind; this and the following fields are as in bus.Attachment
	Name    string `json:"name,omitempty"`
	Type    string `json:"type,omitempty"`
	Size    int64  `json:"size,omitempty"`
	Ref     string `json:"ref"`
	Quoted  bool   `json:"quoted,omitempty"`
}

// Fetched says what became of a file that came with a message: either Path or Problem is set. Its entry
// has the Person who sent the file.
type Fetched struct {
	Attached int64  `json:"attached"`       // the number of the file's Attached entry
	Message  string `json:"message"`        // the id of the message that the file came with
	Path     string `json:"path,omitempty"` // where the file is in the workspace
	Type     string `json:"type,omitempty"` // the MIME type, judging by the content
	Size     int64  `json:"size,omitempty"`
	Hash     string `json:"hash,omitempty"` // SHA-256 of its content
	// Problem says why the file cannot be fetched, in words for people and models.
	Problem string `json:"problem,omitempty"`
	// Picture is how the model is shown the file, if the file is a picture; nil otherwise.
	Picture *Picture `json:"picture,omitempty"`
	// SpokenWords are the words spoken in a voice message; UnheardReason says why they are unknown.
	SpokenWords   string `json:"words,omitempty"`
	UnheardReason string `json:"unheard,omitempty"`
	// Untrusted says that the words were not, or not certainly, spoken by the person who sent the
	// file.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Summary replaces all entries up to number Covers in what the model sees. With an empty Text, the model
// sees nothing of the past except episodes. This is how /new works.
type Summary struct {
	Covers int64  `json:"covers"`
	Text   string `json:"text"`
	// Untrusted says that strangers may have written some of the text from which the summary was made.
	Untrusted bool `json:"untrusted,omitempty"`
	// Turn is the id of the unfinished turn that continues although the summary covers its
	// beginning; "" if there is none. Releases without this field would treat it as a turn that
	// /new has left behind.
	Turn string `json:"turn,omitempty"`
	// Keep lists the numbers of the covered entries that the model still sees: people's messages and the
	// files that came with them, word for word; the newest marks of the memory; and the episodes of the
	// last days.
	Keep []int64 `json:"keep,omitempty"`
	// Cleared is the number of an entry: in place of the results of tool calls up to this entry, the
	// model sees empty ones.
	Cleared int64 `json:"cleared,omitempty"`
	// Allowances is what the covered calls have used up; see ToolStarted.Allowances.
	Allowances []string `json:"spent,omitempty"`
}

// BeginsAnew reports whether the summary begins a new conversation, as /new does: it hides what was said,
// and does not replace it by a text. It keeps only episodes.
func (s Summary) BeginsAnew() bool { return s.Text == "" && s.Turn == "" && s.Cleared == 0 }

// Hides reports whether the model no longer sees entry n word for word, because the summary covers
// it and does not keep it.
func (s Summary) Hides(n int64) bool { return n <= s.Covers && !slices.Contains(s.Keep, n) }

// Notice is a message from the system to the model. If it ends a turn, the person gets it too.
type Notice struct {
	Code   string  `json:"code"`
	Text   string  `json:"text"`
	Quotes []Quote `json:"quotes,omitempty"`
	// MessageID is the id of the message that the notice refers to.
	MessageID string `json:"of,omitempty"`
	// UnreadReason says, for the notice NoticeUnread, why the answer was not read aloud: a clause for people.
	UnreadReason string `json:"why,omitempty"`
	// Memory says, for the notice NoticeMemory, how much of each memory the model is shown up to and
	// including this notice.
	Memory []MemoryMark `json:"memory,omitempty"`
	// Episode, for the notice NoticeEpisode, describes the turn; nil if the message that asked was
	// deleted.
	Episode *Episode `json:"episode,omitempty"`
}

// MarksMemory reports whether an entry only marks where the model is shown what is remembered. People are
// not shown such an entry.
func (e Entry) MarksMemory() bool {
	if e.Kind != KindNotice {
		return false
	}
	n, err := Decode[Notice](e)
	return err == nil && n.Code == NoticeMemory
}

// NoticeMemory is the code of a notice that marks the place where the model is shown what is remembered,
// or what was added to that. Releases without the field Memory show the text.
const NoticeMemory = "memory"

// A MemoryMark says how much of a memory is shown up to its place. The log does not contain the words, so
// no log contains what is forgotten: the model is shown the words that are remembered now.
type MemoryMark struct {
	Scope string `json:"scope"`
	Bytes int    `json:"bytes"`
	Sum   uint32 `json:"sum"` // a checksum of these bytes
}

// NoticeOperator is the code of a notice about what an operator has said in the conversation in person:
// MessageID is the id of the message, and the first of the Quotes contains the words.
const NoticeOperator = "operator"

// NoticeTold is the code of a notice about a message that the agent posted in this conversation on behalf of
// somebody in another: the first of the Quotes contains the words.
const NoticeTold = "told"

// NoticeUnfetched is the code of a notice about a file that came with the message MessageID and was
// not fetched, because a process of an older release would not understand the entry.
const NoticeUnfetched = "unfetched"

// NoticeUnread is the code of a notice whose UnreadReason says why an answer was not read aloud, though the agent wanted that.
const NoticeUnread = "aloud"

// TurnStarted is the first entry of a turn. It has the Person who asked.
type TurnStarted struct {
	// Route is where the reply goes, encoded by package agent.
	Route json.RawMessage `json:"route"`
	Agent string          `json:"agent,omitempty"`
}

// ToolStarted is written before a call runs. Its entry has a Call.
type ToolStarted struct {
	Attempt int `json:"attempt"` // from 1
	// Args are the arguments that the call runs with, if they differ from the model's own; Note
	// then tells the model about the difference.
	Args json.RawMessage `json:"args,omitempty"`
	Note string          `json:"note,omitempty"`
	// Allowances is what the call uses up of the allowance that the guard gives a conversation
	// without approval.
	Allowances []string `json:"spends,omitempty"`
	// IsPure says that the call changes nothing, so that its outcome doesn't matter if the turn ends meanwhile. Entries of
	// older releases don't say it.
	IsPure bool `json:"pure,omitempty"`
}

// Usage records the tokens and the cost of one model call. Its entry has the Person who
// pays.
type Usage struct {
	Model     string `json:"model"`
	Agent     string `json:"agent,omitempty"`
	Input     int64  `json:"input"`            // tokens of the prompt, including the cached ones
	Cached    int64  `json:"cached,omitempty"` // part of Input: tokens that the provider had in its cache
	Output    int64  `json:"output"`
	Reasoning int64  `json:"reasoning,omitempty"` // part of Output: tokens of the model's reasoning
	Estimated bool   `json:"estimated,omitempty"` // the provider reported no tokens, so they are estimated
	// Cost is the price of the call in micro-dollars; nil if it is not known.
	Cost *int64 `json:"microdollars,omitempty"`
	// FirstMS is how many milliseconds after its beginning the turn had the first text of this answer,
	// without the time it waited for people; 0 if the answer has no text, and in entries from older
	// releases.
	FirstMS int64 `json:"first_ms,omitempty"`
}

// The ways in which a turn ends.
const (
	TurnCompleted = "done"
	TurnFailed    = "failed"
	TurnCancelled = "cancelled"
)

// CodeGaveUp is the code of a turn that was interrupted too often.
const CodeGaveUp = "gave_up"

// TurnDone is the entry that ends a turn.
type TurnDone struct {
	State string `json:"state"`
	// Outbound are the messages that the turn publishes at its end, with ids and texts, so that
	// after a crash the same ones are published again.
	Outbound []Reply `json:"outbound,omitempty"`
	// Aloud says that the answer is also read aloud, and sent as a recording after the text. A release without this field
	// sends the text alone.
	Aloud bool `json:"aloud,omitempty"`
	// Code says why the turn ended early; empty if it did not, or if the entry is from a release without
	// codes.
	Code string `json:"code,omitempty"`
	// Refused says that a rule, which Code names, kept the turn from doing anything.
	Refused bool `json:"refused,omitempty"`
	// Figures are the counts for this turn; nil in entries from older releases, and if there is nothing
	// to count except the turn.
	Figures *TurnFigures `json:"figures,omitempty"`
}

// TurnFigures are what is counted for a turn in addition to how it ended. They name no person and contain
// no text.
type TurnFigures struct {
	TookMS  int64        `json:"took_ms"`            // from its beginning, without the time it waited for people
	FirstMS int64        `json:"first_ms,omitempty"` // until the first text of an answer; 0 if there was none
	Task    bool         `json:"task,omitempty"`     // whether it is a turn of a sub-agent, which answers an agent
	Calls   []CallsCount `json:"calls,omitempty"`
}

// CallsCount says how many calls of a tool had the same outcome in a turn.
type CallsCount struct {
	Tool    string `json:"tool"` // an existing tool, or OtherTool
	Outcome string `json:"outcome"`
	N       int    `json:"n"`
}

// OtherTool is used in place of the name of any tool that a model has called but that does not exist.
const OtherTool = "other"

// The values of CallsCount.Outcome.
const (
	CallOK        = "ok"
	CallFailed    = "failed"
	CallDenied    = "denied" // by a rule, a rate or a person
	CallTimeout   = "timeout"
	CallCancelled = "cancelled"
	CallUnknown   = "unknown" // it was interrupted, and may have taken effect
)

// Reply is one outbound message of a turn or command.
type Reply struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Files are the files that go with the message, encoded by package agent. Releases without this field
	// would send the text alone.
	Files json.RawMessage `json:"files,omitempty"`
}

// Command is a command that was carried out. Its entry has a Cause and a Person.
type Command struct {
	Name  string          `json:"name"`
	Route json.RawMessage `json:"route"`
	Reply Reply           `json:"reply"`
}

// TurnParked lists what a turn waits for: all asks of one step.
type TurnParked struct {
	Asks []Ask `json:"asks"`
}

// The kinds of an Ask that waits for a sub-agent, or for a node that is away, instead of people.
const (
	AskTask = "task"
	AskNode = "node"
)

// WaitsForSubAgents reports whether the turn waits for sub-agents only.
func (p TurnParked) WaitsForSubAgents() bool {
	return len(p.Asks) > 0 && !slices.ContainsFunc(p.Asks, func(a Ask) bool { return a.Kind != AskTask })
}

// WaitsForPeople reports whether the turn waits for people, and not only for sub-agents or nodes.
func (p TurnParked) WaitsForPeople() bool {
	return len(p.Asks) == 0 || slices.ContainsFunc(p.Asks, func(a Ask) bool { return a.Kind != AskTask && a.Kind != AskNode })
}

// Ask is one thing that a parked turn waits for: somebody's approval of a call, an answer, a
// sub-agent's report, or a node. The kinds are those of bus.Ask, AskTask and AskNode.
type Ask struct {
	ID   string `json:"id"`
	Call string `json:"call"`
	Kind string `json:"kind"`
	// Args are the arguments to approve, if these differ from the model's own; nil otherwise.
	Args json.RawMessage `json:"args,omitempty"`
	Hash string          `json:"hash,omitempty"` // a hash of everything that needs approval
	// Shown is what people are shown instead of the arguments that ShownOf names; if it is "", they are
	// shown all arguments.
	Shown   string   `json:"shown,omitempty"`
	ShownOf []string `json:"shown_of,omitempty"`
	// Reason says why the call has to be approved.
	Reason   string   `json:"reason,omitempty"`
	Question string   `json:"question,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	// Places are the addresses where people are asked, encoded by package agent.
	Places json.RawMessage `json:"places,omitempty"`
	// Approvers are the people, besides owners, who may approve the call; nil means those of the channels.
	Approvers []string `json:"approvers,omitzero"`
	// Node is the node that is waited for, and Since when it was lost; zero if it has never been there.
	Node  string    `json:"node,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// AnyOfNodes are all nodes that are waited for, Node included, if the first of several that is back will do.
	AnyOfNodes []string  `json:"one_of,omitempty"`
	Expires    time.Time `json:"expires"`
}

// A NodeWait says that a turn waits for a node that is away. It is kept where every process finds it.
type NodeWait struct {
	ID         string // that of the Ask
	Node       string
	AnyOfNodes []string // see Ask.AnyOfNodes; DueWaits leaves it out
	Session    string   // the session's key
	Person     string   // CHANNEL:USER
	// Until is when the turn goes on even if the node is still away.
	Until time.Time
}

// AskEnded records how an ask ended. Its entry has a Call, a Cause, and the Person who
// answered, if somebody did.
type AskEnded struct {
	Ask    string `json:"ask"`
	State  string `json:"state"`            // how it ended: a value of bus.Ask.State
	Answer string `json:"answer,omitempty"` // what the person said
	// Question is what the agent asked, with the choices that it gave; "" if the ask was an approval.
	Question string `json:"question,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Name     string `json:"name,omitempty"` // what the platform calls the person
}

// Tasked says that a sub-agent works in this session, on a task that another agent has handed to it. Its
// entry comes before the message's.
type Tasked struct {
	ID     string `json:"id"`     // the task's id
	Parent string `json:"parent"` // the key of the session that has handed it out
}

// Delegated says that a call has handed a task to a sub-agent, for which the call's turn waits. Its entry
// has the Call, which counts as begun from then on.
type Delegated struct {
	ID      string `json:"id"` // the task's id
	Agent   string `json:"agent"`
	Session string `json:"session"` // the key of the sub-agent's session
	// Allowances has the same meaning as in ToolStarted.
	Allowances []string `json:"spends,omitempty"`
}
