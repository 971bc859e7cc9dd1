package channels

import (
	"errors"
	"unicode/utf16"

	"parley/bus"
	"parley/channels/markup"
)

// A ButtonShower shows the buttons of a part, in Send and Edit. A press is published as
// a message of who pressed it, with Pressed set, the button's Says as its Text and the
// id of the message with the button as ReplyTo; its id is the same however often the
// platform delivers it. The platform is told that a press has arrived only after publish
// has returned nil, or ErrNotAdmitted.
type ButtonShower interface {
	// MostButtons is how many a part may have, and how long their Says may be, in bytes.
	MostButtons() (count, bytes int)
}

// ErrNotAdmitted says of a press of a button that whoever pressed it may not talk to
// the bot. The press was not taken; a ButtonShower tells them so and does not hand it
// again.
var ErrNotAdmitted = errors.New("whoever pressed the button may not talk to the bot")

// NotAdmitted is what a ButtonShower tells them.
const NotAdmitted = "This bot does not know you, so your press does nothing."

// mostLabel is how long a button's label is shown, in UTF-16 units: no platform takes
// fewer.
const mostLabel = 75

// ShownButtons are those of the buttons that a channel can show, with labels as they are
// shown; none where it shows none.
func ShownButtons(ch Channel, all []bus.Button) []bus.Button {
	s, ok := ability[ButtonShower](ch)
	if !ok {
		return nil
	}
	count, bytes := s.MostButtons()
	var shown []bus.Button
	for _, b := range all {
		b.Label = shortLabel(b.Label)
		if b.Label != "" && b.Says != "" && len(b.Says) <= bytes && len(shown) < count {
			shown = append(shown, b)
		}
	}
	return shown
}

// shortLabel is a label in one line, and says where it was cut.
func shortLabel(label string) string {
	label = markup.OneLine(label, len(label))
	units, cut := 0, 0
	for i, r := range label {
		if units += utf16.RuneLen(r); units < mostLabel {
			cut = i + len(string(r))
		}
	}
	if units <= mostLabel {
		return label
	}
	return label[:cut] + "…"
}
