package dispatch

import (
	"slices"
	"time"
)

const unknownNeedWait = 30 * time.Second // wait where another release has to send

// unknownNeed is the first need that this release does not know.
func unknownNeed(needs []string) (string, bool) {
	known := []string{} // none has been given out yet
	for _, need := range needs {
		if !slices.Contains(known, need) {
			return need, true
		}
	}
	return "", false
}
