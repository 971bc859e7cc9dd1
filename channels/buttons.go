package channels

import (
	"errors"
	"unicode/utf16"

	"parley/bus"
	"parley/channels/markup"
)

// A ButtonShower shows a part's buttons, in Send and Edit. When a person presses a button, it publishes a message
// from that person, with Pressed set, the button's Says as its Text, and the id of the message with the button as
// ReplyTo. The message's id is the same however often the platform delivers the press. The channel acknowledges a
// press to the platform only after publish has returned nil or ErrNotAdmitted.
type ButtonShower interface {
	// MaxButtons returns how many buttons a part may have, and how many bytes the Says of a button may have.
	MaxButtons() (count, bytes int)
}

// ErrNotAdmitted says that the person who pressed a button may not talk to the bot. The press was not published; a
// ButtonShower tells the person so, and doesn't publish the press again.
var ErrNotAdmitted = errors.New("whoever pressed the button may not talk to the bot")

// TextNotAdmitted is the text that a ButtonShower shows to a person who presses a button but may not talk to the bot.
const TextNotAdmitted = "I don't know you, so this button won't work for you."

// maxLabelUnits is the length of the longest label that a button gets, in UTF-16 units. Every platform accepts
// labels of this length.
const maxLabelUnits = 75

// AsButtonShower returns the channel as a ButtonShower; false if it isn't one.
func AsButtonShower(ch Channel) (ButtonShower, bool) { return ability[ButtonShower](ch) }

// ShownButtons returns the buttons that the channel can show, with their labels shortened if necessary; none if the
// channel shows no buttons.
func ShownButtons(ch Channel, all []bus.Button) []bus.Button {
	s, ok := AsButtonShower(ch)
	if !ok {
		return nil
	}
	count, bytes := s.MaxButtons()
	var shown []bus.Button
	for _, b := range all {
		b.Label = shortLabel(b.Label)
		if b.Label != "" && b.Says != "" && len(b.Says) <= bytes && len(shown) < count {
			shown = append(shown, b)
		}
	}
	return shown
}

// shortLabel returns a label on one line, cut with "…" if it is too long.
func shortLabel(label string) string {
	label = markup.OneLine(label, len(label))
	units, cut := 0, 0
	for i, r := range label {
		if units += utf16.RuneLen(r); units < maxLabelUnits {
			cut = i + len(string(r))
		}
	}
	if units <= maxLabelUnits {
		return label
	}
	return label[:cut] + "…"
}
