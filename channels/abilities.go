package channels

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"parley/bus"
)

// Optional interfaces: abilities that only some channels have. Only this file and its neighbors assert that a
// Channel implements one; everybody else calls their functions.

// A Typer shows that the bot is at work in a chat. The indicator fades within the period
// that Typing returns, so the caller repeats the call until the answer is sent.
type Typer interface {
	Typing(ctx context.Context, to bus.Address) (fades time.Duration, err error)
}

// A Reconciler finds out whether a part has arrived after its sending was interrupted.
type Reconciler interface {
	// FindSent returns the platform's id of the part and true if the part has arrived, and false if
	// the part certainly has not. An error means that it is unknown.
	FindSent(ctx context.Context, to bus.Address, part Part) (id string, sent bool, err error)
}

// An Editor replaces the text of a part that was sent.
type Editor interface {
	// Edit replaces the text of the part with the platform's id `id`; errors are those of
	// Channel.Send. The fault Rejected means that this part cannot be edited (anymore).
	Edit(ctx context.Context, to bus.Address, id string, part Part) error
}

// A FileSender sends a file together with a part's text. Its errors are those of Channel.Send.
type FileSender interface {
	SendFile(ctx context.Context, to bus.Address, file bus.File, part Part) (id string, err error)
}

// A FileLimiter knows the largest file that its platform accepts from a bot.
type FileLimiter interface {
	// MaxFileBytes returns the size, in bytes, of the largest file that a bot may send.
	MaxFileBytes() int64
}

// MaxFileBytes returns the size, in bytes, of the largest file that may be sent to a channel: the smaller of the
// channel's limit and most; most if the channel has no limit.
func MaxFileBytes(ch Channel, most int64) int64 {
	if l, ok := ability[FileLimiter](ch); ok {
		return min(most, l.MaxFileBytes())
	}
	return most
}

// A VoiceSender is a FileSender whose platform shows voice notes.
type VoiceSender interface {
	FileSender
	// SendsVoice reports whether SendFile shows a file with Voice as a voice note.
	SendsVoice() bool
}

// SendsVoice reports whether a channel shows voice notes; others show a recording as a file.
func SendsVoice(ch Channel) bool {
	v, ok := ability[VoiceSender](ch)
	return ok && v.SendsVoice()
}

// An Inviter makes links that open a chat with the bot, in which the person's first message
// carries a code.
type Inviter interface {
	// Invite returns the link, or "" while the account's name is not known.
	Invite(code string) string
}

// A MembershipChecker knows who belongs to the bot account's home on the platform (a workspace): its full members,
// but not guests, bots, or strangers from connected workspaces.
type MembershipChecker interface {
	// IsMember reports whether the person is a full member. An error means that it is unknown
	// now; Receive then passes on the person's message again later.
	IsMember(ctx context.Context, person string) (bool, error)
}

// AsMembershipChecker returns the channel as a MembershipChecker; false if it isn't one.
func AsMembershipChecker(ch Channel) (MembershipChecker, bool) { return ability[MembershipChecker](ch) }

// A TimeZoner looks up people's time zones, so that their schedules run at their local time.
type TimeZoner interface {
	// TimeZone returns the name of a person's time zone, such as Europe/Berlin; "" if the
	// platform does not know it.
	TimeZone(ctx context.Context, person string) (string, error)
}

// AsTimeZoner returns the channel as a TimeZoner; false if it isn't one.
func AsTimeZoner(ch Channel) (TimeZoner, bool) { return ability[TimeZoner](ch) }

// AsTyper returns the channel as a Typer; false if it isn't one.
func AsTyper(ch Channel) (Typer, bool) { return ability[Typer](ch) }

// A ThreadReader reads what was said in threads before the bot was called into them.
type ThreadReader interface {
	// MessagesBefore returns the newest messages of a thread that precede `in`, a message that Receive has passed on, as
	// quotes of the kind Earlier, oldest first. It returns at most `most` messages, including the one that began
	// the thread. If the bot already takes part in the thread, it returns none, unless `joined` asks for them
	// anyway. Its errors are *SendError.
	MessagesBefore(ctx context.Context, in bus.Inbound, most int, joined bool) ([]bus.Quote, error)
}

// AsThreadReader returns the channel as a ThreadReader; false if it isn't one.
func AsThreadReader(ch Channel) (ThreadReader, bool) { return ability[ThreadReader](ch) }

// AsWelcomer returns the channel as a Welcomer (see welcome.go); false if it isn't one.
func AsWelcomer(ch Channel) (Welcomer, bool) { return ability[Welcomer](ch) }

// A Captioner is a channel that accepts less text beside a file than in a message without one.
type Captioner interface {
	// CaptionLength returns the length of the longest text that may go with a file, in the unit of Limits.Length.
	CaptionLength() int
}

// CaptionLength returns how long a text that goes with a file may be: the channel's own limit, or `length` if it
// has none.
func CaptionLength(ch Channel, length int) int {
	if c, ok := ability[Captioner](ch); ok {
		return c.CaptionLength()
	}
	return length
}

// AsEditor returns the channel as an Editor; false if it isn't one.
func AsEditor(ch Channel) (Editor, bool) { return ability[Editor](ch) }

// A Previewer shows an unfinished answer as a preview, which is not a message: it fades by
// itself, and disappears once a message is sent to the chat.
type Previewer interface {
	// Previews returns the minimum time between two previews in a chat; 0 means that the chat can't show any.
	Previews(chat string) time.Duration
	// Preview shows the part of a turn's answer that exists so far, and returns how long it takes until the preview
	// fades. Its errors are *SendError: Rejected if the chat shows no previews.
	Preview(ctx context.Context, to bus.Address, turn string, part Part) (fades time.Duration, err error)
}

// AsPreviewer returns the channel as a Previewer; false if it isn't one.
func AsPreviewer(ch Channel) (Previewer, bool) { return ability[Previewer](ch) }

// ErrTooLarge says that an attachment is larger than the caller allows.
var ErrTooLarge = errors.New("it is larger than it may be")

// A Fetcher downloads the attachments of messages.
type Fetcher interface {
	// Fetch opens an attachment with the platform's credentials. It works in every process,
	// no matter which one runs Receive. The reader returns at most `most` bytes and then
	// ErrTooLarge. Errors are *SendError: Rejected if the attachment is gone for good.
	Fetch(ctx context.Context, at bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error)
}

// LimitReader returns a reader that reads at most `most` bytes of `from`, and then fails with
// ErrTooLarge if there are more.
func LimitReader(from io.ReadCloser, most int64) io.ReadCloser {
	return &limitedReader{from: from, remaining: most}
}

type limitedReader struct {
	from      io.ReadCloser
	remaining int64
}

// Read implements io.Reader within the limit. To find out whether `from` is too large, it has to read past the last
// allowed byte.
func (b *limitedReader) Read(p []byte) (int, error) {
	if b.remaining > 0 {
		n, err := b.from.Read(p[:min(int64(len(p)), b.remaining)])
		b.remaining -= int64(n)
		return n, err
	}
	if n, err := b.from.Read(make([]byte, 1)); n == 0 {
		return 0, err
	}
	return 0, ErrTooLarge
}

// Close closes the underlying reader.
func (b *limitedReader) Close() error { return b.from.Close() }

// AsFetcher returns the channel as a Fetcher; false if it isn't one.
func AsFetcher(ch Channel) (Fetcher, bool) { return ability[Fetcher](ch) }

// AsFileSender returns the channel as a FileSender; false if it isn't one.
func AsFileSender(ch Channel) (FileSender, bool) { return ability[FileSender](ch) }

// AsReconciler returns the channel as a Reconciler; false if it isn't one.
func AsReconciler(ch Channel) (Reconciler, bool) { return ability[Reconciler](ch) }

// A Reactor marks a person's message with a reaction that shows its state.
type Reactor interface {
	// MarkSeen shows that the bot has stored the message, MarkAnswered that its answer was sent, and MarkFailed that
	// there is no answer, because the turn failed or the message was refused. Callers identify the message by the ID that
	// Receive gave it.
	MarkSeen(ctx context.Context, at bus.Address, message string) error
	MarkAnswered(ctx context.Context, at bus.Address, message string) error
	MarkFailed(ctx context.Context, at bus.Address, message string) error
}

// A Replier knows where replies to a message are posted, on platforms where that is not the message's own address.
type Replier interface {
	// ReplyAddress returns the address at which people's replies to a message would appear. The
	// message was sent to `to` and has the platform's id `id`. Its errors are *SendError.
	ReplyAddress(ctx context.Context, to bus.Address, id string) (bus.Address, error)
}

// AsReplier returns the channel as a Replier; false if it isn't one.
func AsReplier(ch Channel) (Replier, bool) { return ability[Replier](ch) }

// AsReactor returns the channel as a Reactor; false if it isn't one.
func AsReactor(ch Channel) (Reactor, bool) { return ability[Reactor](ch) }

// A Whisperer posts a text into a chat so that only one person sees it.
type Whisperer interface {
	// Whisper shows the part only to the user with that id. Its errors are *SendError.
	Whisper(ctx context.Context, to bus.Address, user string, part Part) error
	// PrivateChat returns the address of a person's private chat with the bot. The person's id is written as in
	// bus.Person.
	PrivateChat(ctx context.Context, person string) (bus.Address, error)
}

// AsWhisperer returns the channel as a Whisperer; false if it isn't one.
func AsWhisperer(ch Channel) (Whisperer, bool) { return ability[Whisperer](ch) }

// A Refusal says why nothing can be sent to a place, such as a chat.
type Refusal string

// The refusals. "" means that nothing is wrong with the place: other messages may be sent there.
const (
	NoSuchChat    Refusal = "no_such_chat" // no such chat, or the bot is not in it
	NotInChat     Refusal = "not_in_chat"
	ChatArchived  Refusal = "chat_archived"
	PersonRefuses Refusal = "person_refuses" // the person accepts no messages from the bot
	NoRights      Refusal = "no_rights"
	PlaceRefused  Refusal = "place_refused" // the place is refused for another reason
)

// A RefusalReader translates its platform's error codes into refusals.
type RefusalReader interface {
	// Refusal translates the Code of a SendError whose Fault is Rejected. Because the book
	// keeps these codes, it also translates those of earlier releases.
	Refusal(code string) Refusal
}

// RefusalOf translates a channel's error code into a Refusal; "" if nothing is wrong with the place, or if the
// channel can't translate codes.
func RefusalOf(ch Channel, code string) Refusal {
	if r, ok := ability[RefusalReader](ch); ok {
		return r.Refusal(code)
	}
	return ""
}

// An HTTPReceiver is a channel whose platform can send people's messages by HTTP requests, instead
// of over a connection that the bot opens. Each request may go to any process of the fleet that
// runs Receive. The channel itself checks that requests come from the platform.
type HTTPReceiver interface {
	// ServeHTTP answers a request with 200 once the function that Receive was given has published the messages in
	// it, and with 503 if they can't be published now or Receive isn't running.
	http.Handler
	// ReceivesHTTP reports whether the channel is configured to receive by HTTP requests.
	ReceivesHTTP() bool
}

// AsHTTPReceiver returns the channel as the handler of its platform's requests, and false
// if the channel is not an HTTPReceiver or not configured as one.
func AsHTTPReceiver(ch Channel) (http.Handler, bool) {
	r, ok := ability[HTTPReceiver](ch)
	return r, ok && r.ReceivesHTTP()
}

// A Connector knows whether it can reach its platform.
type Connector interface {
	Connected() bool
}

// Connected reports whether a channel can reach its platform; a channel that isn't a Connector counts as connected.
func Connected(ch Channel) bool {
	c, ok := ability[Connector](ch)
	return !ok || c.Connected()
}

// A BotNamer channel knows the bot's name on its platform.
type BotNamer interface {
	// BotName returns the name as people see it; "" while it isn't known. It makes no request.
	BotName() string
}

// BotName returns the bot's name on a channel; "" if it isn't known.
func BotName(ch Channel) string {
	if n, ok := ability[BotNamer](ch); ok {
		return n.BotName()
	}
	return ""
}

// InviteLink returns a link that opens a chat with the bot, in which the person's first
// message carries the code; "" if the channel makes no such links, or can't yet.
func InviteLink(ch Channel, code string) string {
	if i, ok := ability[Inviter](ch); ok {
		return i.Invite(code)
	}
	return ""
}

// A Prefixer is a channel on which commands begin with something other than a slash.
type Prefixer interface {
	CommandPrefix() string
}

// CommandPrefix returns the text that commands begin with on a channel: "/" unless the channel is a Prefixer.
func CommandPrefix(ch Channel) string {
	if p, ok := ability[Prefixer](ch); ok {
		return p.CommandPrefix()
	}
	return "/"
}

// ability returns the channel as the optional interface A; false if it has no such ability.
func ability[A any](ch Channel) (A, bool) {
	a, ok := ch.(A)
	return a, ok
}

// A Roster knows who is in the bot's chats. Its errors are *SendError: Rejected if there is no such chat, or the
// bot isn't in it.
type Roster interface {
	// IsIn reports whether a person, whose id is written as in bus.Person, is a member of a chat.
	IsIn(ctx context.Context, chat, person string) (bool, error)
}

// AsRoster returns the channel as a Roster; false if it isn't one.
func AsRoster(ch Channel) (Roster, bool) { return ability[Roster](ch) }

// A Historian reads what people have said in a chat from the platform. Its errors are those of a Roster.
type Historian interface {
	Roster
	// History returns the newest utterances at an address that were said since a time, at most `most` of them,
	// oldest first. If the address has a thread, it returns the thread's utterances, and otherwise those of the
	// chat and all its threads. The zero time means from the beginning. `more` reports that older utterances since
	// that time were left out.
	History(ctx context.Context, at bus.Address, since time.Time, most int) (said []Utterance, more bool, err error)
	// FindChat returns the id of the bot's chat with that name; "" if there is none.
	FindChat(ctx context.Context, name string) (chat string, err error)
}

// An Utterance is one message that a person or a bot posted in a chat.
type Utterance struct {
	At     time.Time
	From   bus.Person
	Thread string // the platform's id of the thread, if it was said in one
	Text   string
}

// AsHistorian returns the channel as a Historian; false if it isn't one.
func AsHistorian(ch Channel) (Historian, bool) { return ability[Historian](ch) }

// A ThreadAccess knows which threads only some of a chat's members read.
type ThreadAccess interface {
	// IsClosed reports whether the address is in such a thread. An error means that it is unknown now.
	IsClosed(ctx context.Context, at bus.Address) (bool, error)
}

// IsClosed reports whether an address is in a thread that only some of the chat's members read. On a channel that
// isn't a ThreadAccess, there are no such threads.
func IsClosed(ctx context.Context, ch Channel, at bus.Address) (bool, error) {
	if k, ok := ability[ThreadAccess](ch); ok && at.Thread != "" {
		return k.IsClosed(ctx, at)
	}
	return false, nil
}

// A Linker knows the web addresses of its platform's messages.
type Linker interface {
	// Link returns the https address at which people who may read a message find it on the platform. The message is
	// identified by its bus address and the ID that Receive gave it. The result is "" if the platform has no such
	// web address, or if the ID is not one of this channel's. Link asks the platform at most once for each chat,
	// never for each message; an error means that the web address is not known now.
	Link(ctx context.Context, at bus.Address, message string) (string, error)
}

// LinkTo returns the web address of a message on its platform; "" if the channel isn't a Linker, or if there is no
// such address.
func LinkTo(ctx context.Context, ch Channel, at bus.Address, message string) (string, error) {
	if l, ok := ability[Linker](ch); ok {
		return l.Link(ctx, at, message)
	}
	return "", nil
}
