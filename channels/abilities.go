package channels

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"parley/bus"
)

// What only some channels can do. Every optional interface of a Channel is asserted
// here and nowhere else.

// A Typer shows that the bot is at work in a chat. What it shows fades within
// the period that it returns, so it is called again until the answer is there.
type Typer interface {
	Typing(ctx context.Context, to bus.Address) (fades time.Duration, err error)
}

// A Reconciler finds out whether a part whose sending was cut off has arrived.
type Reconciler interface {
	// FindSent returns the platform's id of the part, and false if it is certain
	// that it was not sent. An error means that nobody can tell.
	FindSent(ctx context.Context, to bus.Address, part Part) (id string, sent bool, err error)
}

// An Editor replaces the text of a part that was sent.
type Editor interface {
	// Edit is Send for the part with that id of the platform's. Rejected means
	// that this one cannot be edited (any more).
	Edit(ctx context.Context, to bus.Address, id string, part Part) error
}

// A FileSender sends a file, with a part's text beside it.
type FileSender interface {
	SendFile(ctx context.Context, to bus.Address, file bus.File, part Part) (id string, err error)
}

// A FileLimiter takes files up to a size.
type FileLimiter interface {
	// MostFileBytes is how large a file may be that a bot sends.
	MostFileBytes() int64
}

// MostFileBytes is how large a file may be that goes to a channel, and at most that.
func MostFileBytes(ch Channel, most int64) int64 {
	if l, ok := ability[FileLimiter](ch); ok {
		return min(most, l.MostFileBytes())
	}
	return most
}

// An Inviter makes a link by which a person's first message carries a code.
type Inviter interface {
	// Invite returns the link, or "" while the account's name is not known.
	Invite(code string) string
}

// A MembershipChecker knows who belongs to the place that the account lives in: full
// members of a workspace, no guests, no strangers from connected workspaces, no bots.
type MembershipChecker interface {
	// Member tells whether the person is one. An error means that it is not
	// known now; the message is then handed again.
	Member(ctx context.Context, person string) (bool, error)
}

// AsMembershipChecker is the channel as a MembershipChecker; false if it is none.
func AsMembershipChecker(ch Channel) (MembershipChecker, bool) { return ability[MembershipChecker](ch) }

// A TimeZoner knows in which time zones people live.
type TimeZoner interface {
	// TimeZone is the name of a person's time zone, such as Europe/Berlin; "" if the
	// platform does not know it.
	TimeZone(ctx context.Context, person string) (string, error)
}

// AsTimeZoner is the channel as a TimeZoner; false if it is none.
func AsTimeZoner(ch Channel) (TimeZoner, bool) { return ability[TimeZoner](ch) }

// AsTyper is the channel as a Typer; false if it is none.
func AsTyper(ch Channel) (Typer, bool) { return ability[Typer](ch) }

// A ThreadReader reads what was said in threads before the bot was called into them.
type ThreadReader interface {
	// Before returns, as quotes of the kind Earlier, the newest messages of a thread that
	// stand before one that Receive has handed on, the oldest first and at most so many;
	// where there are more, the one that began the thread is among them. It returns none
	// where the bot takes part in the thread already. Its errors are *SendError.
	Before(ctx context.Context, in bus.Inbound, most int) ([]bus.Quote, error)
}

// AsThreadReader is the channel as a ThreadReader; false if it is none.
func AsThreadReader(ch Channel) (ThreadReader, bool) { return ability[ThreadReader](ch) }

// AsHost is the channel as a Host; false if it is none.
func AsHost(ch Channel) (Host, bool) { return ability[Host](ch) }

// A Captioner takes less text beside a file than in a message without one.
type Captioner interface {
	// CaptionLength is how much, in the unit of Limits.Length.
	CaptionLength() int
}

// CaptionLength is how long a text beside a file may be.
func CaptionLength(ch Channel, length int) int {
	if c, ok := ability[Captioner](ch); ok {
		return c.CaptionLength()
	}
	return length
}

// AsEditor is the channel as an Editor; false if it is none.
func AsEditor(ch Channel) (Editor, bool) { return ability[Editor](ch) }

// A Previewer shows an answer while it is being made as something that is no message: it
// fades by itself, and is gone once a message is sent to the chat.
type Previewer interface {
	// Previews is how often an answer may be shown anew in a chat; 0 is that nothing can
	// be shown so there.
	Previews(chat string) time.Duration
	// Preview shows what there is of the answer of a turn, and returns when that fades.
	// Its errors are *SendError: Rejected where nothing can be shown so.
	Preview(ctx context.Context, to bus.Address, turn string, part Part) (fades time.Duration, err error)
}

// AsPreviewer is the channel as a Previewer; false if it is none.
func AsPreviewer(ch Channel) (Previewer, bool) { return ability[Previewer](ch) }

// ErrTooLarge says that an attachment is larger than it may be.
var ErrTooLarge = errors.New("it is larger than it may be")

// A Fetcher fetches what came with a message.
type Fetcher interface {
	// Fetch opens an attachment with the platform's credentials, wherever Receive
	// runs. The reader gives at most most bytes and then ErrTooLarge. Errors are
	// *SendError: Rejected where it is gone for good.
	Fetch(ctx context.Context, at bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error)
}

// Bounded is a reader that gives at most most bytes, and then ErrTooLarge.
func Bounded(from io.ReadCloser, most int64) io.ReadCloser { return &bounded{from: from, left: most} }

type bounded struct {
	from io.ReadCloser
	left int64
}

// Read reads on; whether there is more than there may be shows only behind the last byte.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left > 0 {
		n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		return n, err
	}
	if n, err := b.from.Read(make([]byte, 1)); n == 0 {
		return 0, err
	}
	return 0, ErrTooLarge
}

// Close closes what it reads.
func (b *bounded) Close() error { return b.from.Close() }

// AsFetcher is the channel as a Fetcher; false if it is none.
func AsFetcher(ch Channel) (Fetcher, bool) { return ability[Fetcher](ch) }

// AsFileSender is the channel as a FileSender; false if it is none.
func AsFileSender(ch Channel) (FileSender, bool) { return ability[FileSender](ch) }

// AsReconciler is the channel as a Reconciler; false if it is none.
func AsReconciler(ch Channel) (Reconciler, bool) { return ability[Reconciler](ch) }

// A Reactor shows at a person's message what becomes of it.
type Reactor interface {
	// Seen shows that a message is in good hands, Answered that its answer was
	// sent, and Failed that there is none: the turn failed, or the message was not
	// taken. The message is named by the ID that Receive gave it.
	Seen(ctx context.Context, at bus.Address, message string) error
	Answered(ctx context.Context, at bus.Address, message string) error
	Failed(ctx context.Context, at bus.Address, message string) error
}

// A Replier has replies come from another address than the message was sent to.
type Replier interface {
	// ReplyAddress is where a reply to the message with that id of the platform's
	// would be said, which was sent to that address. Its errors are *SendError.
	ReplyAddress(ctx context.Context, to bus.Address, id string) (bus.Address, error)
}

// AsReplier is the channel as a Replier; false if it is none.
func AsReplier(ch Channel) (Replier, bool) { return ability[Replier](ch) }

// AsReactor is the channel as a Reactor; false if it is none.
func AsReactor(ch Channel) (Reactor, bool) { return ability[Reactor](ch) }

// A Whisperer says something in a chat that one person alone sees.
type Whisperer interface {
	// Whisper says it to the user with that id. Its errors are *SendError.
	Whisper(ctx context.Context, to bus.Address, user string, part Part) error
	// Alone is where a person, named as in bus.Person, talks to the bot alone.
	Alone(ctx context.Context, person string) (bus.Address, error)
}

// AsWhisperer is the channel as a Whisperer; false if it is none.
func AsWhisperer(ch Channel) (Whisperer, bool) { return ability[Whisperer](ch) }

// A Refusal is what is wrong with the place to which a message could not be sent.
type Refusal string

// The refusals. "" says that nothing is wrong with the place: another message may
// be sent there.
const (
	NoSuchChat    Refusal = "no_such_chat" // or the bot is not in it
	NotInChat     Refusal = "not_in_chat"
	ChatArchived  Refusal = "chat_archived"
	PersonRefuses Refusal = "person_refuses" // takes no messages of the bot
	NoRights      Refusal = "no_rights"
	PlaceRefused  Refusal = "place_refused" // something else
)

// A RefusalReader knows what its platform's codes say about a place.
type RefusalReader interface {
	// Refusal reads the Code of a SendError whose Fault is Rejected. The book keeps
	// these codes, so it reads those of earlier releases too.
	Refusal(code string) Refusal
}

// RefusalOf is what a channel's code says about a place; "" where the channel does
// not tell.
func RefusalOf(ch Channel, code string) Refusal {
	if r, ok := ability[RefusalReader](ch); ok {
		return r.Refusal(code)
	}
	return ""
}

// An HTTPReceiver can be told by requests of its platform's what people say, in place
// of a connection of its own: each goes to any process of the fleet in which Receive
// runs. It checks by itself that they are the platform's.
type HTTPReceiver interface {
	// ServeHTTP answers a request: with 200 once what it brings is published as Receive
	// was told to, and with 503 where it cannot be published now, or Receive does not run.
	http.Handler
	// ReceivesHTTP tells whether the channel is set to be told so.
	ReceivesHTTP() bool
}

// AsHTTPReceiver is the channel as what takes its platform's requests; false if it is
// not set to.
func AsHTTPReceiver(ch Channel) (http.Handler, bool) {
	r, ok := ability[HTTPReceiver](ch)
	return r, ok && r.ReceivesHTTP()
}

// A Connector knows whether it is in touch with its platform.
type Connector interface {
	Connected() bool
}

// Connected tells whether a channel is in touch with its platform; one that
// cannot tell is taken to be.
func Connected(ch Channel) bool {
	c, ok := ability[Connector](ch)
	return !ok || c.Connected()
}

// InviteLink is the link by which a person's first message carries the code;
// "" where the channel makes none, or cannot yet.
func InviteLink(ch Channel, code string) string {
	if i, ok := ability[Inviter](ch); ok {
		return i.Invite(code)
	}
	return ""
}

// A Prefixer is a channel on which commands begin otherwise than with a slash.
type Prefixer interface {
	CommandPrefix() string
}

// CommandPrefix is what people begin a command with on a channel.
func CommandPrefix(ch Channel) string {
	if p, ok := ability[Prefixer](ch); ok {
		return p.CommandPrefix()
	}
	return "/"
}

func ability[A any](ch Channel) (A, bool) {
	a, ok := ch.(A)
	return a, ok
}

// A Historian reads what people have said in a chat. Its errors are *SendError; Rejected
// where the bot is not in the chat, or there is none.
type Historian interface {
	// History returns the newest of what was said at an address since then, at most so
	// many, oldest first: in a thread, or in a chat with its threads. The zero time is
	// since ever. More says that there is older.
	History(ctx context.Context, at bus.Address, since time.Time, most int) (said []Utterance, more bool, err error)
	// IsIn tells whether a person, named as in bus.Person, is in a chat.
	IsIn(ctx context.Context, chat, person string) (bool, error)
	// FindChat gives the id of a chat that the bot is in, by what people call it; "" if
	// there is none.
	FindChat(ctx context.Context, name string) (chat string, err error)
}

// An Utterance is something that was said in a chat, by a person or a bot.
type Utterance struct {
	At     time.Time
	From   bus.Person
	Thread string // the platform's id of the thread, if it was said in one
	Text   string
}

// AsHistorian is the channel as a Historian; false if it is none.
func AsHistorian(ch Channel) (Historian, bool) { return ability[Historian](ch) }
