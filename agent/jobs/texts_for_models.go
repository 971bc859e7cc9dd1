// This file holds the text that models read from this package.

package jobs

const (
	textContinues       = "It goes on after this turn, and its end is told here by itself: there is no need to wait for it."
	textStartedAndEnded = ", started at %s UTC, %s after %s."
	textLost            = " What it did until then is done, and it may have been cut off anywhere: inspect before repeating it."
	textPrinted         = " It printed %d bytes: job_output shows their end, %s has them, and its folder is %s."
	textAboutJob        = " Nobody has said anything: this is about the job alone. Go on with what it was for, or say in a few words what came of it."
	textBadNode         = "the node didn't say how it ended"
	textNoAnswer        = "its node was removed, or has been away for too long, so it isn't known how it ended"
	textNodeSaid        = "\nThe node said: "
	textCutOffThere     = "the node was cut off while the job ran, and everything that it had started has ended"
	textNodeStopped     = "the node was stopped, along with everything that the job had started"
	textNodeAway        = "the node wasn't here in time, so nothing was done"
	textNodeForbids     = "the node's own settings forbid it, so nothing was done"
	textNodeCouldNot    = "the node couldn't run it: job_output shows why"
)
