// This file contains the texts from this package that people read.

package recall

const (
	textNotAsked       = "Some chats were left out, because their platforms can't say right now who's in them."
	textKnowledgeCut   = "Only part of the knowledge folder was searched."
	textPage           = "the web page"
	textTerminal       = "the terminal"
	textOn             = " on "
	textPrivate        = "private chat on "
	textHere           = " (this conversation)"
	textOfConversation = "memory of this conversation"
	textOfAgent        = "memory of all conversations"
	textOfPerson       = "memory about the person"

	textUsage        = "Tell me what to look for: `%srecall WORDS`. I'll find messages, answers and memories with those words."
	textFound        = "Here's what I found:\n"
	textNothing      = "I found nothing with those words that I can show you here."
	textGroupOnly    = "\nHere, I only search this chat, not our other conversations. Ask me in a private chat to search those, too."
	textCannotSearch = "I can't search right now. Please try again in a moment."
	textYou          = "me"
)
