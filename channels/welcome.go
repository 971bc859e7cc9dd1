package channels

import (
	"context"

	"parley/bus"
)

// Opened is the kind of the event that Receive passes to publish when somebody opens one of the bot's places
// without saying anything yet. The event goes no further than the gate: it is never put on the bus.
const Opened = "opened"

// A Welcomer has places that people open: a page about the bot, or a pane next to what they are reading. When a person
// opens one, Welcome shows there what the bot can do for them.
type Welcomer interface {
	// Welcome shows w at the place that `opened`, an event that Receive has passed on, names. If a place shows
	// strangers nothing, it stays unchanged for them. Its errors are *SendError; repeating the call does no harm.
	Welcome(ctx context.Context, opened bus.Inbound, w Welcome) error
}

// A Welcome is the text for a person who opens one of the bot's places.
type Welcome struct {
	Admitted bool   // whether the person may talk to the bot
	Text     string // what the person is shown, as Markdown
}
