// This file contains the texts from this package that people read.

package dispatch

import (
	"fmt"

	"parley/channels"
	"parley/channels/markup"
)

const (
	textFileNotSent = "(I couldn't send the file %s: %s.)"
	textUnknown     = "This may not have reached %s: sending was cut off, and I can't tell whether it arrived."
	textUndelivered = "I couldn't deliver this to %s: %s."
)

// textMore follows the beginning of a text that is sent as a file.
const textMore = "_(There's more: the whole text is in the file below.)_"

// textAnswerBelow replaces a draft that the answer could not replace.
const textAnswerBelow = "_(The answer is below.)_"

// textNotShown tells a chat why it gets no answer, or no more of it.
func textNotShown(more bool, why string) string {
	what := "I have an answer"
	if more {
		what = "There's more to this answer"
	}
	return what + ", but I can't show it here: " + why + ". Please ask again, perhaps for something shorter or plainer."
}

// undeliveredText returns a sentence for people that says that the message did not reach its address, and why.
func undeliveredText(ch channels.Channel, d *delivery, code string) string {
	to := markup.Verbatim(d.out.To.String())
	if code == codeUnknownOutcome {
		return fmt.Sprintf(textUnknown, to)
	}
	return fmt.Sprintf(textUndelivered, to, reasonInWords(ch, code))
}

// reasonInWords returns a text for people that says why a message was given up.
func reasonInWords(ch channels.Channel, code string) string {
	switch code {
	case codeGivenUp:
		return "the platform couldn't be reached after many tries"
	case codePanicked:
		return "sending it kept failing"
	case codeEmpty:
		return "there's nothing visible in it"
	}
	switch channels.RefusalOf(ch, code) {
	case channels.NoSuchChat:
		return "there's no such chat, or I'm not in it"
	case channels.NotInChat:
		return "I'm not in that chat"
	case channels.ChatArchived:
		return "that chat is archived"
	case channels.PersonRefuses:
		return "that person doesn't accept messages from me"
	case channels.NoRights:
		return "I'm not allowed to write there"
	}
	return "the platform refused it (" + markup.Verbatim(code) + ")"
}
