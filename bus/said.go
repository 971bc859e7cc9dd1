package bus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/tools/plainjson"
)

// An Address is the place of a conversation.
type Address struct {
	Channel string `json:"channel"`          // the configured name of the adapter
	Chat    string `json:"chat"`             // the platform's id of the chat
	Thread  string `json:"thread,omitempty"` // the platform's id of the thread, if any
}

// SubAgents is the channel in the addresses of sub-agents' sessions. Nobody reads anything
// there, and no channel has this name.
const SubAgents = "agent"

// String returns the address as people write it: CHANNEL:CHAT or CHANNEL:CHAT/THREAD.
func (a Address) String() string {
	if a.Thread == "" {
		return a.Channel + ":" + a.Chat
	}
	return a.Channel + ":" + a.Chat + "/" + a.Thread
}

// ParseAddress reads an address in the form of String. It refuses control characters, which
// no platform's id has and which would reach terminals and headers.
func ParseAddress(s string) (Address, error) {
	channel, rest, ok := strings.Cut(s, ":")
	chat, thread, _ := strings.Cut(rest, "/")
	if !ok || channel == "" || chat == "" {
		return Address{}, fmt.Errorf("address %q: want CHANNEL:CHAT or CHANNEL:CHAT/THREAD", s)
	}
	if !IsClean(s) {
		return Address{}, fmt.Errorf("address %q: has characters that cannot be seen", s)
	}
	return Address{Channel: channel, Chat: chat, Thread: thread}, nil
}

// IsClean reports whether a name, such as an address, a file name or a session's key, is
// valid UTF-8 without control characters, line breaks and characters that change the
// direction of writing.
func IsClean(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	})
}

// A Person is the sender of a message.
type Person struct {
	// ID is CHANNEL:USER, with the platform's id of the user.
	ID string `json:"id"`
	// Name is the person's name on the platform. It is only for the model and for people to
	// read: it proves nothing.
	Name string `json:"name,omitempty"`
	// Account is the person whose limits apply and to whom the usage is counted, if somebody has several accounts and
	// the gate has looked that up; otherwise "".
	Account string `json:"account,omitempty"`
	// Owner says that the person owns the bot; the gate sets it.
	Owner bool `json:"owner,omitempty"`
	// Approver says that the person may approve tool calls of conversations on their
	// channel, and EveryApprover that they may on all channels, but not their own calls.
	// The gate sets both.
	Approver      bool `json:"approver,omitempty"`
	EveryApprover bool `json:"every_approver,omitempty"`
}

// NameAndID returns the name followed by the id, for people and models to read.
func (p Person) NameAndID() string {
	if p.Name == "" || p.Name == p.ID {
		return p.ID
	}
	return p.Name + " (" + p.ID + ")"
}

// These are the kinds of inbound messages.
const (
	Said    = "said"    // a person speaks to the agent
	Command = "command" // a person gives a command: Text is its name without slash, Args the rest
	Notice  = "notice"  // the system tells the session something; a notice never starts a turn
	Decided = "decided" // an ask of a parked turn has ended: ID is the ask's id, Decision says how it ended
	Edited  = "edited"  // a person changed an earlier message: Of is its id, Text and Attachments are the new content
	Deleted = "deleted" // a person deleted an earlier message: Of is its id
	Reacted = "reacted" // a person reacted to a message: Reaction is the emoji, Of the message's id; Quotes may contain its text
	// Scheduled is a message to the agent that a schedule sends at its time: Schedule is
	// the schedule's id.
	Scheduled = "scheduled"
	// JobEnded tells a session that a background command has ended: From is the person for
	// whom it ran, Text says how it ended. It begins a turn of that person, or joins one.
	JobEnded = "job_ended"
	// Tasked hands a task to a sub-agent and begins a turn there: Task says who handed it
	// out.
	Tasked = "tasked"
	// TaskEnded tells a session how a task that it handed out has ended: Text is the
	// report, and Task says which task. It continues the turn that waits for the task. If
	// no turn waits, it begins one, or joins one.
	TaskEnded = "task_ended"
)

// kindSaidWithFiles is what Encode writes as the Kind of a Said message with attachments. A release that can't handle
// attachments doesn't know this kind, so it leaves the message alone instead of answering its text without the files.
const kindSaidWithFiles = "said_with_files"

// kindSaidByProgram is what Encode writes as the Kind of a Said message that quotes a program's post. A release that
// doesn't know such posts would look for a person who sent it.
const kindSaidByProgram = "said_by_program"

// KnownKind reports whether this release knows an inbound message's kind. A message of
// another kind comes from a newer release and is left to it.
func KnownKind(kind string) bool {
	switch kind {
	case Said, Command, Notice, Decided, Edited, Deleted, Reacted, Scheduled, JobEnded, Tasked, TaskEnded:
		return true
	}
	return false
}

// An Inbound is one message to the agent.
type Inbound struct {
	// ID is the same however often the platform delivers the message, and
	// unique over all channels.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// From is the sender. For a Deleted message, it may be empty if the platform does not
	// say whose message was deleted. The message is deleted no matter who wrote it.
	From Person  `json:"from"`
	At   Address `json:"at"` // where it was said, and where the reply goes
	// Group says that other people read the conversation.
	Group bool `json:"group,omitempty"`
	// ChatName is what the platform calls the group, if it says so with the message: only for
	// the model to read, because members of the group choose it.
	ChatName string `json:"chat_name,omitempty"`
	// Private says that From and the bot are alone, so that a turn may be shown the
	// memories of From. A source that does not set it keeps the memories from the turn.
	// Releases from before Private look at Group instead.
	Private bool `json:"private"`
	// Mentioned says that the bot was addressed: by name, by a reply to it, or because
	// nobody else is there.
	Mentioned bool `json:"mentioned,omitempty"`
	// Called says that the message began with the bot's name, which Text leaves out. Answers is the
	// platform's id of the message to which this one replies, "" if it replies to none. Only the
	// gateway reads both, to choose who answers.
	Called  bool      `json:"-"`
	Answers string    `json:"-"`
	Text    string    `json:"text"`
	Args    string    `json:"args,omitempty"`
	ReplyTo string    `json:"reply_to,omitempty"` // the platform's id of the message itself, for a reply that quotes it
	SentAt  time.Time `json:"sent_at,omitzero"`
	// Received is when this program received the message, if that is recorded as the first span of its trace; zero
	// otherwise.
	Received time.Time `json:"received,omitzero"`
	// Quotes are texts that came with the message but that its sender did not write in it: a text that it
	// forwards, and one that it replies to.
	Quotes []Quote `json:"quotes,omitempty"`
	// Decision says how the ask with this message's id ended.
	Decision *Decision `json:"decision,omitempty"`
	// More says that the platform announces further messages that belong to this one (an
	// album, a text that the client has split), so that a turn waits a moment for them.
	More bool `json:"more,omitempty"`
	// Pressed says that the message was not typed: the person has pressed a button that
	// says Text.
	Pressed bool `json:"pressed,omitempty"`
	// Attachments are the files that came with the message.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Of is, for Edited, Deleted and Reacted, the ID of the message that was changed or reacted to,
	// as the adapter gave it in its Inbound, or would have given it.
	Of string `json:"of,omitempty"`
	// Reaction is an emoji, or :name: where the platform has no emoji for it.
	Reaction string `json:"reaction,omitempty"`
	// Removed says that the reaction was taken back.
	Removed bool `json:"removed,omitempty"`
	// Schedule is, for Scheduled, the id of the schedule.
	Schedule string `json:"schedule,omitempty"`
	// Task is set for Tasked and TaskEnded.
	Task *Task `json:"task,omitempty"`
}

// A Task is a piece of work that an agent hands to a sub-agent; it also comes with the sub-agent's
// report.
type Task struct {
	ID string `json:"id"`
	// Agent is the name of the other side: for Tasked the agent that hands out the task,
	// for TaskEnded the sub-agent. Session is the key of its session.
	Agent   string `json:"agent"`
	Session string `json:"session"`
	// Asked is, for Tasked, the address of the people whom the sub-agent may ask.
	Asked Address `json:"asked,omitzero"`
	// Untrusted says that the text was written by a model that had read something strangers may
	// have written.
	Untrusted bool `json:"untrusted,omitempty"`
	// For TaskEnded: Awaited says that a turn waits for the report, and State says how the task
	// ended.
	Awaited bool   `json:"awaited,omitempty"`
	State   string `json:"state,omitempty"`
}

// These are the kinds of attachments.
const (
	Picture  = "picture"
	Voice    = "voice"
	Video    = "video"
	Document = "document"
)

// An Attachment is a file that came with a message. Everything but Ref comes from the sender's side and
// proves nothing.
type Attachment struct {
	Kind string `json:"kind"`           // Picture, Voice, Video, Document
	Name string `json:"name,omitempty"` // a name on one line, without a path
	Type string `json:"type,omitempty"` // MIME type
	Size int64  `json:"size,omitempty"` // in bytes; 0 means unknown
	Ref  string `json:"ref"`            // the reference by which its channel fetches it; contains no secret
	// Quoted says that the file came with the message to which the sender replies.
	Quoted bool `json:"quoted,omitempty"`
}

// These are the kinds of quotes.
const (
	Forwarded = "forwarded" // another person's words, passed on by the sender
	Answered  = "answered"  // the message to which the sender replies, or the part of it that the sender selected
	Told      = "told"      // a text that an agent has posted here on somebody's behalf
	Earlier   = "earlier"   // a message in a thread from before the bot was called into it
	Reported  = "reported"  // the report of a sub-agent that had read text that strangers may have written
	Posted    = "posted"    // a text that a program has posted to a webhook: the message comes from no person
)

// A Quote is a text written elsewhere or earlier. The model is shown it as quoted material,
// never as words of the message's sender.
type Quote struct {
	Kind string `json:"kind"`
	// From is the writer; its ID is empty where the platform does not say who wrote it.
	From Person `json:"from,omitzero"`
	// Chat is the name of the chat from which the text comes, if that is another than the
	// message's.
	Chat string    `json:"chat,omitempty"`
	At   time.Time `json:"at,omitzero"` // when it was written
	Text string    `json:"text"`
	// Own says that a Told quote has From's own words: see Telling. Older releases do not set it, and
	// treat such words as a stranger's.
	Own bool `json:"own,omitempty"`
	// Operator says of a Told quote that From is an operator, who has said this here in person: see
	// Telling. Older releases take it for something that the agent has posted.
	Operator bool `json:"operator,omitempty"`
}

// IsOperators reports whether the message tells the session what an operator has said in the session's
// conversation.
func (in Inbound) IsOperators() bool {
	return in.Kind == Notice && len(in.Quotes) > 0 && in.Quotes[0].Kind == Told && in.Quotes[0].Operator
}

// Encode returns the message as the body of a bus message.
func (in Inbound) Encode() ([]byte, error) {
	switch {
	case in.Kind != Said:
	case in.IsPosted():
		in.Kind = kindSaidByProgram
	case len(in.Attachments) > 0:
		in.Kind = kindSaidWithFiles
	}
	return plainjson.Marshal(in)
}

// DecodeInbound decodes a body that Encode has returned.
func DecodeInbound(body []byte) (Inbound, error) {
	var read struct {
		Inbound
		Private *bool `json:"private"`
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return Inbound{}, fmt.Errorf("decode inbound message: %w", err)
	}
	in := read.Inbound
	in.Private = IsPrivate(read.Private, in.Group)
	if in.Kind == kindSaidWithFiles || in.Kind == kindSaidByProgram {
		in.Kind = Said
	}
	return in, nil
}

// IsPrivate returns the value of Inbound.Private, given what was written in JSON. nil comes from a
// release without that field; then a conversation is private unless it is a group's.
func IsPrivate(written *bool, group bool) bool {
	if written == nil {
		return !group
	}
	return *written
}

// IsPosted reports whether a program has posted the message to a webhook, so that it comes from no
// person.
func (in Inbound) IsPosted() bool {
	return len(in.Quotes) > 0 && in.Quotes[0].Kind == Posted
}

// An Outbound is one message to people.
type Outbound struct {
	// ID identifies the message for good: each id is sent once.
	ID string  `json:"id"`
	To Address `json:"to"`
	// Text is Markdown.
	Text string `json:"text"`
	// ReplyTo is the platform's id of the message to quote; "" quotes none.
	ReplyTo string `json:"reply_to,omitempty"`
	// Session and Turn name the session and turn that wrote the message. The session gets a notice if its delivery
	// fails. Both are empty for messages that no session wrote.
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	// Causes are the ids of the messages that it answers, if it answers others than the one whose id
	// names the turn.
	Causes []string `json:"causes,omitempty"`
	// Failed says that the turn failed: the message says why, and is not an answer.
	Failed bool `json:"failed,omitempty"`
	// At is when it was written: a message that cannot be sent is abandoned at a certain
	// age.
	At time.Time `json:"at,omitzero"`
	// Expires is the time after which it is not worth sending; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	// Subject connects messages from one sender (Origin) to one address that report on the same thing,
	// such as an alert: a later one edits the earlier one if the platform can edit; otherwise it goes
	// into that one's thread.
	Subject string `json:"subject,omitempty"`
	// Origin is the sender if no session wrote it: the name of a token or a webhook.
	Origin string `json:"origin,omitempty"`
	// Fallback are the addresses to which it goes if it cannot be delivered to To.
	Fallback []Address `json:"fallback,omitempty"`
	File     *File     `json:"file,omitempty"`
	// Files are files in the storage that workers and gateways share; the message only names them.
	Files []FileRef `json:"files,omitempty"`
	// Whole says that all of the text must appear in the chat, no matter how long it is.
	Whole bool `json:"whole,omitempty"`
	// Told is set if an agent posts this on somebody's behalf in a chat other than the one in which
	// it was asked to, or if an operator answers in place of the agent; nil otherwise.
	Told *Telling `json:"told,omitempty"`
	// Buttons are shown below the text where the platform has buttons; the text says how to
	// answer without them.
	Buttons []Button `json:"buttons,omitempty"`
	// Ahead says that the message goes out only to show what a later message to the same address is
	// about. If this one does not arrive, the later one says so (see Otherwise); so this one's failure is
	// not reported, and it is abandoned soon.
	Ahead bool `json:"ahead,omitempty"`
	// Otherwise, if set, replaces the text and buttons if an earlier message did not
	// arrive.
	Otherwise *Otherwise `json:"otherwise,omitempty"`
	// Double is the platform's id of a second message with the same Subject, which a send left behind
	// that was interrupted and repeated. This message replaces it, unless it is the message that the
	// subject is known by; nothing else is sent. "" means none.
	Double string `json:"double,omitempty"`
	// Needs names features that a dispatcher must understand to send the message, such as
	// NeedFiles. A dispatcher that does not understand one leaves the message, and those after it,
	// to a process of another release.
	Needs []string `json:"needs,omitempty"`
}

// An Otherwise replaces a message's own Text and Buttons if another message, with its file, did not
// arrive.
type Otherwise struct {
	Unsent  string   `json:"unsent"` // the id of the other message, which was published before to the same address
	Text    string   `json:"text"`
	Buttons []Button `json:"buttons,omitempty"`
}

// A Telling says on whose behalf an agent posts something, or which operator posts it. The message's text
// says so too, for people, and for releases that do not know this field.
type Telling struct {
	For Person  `json:"for"`
	At  Address `json:"at"` // the conversation in which the agent was asked
	// Words is the text to post, without the added words that name the person on whose behalf it is
	// posted.
	Words string `json:"words"`
	// Own says that the words are the person's own: the bot knows the person by name, and the model
	// that passes the words on had read nothing that strangers may have written.
	Own bool `json:"own,omitempty"`
	// Operator says that an operator speaks in place of the agent: For is the operator, who answers in the session
	// that the message names. That session gets a notice about it under the id Post, by which the operator knows the
	// message.
	Operator bool   `json:"operator,omitempty"`
	Post     string `json:"post,omitempty"`
}

// A File is sent with a message, which carries the file's bytes itself.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
	// Voice says that the file is a recording of speech in Ogg/Opus, to be shown as a voice note where the platform has
	// them. An older release sends it as any other file.
	Voice bool `json:"voice,omitempty"`
}

// A FileRef names a file that is sent with a message and stored elsewhere until then.
type FileRef struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`          // the hash of its content, in hexadecimal digits
	Ref    string `json:"ref"`             // where it is stored
	Path   string `json:"path"`            // its path in the workspace of the session that sends it
	Voice  bool   `json:"voice,omitempty"` // like File.Voice
}

// NeedFiles is in the Needs of a message with Files: a dispatcher of an older release would send
// the text alone.
const NeedFiles = "files"

// NeedOtherwise is in the Needs of a message with Otherwise: a dispatcher of an older release
// would let people approve a call that they were not shown.
const NeedOtherwise = "otherwise"

// Encode returns the message as the body of a bus message.
func (out Outbound) Encode() ([]byte, error) {
	for _, need := range []struct {
		name string
		has  bool
	}{{NeedFiles, len(out.Files) > 0}, {NeedOtherwise, out.Otherwise != nil}} { // always in this order, so that the same message always has the same body
		if need.has && !slices.Contains(out.Needs, need.name) {
			out.Needs = append(slices.Clip(out.Needs), need.name)
		}
	}
	return plainjson.Marshal(out)
}

// DecodeOutbound decodes a body that Encode has returned.
func DecodeOutbound(body []byte) (Outbound, error) {
	var out Outbound
	if err := json.Unmarshal(body, &out); err != nil {
		return Outbound{}, fmt.Errorf("decode outbound message: %w", err)
	}
	return out, nil
}
