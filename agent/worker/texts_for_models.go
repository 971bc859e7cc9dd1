// This file holds the text that models read from this package.

package worker

const (
	textSubAgentStopped = "The sub-agent was stopped before it had ended."
	textNotSent         = "Your answer could not be sent."
	textRepeats         = "You have called %s %d times with the same arguments and the same result. Try something else."
	textFileMissing     = "Your answer went without a file that it shows. "
	textNotAloud        = "Your answer was sent as text, but it could not be read aloud: "
	textSubAgentBroken  = "The sub-agent's session cannot be worked on. The server's log says why."
	textEdited          = "A person has edited an earlier message of theirs. It reads now:"
	textReacted         = "%s %s %s to what you said here. It needs no answer."
	textDeletedUnread   = "A message was deleted before you have read it."
)

func textUndone(reply string) string {
	return "Somebody has said /undo to take back changes of files, and was told: " + reply
}

func textLastStep(why string) string {
	return "This turn has reached a limit (" + why + "), so this is your last answer and tools are off: say what is done and what remains."
}
