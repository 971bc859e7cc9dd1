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

// convertMeasured converts a page, and returns how many megabytes were allocated.
func convertMeasured(t *testing.T, page string) (text string, megabytes uint64) {
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

// cssProperties returns n declarations that hide nothing, and one that might.
func cssProperties(n int) string {
	var b strings.Builder
	b.WriteString("left:0")
	for i := range n {
		fmt.Fprintf(&b, ";%x:1", i)
	}
	return b.String()
}

func cssSelectors(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(".c%x", i)
	}
	return strings.Join(all, ",")
}

// The cost of a page's rules grows with the page, not with the product of its selectors and properties, or of its
// properties and elements.
func TestStylesTakeLittleMemory(t *testing.T) {
	for name, page := range map[string]string{
		"many selectors of many properties": "<style>" + cssSelectors(2000) + "{" + cssProperties(15_000) + "}</style><p class=c1>seen",
		"many elements of many properties":  "<style>p{" + cssProperties(20_000) + "}</style>" + strings.Repeat("<p>seen", 2000),
		"many selectors of many elements":   "<style>" + cssSelectors(100) + "{" + cssProperties(2000) + "}</style>" + strings.Repeat(`<p class="c0 c1 c2 c3 c4 c5 c6 c7 c8">seen`, 2000),
		"one selector many times":           "<style>" + strings.Repeat(".a,", 100_000) + ".a{" + cssProperties(10) + "}</style><p>seen",
	} {
		t.Run(name, func(t *testing.T) {
			text, megabytes := convertMeasured(t, page)
			if !strings.Contains(text, "seen") || megabytes > 150 {
				t.Errorf("it took %d MB for %d bytes, and shows %.100q", megabytes, len(page), text)
			}
		})
	}
}

// A page whose styles take too much work is cut off, rather than shown with its hidden text.
func TestStylesOfTooMuchWork(t *testing.T) {
	hostile := "<p>seen<style>" + classRules(".x", 4000) + ".ghost{display:none}</style>" +
		strings.Repeat("<p class=x>filler", 3000) + "<p class=ghost>HIDDEN"
	text, _ := convertMeasured(t, hostile)
	if !strings.Contains(text, "seen") || strings.Contains(text, "HIDDEN") || !strings.Contains(text, "[cut: this page's styles") {
		t.Errorf("it shows %.100q … %q", text, text[max(0, len(text)-200):])
	}
	text, _ = convertMeasured(t, "<style>"+cssSelectors(4000)+",.ghost{display:none}</style><p>seen<p class=ghost>HIDDEN<p class=cf>HIDDEN")
	if text != "seen" {
		t.Errorf("a long list of selectors shows %q", text)
	}
}

// classRules returns rules for n pairs of a class.
func classRules(class string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s.y%d{left:0}", class, i)
	}
	return b.String()
}

// If two rules have the same weight, the later one applies, whether it is for a tag, a class or an id.
func TestTheLaterRuleHolds(t *testing.T) {
	text, _ := convertMeasured(t, "<style>.b{display:none}.a{display:block}.d{display:block}.c{display:none}</style><p class='a b'>seen<p class='c d'>HIDDEN")
	if text != "seen" {
		t.Errorf("it shows %q", text)
	}
}

// An endingContext is a context that ends when it was checked that many times.
type endingContext struct {
	context.Context
	asked, left int
}

func (e *endingContext) Err() error {
	if e.asked++; e.asked > e.left {
		return context.Canceled
	}
	return nil
}

// Converting stops wherever it is when its time is over.
func TestConvertingEndsWithItsTime(t *testing.T) {
	page := "<style>" + classRules(".x", 1000) + "</style>" + strings.Repeat("<div><p class=x>words</p></div>", 1000)
	whole := &endingContext{Context: t.Context(), left: 1 << 30}
	if _, err := markdown(whole, page, &url.URL{Scheme: "https", Host: "example.com"}); err != nil || whole.asked < 5000 {
		t.Fatalf("it asked %d times whether its time is over, %v", whole.asked, err)
	}
	for left := range whole.asked {
		if left > 10 && left < whole.asked-10 && left%500 != 0 {
			continue
		}
		ctx := &endingContext{Context: t.Context(), left: left}
		if text, err := markdown(ctx, page, &url.URL{Scheme: "https", Host: "example.com"}); !errors.Is(err, context.Canceled) || text != "" {
			t.Errorf("after %d of %d times it gave %d bytes, %v", left, whole.asked, len(text), err)
		}
		if more := ctx.asked - left; more > 20 {
			t.Errorf("it went on %d times after its time was over at %d", more, left)
		}
	}
}
