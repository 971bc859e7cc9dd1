package discord

import "time"

// A timing holds the intervals and time limits of Receive, which tests shorten.
type timing struct {
	saveInterval time.Duration // how often the cursor is saved
	helloTimeout time.Duration // how long the gateway may take to say hello
	// answerTimeout is how long publishing an interaction may take before Discord is told to wait.
	answerTimeout time.Duration
	overlap       time.Duration // how far before a gap history is read too
}

// defaultTiming returns the timing of every Channel outside of tests.
func defaultTiming() timing {
	return timing{saveInterval: 5 * time.Second, helloTimeout: 20 * time.Second, answerTimeout: answerTimeout, overlap: historyOverlap}
}

// historyOverlap is how far before an outage history is read too: when the last message arrived, an older one from another
// channel may still have been on its way.
const historyOverlap = 15 * time.Second

// answerTimeout is how long Discord waits for the first answer to an interaction, minus the time that the request
// takes. After that, Discord tells the person that the interaction failed.
const answerTimeout = 2 * time.Second
