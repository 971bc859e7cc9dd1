package channels

import (
	"context"

	"parley/bus"
)

// Opened is the kind of what Receive hands to publish when somebody opens a place of the
// bot's and says nothing yet. It goes to the gate and no further: no bus carries it.
const Opened = "opened"

// A Host has places that people open: a page about the bot, or a pane beside what they
// read. Who opens one is told, by Welcome, what the bot may do for them.
type Host interface {
	// Welcome shows it where opened, which Receive has handed on, says that the place
	// is. A place in which strangers are shown nothing is left as it is for them. Its
	// errors are *SendError; it may be shown again without harm.
	Welcome(ctx context.Context, opened bus.Inbound, w Welcome) error
}

// A Welcome is what somebody reads who opens a place of the bot's.
type Welcome struct {
	Admitted bool   // they may talk to the bot
	Text     string // Markdown
}
