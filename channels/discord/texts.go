// This file contains the texts from this package that people read.

package discord

const (
	textSendInThreads = "Send Messages in Threads"
	textReadHistory   = "Read Message History"
	textNotSaved      = "I couldn't save this, so nothing happened. Please try again."
)

func textCommandReceived(command string) string {
	return "Got it: `" + command + "`."
}
