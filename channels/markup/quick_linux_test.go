package markup_test

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/channels/markup"
)

// threadTime returns the CPU time that this thread has used, which does not depend on other load on the
// machine.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestPathologicalTextRendersQuickly(t *testing.T) {
	const mostTime = 5 * time.Second // without the race detector, it takes a tenth of a second
	const size = 200 << 10
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := markup.New()
	for _, s := range []string{
		">", "*", "*a ", "**a", "a**b", "***a_b ", "~~a ", "[", "[a](", "[](", "[a](b \"", "](", "- a\n", "1. ", "+ ", "- > ",
		"``a`", "<a ", "<!--", "<?", "&", "_a*", "~", "[]", "a_", "``\\", "\\(", "\\[", "\\", "a@", "|a\n|-\n", "* a\n ", "*a*\n", "x", "👨‍👩‍👧‍👦", "\u0301", "```\n",
	} {
		in := strings.Repeat(s, size/len(s))
		began := threadTime(t)
		pieces := r.Render(in, markup.TelegramHTML, 2000)
		if took := threadTime(t) - began; took > mostTime {
			t.Errorf("%q repeated: %v", s, took)
		}
		checkPieces(t, markup.TelegramHTML, 2000, pieces)
	}
	var stairs strings.Builder
	for i := range 440 {
		stairs.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	began := threadTime(t)
	r.Render(stairs.String(), markup.TelegramHTML, 4096)
	if took := threadTime(t) - began; took > mostTime {
		t.Errorf("stairs: %v", took)
	}
}
