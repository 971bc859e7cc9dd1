// Package mapped gives back those pages of the program's own file that only its start has needed.
//
// The system maps much more of the file than is read, because whoever reads a page gets its
// neighbours too: all in all 35 to 55 MB of resident memory, most of it for the start. What is still
// needed afterwards is mapped again once it is read, which takes less than a millisecond in all and
// usually nothing from the disk, because the system keeps the pages in its cache as long as it has
// room. So what falls is the resident memory (RSS) of the process, and not what its control group is
// charged with, to which the cache belongs.
package mapped

import (
	"log/slog"
	"time"
)

// startTime is when the start is over.
const startTime = 2 * time.Second

// ReleaseAfterStart releases the pages once the start is over, unless cancel is called before.
func ReleaseAfterStart(log *slog.Logger) (cancel func()) {
	timer := time.AfterFunc(startTime, func() {
		if err := release("/proc/self/exe"); err != nil {
			log.Debug("the pages that the start has needed stay in memory", slog.Any("error", err))
		}
	})
	return func() { timer.Stop() }
}
