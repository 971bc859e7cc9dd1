// This file contains the texts from this package that people read.

package gateway

const (
	textMarked            = " I've marked the messages I didn't accept."
	textUnknownID         = "Your id is `%s`, and I don't know you yet."
	textAdmittedMeanwhile = "You can talk to me now. Please say that again."
	textAskForListing     = " Whoever runs this bot can let you in by adding your id to its configuration:\n\n```\n[channels.%s]\nallow_from = [%q]\n```"
	textMembersOnly       = " Only full members of this workspace can talk to me."
	textNoEarlier         = "(The earlier messages in this thread couldn't be read.)"
	textUnreadable        = "I can't read this message: something in it trips me up. Please write it another way."
	textJustWrite         = "Just write to me."
	textNoSessionToTalk   = "You can't talk to me here: no agent is set up for this chat."
	textNotYet            = "You can't talk to me yet: your id is `%s`, and I don't know you."
	textWriteForCode      = " Write to me and I'll answer with a code. Whoever runs this bot can use it to let you in."
	textRequestClosed     = "This request is closed: somebody already decided it, or it's over an hour old. The person can write to me again."
	textNoAccess          = "This person doesn't have access here."
	textOwnersOnly        = "Only this bot's owners can decide who may talk to it."
	textPressNotTaken     = "I couldn't act on that button. Please type the command instead."
	textNoSession         = "I couldn't accept this message: no agent is set up for this chat."
	textTooLong           = "I couldn't accept this message: it's too long. Please send it in parts."
	textAsksToTalk        = " is asking to talk to me."
	textApproveCommand    = " To let them in, run this within the hour:\n\n```\nparley pairing approve %s\n```"
	textAdmitted          = "You can talk to me now: just write. I didn't keep what you wrote before, so please say it again."
)

func textAskForPairing(code string) string {
	return " Whoever runs this bot can let you in with this command, within the hour:\n\n```\nparley pairing approve " + code + "\n```"
}

func textOwnsNow(prefix string) string {
	return "You own this bot now. Say " + prefix + "help to see what I understand."
}

func textTooManyWait(prefix string) string {
	return "Too many messages are already waiting here, so I didn't accept this one. Please say it again once I've answered, or say " + prefix + "stop."
}

func textUnknownCommand(name string) string {
	return "I don't know the command " + name + "."
}

func textMeant(name string) string {
	return " Did you mean " + name + "?"
}

func textSeeHelp(name string) string {
	return " Say " + name + " to see what's available."
}
