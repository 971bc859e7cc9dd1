package dispatch

import (
	"fmt"

	"parley/channels"
	"parley/channels/markup"
)

// undeliveredText returns a sentence for people: the message did not reach its address, and
// why.
func undeliveredText(ch channels.Channel, d *delivery, code string) string {
	to := markup.Verbatim(d.out.To.String())
	if code == unknownOutcome {
		return fmt.Sprintf("This may not have reached %s: sending was cut off, and I can't tell whether it arrived.", to)
	}
	return fmt.Sprintf("I couldn't deliver this to %s: %s.", to, reasonInWords(ch, code))
}

// reasonInWords returns, for people, why a message was given up.
func reasonInWords(ch channels.Channel, code string) string {
	switch code {
	case gaveUp:
		return "the platform couldn't be reached after many tries"
	case panicked:
		return "sending it kept failing"
	case empty:
		return "there is nothing to see in it"
	}
	switch channels.RefusalOf(ch, code) {
	case channels.NoSuchChat:
		return "there is no such chat, or the bot is not in it"
	case channels.NotInChat:
		return "the bot is not in that chat"
	case channels.ChatArchived:
		return "that chat is archived"
	case channels.PersonRefuses:
		return "that person doesn't accept messages from the bot"
	case channels.NoRights:
		return "the bot may not write there"
	}
	return "the platform refused it (" + markup.Verbatim(code) + ")"
}

// isAboutContent reports whether a code refuses only this message's content, so that
// another message could still be sent to the same place.
func isAboutContent(ch channels.Channel, code string) bool {
	switch code {
	case expired, gaveUp, unknownOutcome, badAddress:
		return false
	}
	return channels.RefusalOf(ch, code) == ""
}
