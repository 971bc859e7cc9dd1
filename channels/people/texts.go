// This file contains the texts from this package that people read.

package people

const (
	textOnlyInPrivate     = "%s%s only works in a private chat with me: say it there."
	textErased            = "I've erased it: I remember nothing about you beyond the logs and files of our conversations. "
	textForgetErasesThose = "`%sforget` erases those too."
	textMemoryUsage       = "Say `%[1]smemory` to see what I remember about you across conversations, and `%[1]smemory clear` to erase it. " +
		"`%[1]smemory keep ID` and `%[1]smemory refuse ID` accept and refuse what I propose to remember."
	textNothingRemembered = "I don't remember anything about you across conversations. Each conversation has its own notes in its MEMORY.md file: ask me for it there."
	textRemembered        = "This is what I remember about you in all our private conversations. `%smemory clear` erases it; to correct something, just tell me."
	textLinkCode          = "Within 10 minutes, say `link %s` to me in a private chat on another channel, the way you'd write any command there. Then I'll know that both accounts are yours. " +
		"I'll remember the same things about you in both places, and count both toward the same limits. Never give the code to anybody else."
	textLinkHere = "Say `link` to me in your private chat on a chat platform, the way you'd write any command there. " +
		"Then say `%slink CODE` here, with the code that I give you there."
	textAlreadyLinked   = "\n\nYou're linked to %s; `%slink off` undoes that."
	textTooManyCodes    = "You've entered %d wrong codes. I'll take the next one after %s UTC."
	textWrongCode       = "This code doesn't work: it's already been used, it's more than 10 minutes old, or you got it in this chat. Say `%slink` on one channel for a new code, and say that code on the other."
	textLinkedByOther   = "`%s` is now linked to you: I treat you as one person, with one memory and one set of limits. If that wasn't you, say `%slink off`, and tell an owner."
	textReadsToo        = " That account can now read our private conversation on the web page, if its token allows that."
	textLinked          = "You're linked to %s: I treat you as one person, with one memory and one set of limits. `%slink off` undoes that."
	textNotLinked       = "You aren't linked to anybody."
	textUnlinkedByOther = "`%s` is no longer linked to you. I'll keep what I've remembered so far about each of you."
	textUnlinked        = "You're no longer linked to %s. I'll keep what I've remembered so far about each of you."

	textProposals    = "I could remember this from our conversation for later ones, if you want me to:\n\n"
	textAlsoProposed = "\n\nI could also remember this, if you want me to:\n\n"
	textForAgent     = "For all my conversations with everybody: "
	textIsKept       = " **Kept.**\n"
	textIsRefused    = " **Refused.**\n"
	textIsExpired    = " **Dropped.**\n"
	textHowToDecide  = "\nSay `%[1]smemory keep ID` or `%[1]smemory refuse ID`. I'll drop whatever you haven't kept by %[2]s."
	textKept         = "I'll remember this: %s"
	textRefused      = "I won't remember this, and I won't propose it again: %s"
	textNoProposal   = "That isn't waiting for your decision. `%smemory` shows what is."
	textMemoryFull   = "There's no room for more. `%smemory` shows what I remember about you: ask me to shorten it, then say this again."

	textOnlyOwners = "Only an owner can open my web page from a chat."
	textNoPage     = "My web page can't be opened from other devices yet. Put a TLS proxy in front of Parley, set `public_url` in `[http]` to the proxy's https address, " +
		"and add its host name to `hosts`. On the machine I run on, `parley ui` opens the page."
	textPageLink = "Open this link within %d seconds. It works once and signs you in as the owner, so don't pass it on:\n\n%s"
)
