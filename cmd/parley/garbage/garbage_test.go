package garbage

import (
	"math"
	"runtime/metrics"
	"testing"
	"time"
)

// settings returns what the collector goes by: how much garbage it lets come together, in
// percent of what is in use, and how much memory the program may take.
func settings() (percent, limit uint64) {
	read := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(read)
	return read[0].Value.Uint64(), read[1].Value.Uint64()
}

// awaitStarted waits until the collector runs after the program's start.
func awaitStarted(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		percent, limit := settings()
		if percent != math.MaxUint64 && limit > startMemory {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is collected long after the start: %d %%, %d bytes", percent, limit)
		}
	}
}

func TestTheCollectorRunsAgainAfterTheStart(t *testing.T) {
	awaitStarted(t)
	percent, limit := settings()
	resume := pause()
	if paused, bound := settings(); paused != math.MaxUint64 || bound != startMemory {
		t.Errorf("while it is paused it collects at %d %% and %d bytes, not at %d bytes alone", paused, bound, startMemory)
	}
	resume()
	if again, bound := settings(); again != percent || bound != limit {
		t.Errorf("then it collects at %d %% and %d bytes, and did at %d %% and %d bytes before", again, bound, percent, limit)
	}
}
