package channels

import (
	"context"

	"parley/bus"
)

// Every optional interface of a Channel is asserted here and nowhere else.

// A Memberer knows who belongs to the place that the account lives in: full
// members of a workspace, no guests, no strangers from connected workspaces, no bots.
type Memberer interface {
	// Member tells whether the person is one. An error means that it is not
	// known now; the message is then handed again.
	Member(ctx context.Context, person string) (bool, error)
}

func memberer(ch Channel) (Memberer, bool) { return ability[Memberer](ch) }

func typer(ch Channel) (Typer, bool) { return ability[Typer](ch) }

// A Captioner takes less text beside a file than in a message without one.
type Captioner interface {
	// CaptionLength is how much, in the unit of Limits.Length.
	CaptionLength() int
}

// captionLength is how long a text beside a file may be.
func captionLength(ch Channel, length int) int {
	if c, ok := ability[Captioner](ch); ok {
		return c.CaptionLength()
	}
	return length
}

func editor(ch Channel) (Editor, bool) { return ability[Editor](ch) }

func fileSender(ch Channel) (FileSender, bool) { return ability[FileSender](ch) }

func reconciler(ch Channel) (Reconciler, bool) { return ability[Reconciler](ch) }

// A Reacter shows at a person's message what becomes of it.
type Reacter interface {
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

func replier(ch Channel) (Replier, bool) { return ability[Replier](ch) }

func reacter(ch Channel) (Reacter, bool) { return ability[Reacter](ch) }

// A Whisperer says something in a chat that one person alone sees.
type Whisperer interface {
	// Whisper says it to the user with that id. Its errors are *SendError.
	Whisper(ctx context.Context, to bus.Address, user string, part Part) error
	// Alone is where a person, named as in bus.Person, talks to the bot alone.
	Alone(ctx context.Context, person string) (bus.Address, error)
}

func whisperer(ch Channel) (Whisperer, bool) { return ability[Whisperer](ch) }

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
