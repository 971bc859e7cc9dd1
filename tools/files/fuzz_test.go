package files

import (
	"fmt"
	"strings"
	"testing"
)

func FuzzPatch(f *testing.F) {
	f.Add("1\n2\n3\n", "1\nzwei\n3\n", "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+zwei\n")
	f.Add("a", "a\n", "diff --git a/a b/a\nrename from a\nrename to b\n@@\n")
	f.Add("", "x", "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n")
	f.Fuzz(func(t *testing.T, old, now, patch string) {
		list, err := parsePatch(patch)
		for _, one := range list {
			made, failed := one.apply(t.Context(), []byte(old))
			if err == nil && failed == nil && one.to != "" && made == nil {
				t.Errorf("%q makes nothing of %q", patch, old)
			}
		}
		patchPaths(patch)
		if strings.Contains(old+now, "\r") || old == now {
			return
		}
		made := diff(old, now)
		if list, err = parsePatch(made); err != nil || len(list) != 1 {
			t.Fatalf("of %q and %q\n%s: %v", old, now, made, err)
		}
		got, err := list[0].apply(t.Context(), []byte(old))
		if err != nil || string(got) != now {
			t.Errorf("%q by\n%s\nis %q, %v; want %q", old, made, got, err, now)
		}
	})
}

// diff returns a patch of one hunk. It leaves out most of the lines that two texts have in common at both ends.
func diff(old, now string) string {
	a, b := lines(old), lines(now)
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	begin, end = max(0, begin-3), max(0, end-3)
	olds, news := a[begin:len(a)-end], b[begin:len(b)-end]
	var text strings.Builder
	fmt.Fprintf(&text, "--- a/a\n+++ b/a\n@@ -%d,%d +%d,%d @@\n", begin+min(1, len(olds)), len(olds), begin+min(1, len(news)), len(news))
	writeMarked(&text, "-", olds)
	writeMarked(&text, "+", news)
	return text.String()
}

func writeMarked(text *strings.Builder, mark string, list []string) {
	for _, line := range list {
		text.WriteString(mark + line)
		if !strings.HasSuffix(line, "\n") {
			text.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func lines(s string) []string {
	all := strings.SplitAfter(s, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}
