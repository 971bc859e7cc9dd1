package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
)

// made converts a page, and tells how many megabytes that took in all.
func made(t *testing.T, page string) (text string, megabytes uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, err := markdown(t.Context(), page, &url.URL{Scheme: "https", Host: "example.com"})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	return text, (after.TotalAlloc - before.TotalAlloc) >> 20
}

// properties are declarations that hide nothing, besides one that might.
func properties(n int) string {
	var b strings.Builder
	b.WriteString("left:0")
	for i := range n {
		fmt.Fprintf(&b, ";%x:1", i)
	}
	return b.String()
}

func selectors(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(".c%x", i)
	}
	return strings.Join(all, ",")
}

// What a page's rules cost grows with the page, not with its selectors times its
// properties, nor with its properties times its elements.
func TestStylesTakeLittleMemory(t *testing.T) {
	for name, page := range map[string]string{
		"many selectors of many properties": "<style>" + selectors(2000) + "{" + properties(15_000) + "}</style><p class=c1>seen",
		"many elements of many properties":  "<style>p{" + properties(20_000) + "}</style>" + strings.Repeat("<p>seen", 2000),
		"many selectors of many elements":   "<style>" + selectors(100) + "{" + properties(2000) + "}</style>" + strings.Repeat(`<p class="c0 c1 c2 c3 c4 c5 c6 c7 c8">seen`, 2000),
		"one selector many times":           "<style>" + strings.Repeat(".a,", 100_000) + ".a{" + properties(10) + "}</style><p>seen",
	} {
		t.Run(name, func(t *testing.T) {
			text, megabytes := made(t, page)
			if !strings.Contains(text, "seen") || megabytes > 150 {
				t.Errorf("it took %d MB for %d bytes, and shows %.100q", megabytes, len(page), text)
			}
		})
	}
}

// A page whose styles take too much work is cut rather than shown with what it hides.
func TestStylesOfTooMuchWork(t *testing.T) {
	hostile := "<p>seen<style>" + manyOf(".x", 4000) + ".ghost{display:none}</style>" +
		strings.Repeat("<p class=x>filler", 3000) + "<p class=ghost>HIDDEN"
	text, _ := made(t, hostile)
	if !strings.Contains(text, "seen") || strings.Contains(text, "HIDDEN") || !strings.Contains(text, "[cut: this page's styles") {
		t.Errorf("it shows %.100q … %q", text, text[max(0, len(text)-200):])
	}
	text, _ = made(t, "<style>"+selectors(4000)+",.ghost{display:none}</style><p>seen<p class=ghost>HIDDEN<p class=cf>HIDDEN")
	if text != "seen" {
		t.Errorf("a long list of selectors shows %q", text)
	}
}

// manyOf are rules for n pairs of a class.
func manyOf(class string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s.y%d{left:0}", class, i)
	}
	return b.String()
}

// Of two rules of one weight the later one holds, whatever it goes by.
func TestTheLaterRuleHolds(t *testing.T) {
	text, _ := made(t, "<style>.b{display:none}.a{display:block}.d{display:block}.c{display:none}</style><p class='a b'>seen<p class='c d'>HIDDEN")
	if text != "seen" {
		t.Errorf("it shows %q", text)
	}
}

// ending is a context that ends when it has been asked so many times.
type ending struct {
	context.Context
	asked, left int
}

func (e *ending) Err() error {
	if e.asked++; e.asked > e.left {
		return context.Canceled
	}
	return nil
}

// Converting stops wherever it stands when its time is over.
func TestConvertingEndsWithItsTime(t *testing.T) {
	page := "<style>" + manyOf(".x", 1000) + "</style>" + strings.Repeat("<div><p class=x>words</p></div>", 1000)
	whole := &ending{Context: t.Context(), left: 1 << 30}
	if _, err := markdown(whole, page, &url.URL{Scheme: "https", Host: "example.com"}); err != nil || whole.asked < 5000 {
		t.Fatalf("it asked %d times whether its time is over, %v", whole.asked, err)
	}
	for left := range whole.asked {
		if left > 10 && left < whole.asked-10 && left%500 != 0 {
			continue
		}
		ctx := &ending{Context: t.Context(), left: left}
		if text, err := markdown(ctx, page, &url.URL{Scheme: "https", Host: "example.com"}); !errors.Is(err, context.Canceled) || text != "" {
			t.Errorf("after %d of %d times it gave %d bytes, %v", left, whole.asked, len(text), err)
		}
		if more := ctx.asked - left; more > 20 {
			t.Errorf("it went on %d times after its time was over at %d", more, left)
		}
	}
}
