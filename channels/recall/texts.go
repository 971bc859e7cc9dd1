// This file has what people read from this package.

package recall

const (
	textNotAsked       = "Some chats were left out, because their platform can't say now who is in them."
	textKnowledgeCut   = "Only a part of the knowledge folder was searched."
	textPage           = "the web page"
	textTerminal       = "the terminal"
	textOn             = " on "
	textPrivate        = "private chat on "
	textHere           = " (this conversation)"
	textOfConversation = "memory of this conversation"
	textOfAgent        = "memory of all conversations"
	textOfPerson       = "memory of the person"

	textUsage        = "Tell me what to look for: `%srecall WORDS`. I'll find messages, answers and memories that have these words."
	textFound        = "Here is what I found:\n"
	textNothing      = "I found nothing with these words that you may see here."
	textGroupOnly    = "\nOf our conversations, I only search this chat here. Ask me in a private chat to search the rest."
	textCannotSearch = "I can't search now. Please try again in a moment."
	textYou          = "me"
)
