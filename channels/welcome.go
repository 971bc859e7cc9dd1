package channels

import (
	"context"

	"parley/bus"
)

// Opened is the kind of the event that Receive hands to publish when somebody opens a place
// of the bot's without saying anything yet. The event goes to the gate and no further: no
// bus carries it.
const Opened = "opened"

// A Host has places that people open: a page about the bot, or a pane beside what they
// read. When a person opens one, Welcome shows there what the bot may do for them.
type Host interface {
	// Welcome shows w at the place that `opened` names, an event that Receive has handed
	// on. A place in which strangers are shown nothing stays as it is for them. Its errors
	// are *SendError; repeating the call does no harm.
	Welcome(ctx context.Context, opened bus.Inbound, w Welcome) error
}

// A Welcome is the text for a person who opens a place of the bot's.
type Welcome struct {
	Admitted bool   // whether the person may talk to the bot
	Text     string // what the person is shown, as Markdown
}
