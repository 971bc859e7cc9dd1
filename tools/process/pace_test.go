package process

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// setPercent returns how much garbage the collector lets come together, in percent of what is in use.
func setPercent() uint64 {
	read := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(read)
	return read[0].Value.Uint64()
}

// awaitPercent collects until the collector's percentage is within these bounds.
func awaitPercent(t *testing.T, least, most uint64) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; runtime.GC() {
		percent := setPercent()
		if percent >= least && percent <= most {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the percentage is %d, not %d to %d", percent, least, most)
		}
	}
}

func TestMuchIsCollectedMoreOften(t *testing.T) {
	t.Setenv("GOGC", "")
	restore := Adapt()
	awaitPercent(t, usualPercent+1, seldomPercent)
	much := make([][]byte, 100)
	for i := range much {
		much[i] = make([]byte, 1<<20)
	}
	awaitPercent(t, oftenPercent, 2*oftenPercent) // small differences are left
	runtime.KeepAlive(much)
	awaitPercent(t, usualPercent+1, seldomPercent)

	restore()
	if percent := setPercent(); percent != usualPercent {
		t.Errorf("after all it is %d %%", percent)
	}
}

func TestTheOperatorDecides(t *testing.T) {
	t.Setenv("GOGC", "30")
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	restore := Adapt()
	for range 5 {
		runtime.GC()
	}
	restore()
	if percent := setPercent(); percent != 30 {
		t.Errorf("GOGC is 30 and the percentage %d", percent)
	}
}

func TestPercentFor(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		u    use
		want uint64
	}{
		{use{}, seldomPercent},
		{use{live: 2 * mb}, seldomPercent},
		{use{live: 7 * mb, roots: mb, stacks: mb}, 400},
		{use{live: 20 * mb, stacks: 4 * mb}, 280},
		{use{live: 30 * mb, stacks: 5 * mb}, 150},
		{use{live: 40 * mb, stacks: 20 * mb}, 50},
		{use{live: 64 * mb, stacks: 60 * mb, roots: 20 * mb}, oftenPercent},
		{use{live: 1 << 40}, oftenPercent},
		{use{live: math.MaxInt64}, oftenPercent},
	} {
		if got := percentFor(c.u); got != c.want {
			t.Errorf("%+v: %d %%, want %d", c.u, got, c.want)
		}
	}
}
