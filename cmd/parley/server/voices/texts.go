// This file holds the text that people see from this package.

package voices

const (
	textTooSlow   = "the speech server took too long"
	textRefused   = "the speech server refused it"
	textFailed    = "the speech server can't be reached, or failed"
	textNoRoom    = "too much is still waiting to be sent here"
	textTooLarge  = "the recording is too large for this channel"
	textNotStored = "I couldn't store the recording"
)
