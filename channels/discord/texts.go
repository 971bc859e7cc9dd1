// This file has what people read from this package.

package discord

const (
	textSendInThreads = "Send Messages in Threads"
	textReadHistory   = "Read Message History"
	textNotSaved      = "I couldn't save this, so nothing happened. Please try again."
)

func textGot(command string) string {
	return "Got it: `" + command + "`."
}
