package bus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// An Address is where one conversation takes place.
type Address struct {
	Channel string `json:"channel"`          // the configured name of the adapter
	Chat    string `json:"chat"`             // the platform's id of the chat
	Thread  string `json:"thread,omitempty"` // the platform's id of the thread, if any
}

// String is the address as people write it: CHANNEL:CHAT or CHANNEL:CHAT/THREAD.
func (a Address) String() string {
	if a.Thread == "" {
		return a.Channel + ":" + a.Chat
	}
	return a.Channel + ":" + a.Chat + "/" + a.Thread
}

// ParseAddress reads what String writes. No platform's id has control
// characters, which would reach terminals and headers.
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

// IsClean tells of a name, such as an address's, a file's or a session's, that it
// is valid UTF-8 without control characters, line breaks and what changes the
// direction of writing.
func IsClean(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	})
}

// A Person is who said something.
type Person struct {
	// ID is CHANNEL:USER, with the platform's id of the user.
	ID string `json:"id"`
	// Name is what the platform calls them, for the model and for people only:
	// it proves nothing.
	Name string `json:"name,omitempty"`
	// Owner is set by the gate for those who own the bot.
	Owner bool `json:"owner,omitempty"`
	// Approver is set by the gate for those who may approve what conversations on
	// their channel ask for, and EveryApprover for those who may on all channels,
	// but for themselves.
	Approver      bool `json:"approver,omitempty"`
	EveryApprover bool `json:"every_approver,omitempty"`
}

// Called is the name and the id, for people and models to read.
func (p Person) Called() string {
	if p.Name == "" || p.Name == p.ID {
		return p.ID
	}
	return p.Name + " (" + p.ID + ")"
}

// The kinds of inbound messages.
const (
	Said    = "said"    // a person speaks to the agent
	Command = "command" // a person gives a command: Text is its name without slash, Args the rest
	Notice  = "notice"  // the system tells the session something; it never starts a turn
	Decided = "decided" // what a parked turn waits for has ended: ID is the ask's, Decision how
	Edited  = "edited"  // somebody changed what they said: Text and Attachments are as they are now, Of is the message
	Deleted = "deleted" // somebody deleted what they said: Of is the message
	Reacted = "reacted" // somebody reacted to a message: Reaction, Of is the message; Quotes may hold its text
	// Scheduled is what somebody wanted to be said to the agent at this time: Schedule says by what.
	Scheduled = "scheduled"
	// JobEnded tells a session that a command has ended which ran in the background: From is
	// for whom it ran, Text how it ended. It begins a turn of theirs, or joins one.
	JobEnded = "job_ended"
)

// saidWithFiles is the kind that a message of kind Said with attachments has on the
// wire: a release from before attachments would answer its text and ignore the files.
const saidWithFiles = "said_with_files"

// saidByProgram is the kind that a message of kind Said has on the wire if it quotes
// what a program has posted: a release from before that would look for a person.
const saidByProgram = "said_by_program"

// KnownKind tells whether an inbound message's kind is one of this release. One
// of another kind comes from a newer release and is left to it.
func KnownKind(kind string) bool {
	switch kind {
	case Said, Command, Notice, Decided, Edited, Deleted, Reacted, Scheduled, JobEnded:
		return true
	}
	return false
}

// An Inbound is one thing said to the agent.
type Inbound struct {
	// ID is the same however often the platform delivers the message, and
	// unique over all channels.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// From is who says it. Of something Deleted it is empty where the platform does not tell
	// whose words are gone: they are, whoever has said them.
	From Person  `json:"from"`
	At   Address `json:"at"` // where it was said, and where the reply goes
	// Group says that others read along.
	Group bool `json:"group,omitempty"`
	// Private says that From and the bot are alone, so that a turn may be shown what is
	// remembered of From. Who begins a turn and says nothing of it keeps that from the turn.
	// Releases from before it go by Group.
	Private bool `json:"private"`
	// Mentioned says that the bot was addressed: by name, by a reply to it, or
	// because nobody else is there.
	Mentioned bool      `json:"mentioned,omitempty"`
	Text      string    `json:"text"`
	Args      string    `json:"args,omitempty"`
	ReplyTo   string    `json:"reply_to,omitempty"` // the platform's id of the message itself, for a reply that quotes it
	SentAt    time.Time `json:"sent_at,omitzero"`
	// Quotes is what the message carries of words that its sender did not write
	// in it: what it forwards, and what it answers.
	Quotes []Quote `json:"quotes,omitempty"`
	// Decision is how the ask ended that has the message's id.
	Decision *Decision `json:"decision,omitempty"`
	// More says that the platform announces further messages that belong to this
	// one (an album, a text that the client has split), so that a turn waits a
	// moment for them.
	More bool `json:"more,omitempty"`
	// Pressed says that it was not typed: somebody has pressed a button that says Text.
	Pressed bool `json:"pressed,omitempty"`
	// Attachments are the files that came with it.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Of is, of Edited, Deleted and Reacted, the ID that Receive gave, or would give,
	// the message that it is about.
	Of string `json:"of,omitempty"`
	// Reaction is an emoji, or :name: where the platform has no emoji for it.
	Reaction string `json:"reaction,omitempty"`
	// Removed says that the reaction was taken back.
	Removed bool `json:"removed,omitempty"`
	// Schedule is, of Scheduled, the schedule that says it.
	Schedule string `json:"schedule,omitempty"`
}

// The kinds of attachments.
const (
	Picture  = "picture"
	Voice    = "voice"
	Video    = "video"
	Document = "document"
)

// An Attachment is a file that came with a message. All but Ref is what the sender's
// side says of it and proves nothing.
type Attachment struct {
	Kind string `json:"kind"`           // Picture, Voice, Video, Document
	Name string `json:"name,omitempty"` // one line, no path
	Type string `json:"type,omitempty"` // MIME type
	Size int64  `json:"size,omitempty"` // bytes; 0 is not known
	Ref  string `json:"ref"`            // by which its channel fetches it; holds no secret
}

// The kinds of quotes.
const (
	Forwarded = "forwarded" // somebody's words, passed on by the sender
	Answered  = "answered"  // the message to which the sender replies, or the part of it that they marked
	Told      = "told"      // what an agent has said here on somebody's behalf
	Earlier   = "earlier"   // what was said in a thread before the bot was called into it
	Posted    = "posted"    // what a program has posted to a webhook: the message comes from no person
)

// A Quote is what was written elsewhere or earlier. The model is shown it as
// quoted material, never as words of the message's sender.
type Quote struct {
	Kind string `json:"kind"`
	// From is who wrote it; its ID is empty where the platform hides it.
	From Person `json:"from,omitzero"`
	// Chat is what people call the chat that it comes from, if it is another.
	Chat string    `json:"chat,omitempty"`
	At   time.Time `json:"at,omitzero"` // when it was written
	Text string    `json:"text"`
}

// Encode is the body of an inbound message.
func (in Inbound) Encode() ([]byte, error) {
	switch {
	case in.Kind != Said:
	case in.IsPosted():
		in.Kind = saidByProgram
	case len(in.Attachments) > 0:
		in.Kind = saidWithFiles
	}
	return json.Marshal(in)
}

// DecodeInbound reads what Encode writes.
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
	if in.Kind == saidWithFiles || in.Kind == saidByProgram {
		in.Kind = Said
	}
	return in, nil
}

// IsPrivate is Inbound.Private as it was written; nil is of a release from before it.
func IsPrivate(written *bool, group bool) bool {
	if written == nil {
		return !group
	}
	return *written
}

// IsPosted tells of a message that a program's post is what it brings.
func (in Inbound) IsPosted() bool {
	return len(in.Quotes) > 0 && in.Quotes[0].Kind == Posted
}

// An Outbound is one thing said to people.
type Outbound struct {
	// ID names it for good: the same id is sent once.
	ID string  `json:"id"`
	To Address `json:"to"`
	// Text is Markdown.
	Text string `json:"text"`
	// ReplyTo is the platform's id of the message that it answers, if it is to quote it.
	ReplyTo string `json:"reply_to,omitempty"`
	// Session and Turn say what it comes from; news of its delivery go back
	// there. Both are empty for what no session said.
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	// Causes are the messages that it answers, where these are more than the one
	// that the turn is named after.
	Causes []string `json:"causes,omitempty"`
	// Failed says that it is the reply of a turn that failed: it says why, and is
	// no answer.
	Failed bool `json:"failed,omitempty"`
	// At is when it was said: what cannot be sent is given up by its age.
	At time.Time `json:"at,omitzero"`
	// Expires is when it is too old to be worth sending; zero is never.
	Expires time.Time `json:"expires,omitzero"`
	// Subject ties together messages about one thing, within one sender (Origin)
	// and address: a later one edits the earlier where the platform can, else it
	// goes into its thread.
	Subject string `json:"subject,omitempty"`
	// Origin is who or what had it said, where no session did: a token's or a
	// webhook's name.
	Origin string `json:"origin,omitempty"`
	// Fallback is where it goes if it cannot be delivered to To.
	Fallback []Address `json:"fallback,omitempty"`
	File     *File     `json:"file,omitempty"`
	// Files are files that workers and gateways share and that the message only names.
	Files []FileRef `json:"files,omitempty"`
	// Whole says that all of the text is said in the chat, however long it is.
	Whole bool `json:"whole,omitempty"`
	// Told says on whose behalf an agent says it in another chat than the one in
	// which it was asked; nil for replies, and for what no agent says.
	Told *Telling `json:"told,omitempty"`
	// Buttons are offered below the text where the platform has any; the text says
	// what to do without.
	Buttons []Button `json:"buttons,omitempty"`
	// Needs names what a dispatcher must understand to send it. One that does
	// not leaves the message to another release, and what is behind it too.
	Needs []string `json:"needs,omitempty"`
}

// A Telling is on whose behalf something is said. Text alone says it in words
// as well, for whoever reads it and for releases that do not know this.
type Telling struct {
	For Person  `json:"for"`
	At  Address `json:"at"` // the conversation in which the agent was asked
	// Words is what was to be told, without the words about who had it said.
	Words string `json:"words"`
}

// A File goes with a message.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// A FileRef names a file that goes with a message and is kept elsewhere until it was sent.
type FileRef struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // of its content, in hexadecimal digits
	Ref    string `json:"ref"`    // where it is kept
	Path   string `json:"path"`   // in the workspace of the session that sends it
}

// NeedFiles is what a dispatcher must understand to send a message that names files: a
// release from before them would send the text alone.
const NeedFiles = "files"

// Encode is the body of an outbound message.
func (out Outbound) Encode() ([]byte, error) {
	if len(out.Files) > 0 && !slices.Contains(out.Needs, NeedFiles) {
		out.Needs = append(slices.Clip(out.Needs), NeedFiles)
	}
	return json.Marshal(out)
}

// DecodeOutbound reads what Encode writes.
func DecodeOutbound(body []byte) (Outbound, error) {
	var out Outbound
	if err := json.Unmarshal(body, &out); err != nil {
		return Outbound{}, fmt.Errorf("decode outbound message: %w", err)
	}
	return out, nil
}
