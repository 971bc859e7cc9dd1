// This file holds the text that models read from this package.

package jobs

const (
	textGoesOn          = "It goes on after this turn, and its end is told here by itself: there is no need to wait for it."
	textStartedAndEnded = ", started at %s UTC, %s after %s."
	textLost            = " What it did until then is done, and it may have been cut off anywhere: inspect before repeating it."
	textPrinted         = " It printed %d bytes: job_output shows their end, %s has them, and its folder is %s."
	textAboutJob        = " Nobody has said anything: this is about the job alone. Go on with what it was for, or say in a few words what came of it."
)
