package page

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"parley/cmd/parley/parleytest"
	"parley/tools/canvas/canvastest"
)

// A browser is a separate profile in the Chromium of the tests.
type browser struct {
	t   testing.TB
	ctx context.Context
}

// chrome starts one Chromium for all tests of this package.
var chrome = sync.OnceValues(func() (context.Context, error) {
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(canvastest.ChromiumPath()), chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-renderer-backgrounding", true), chromedp.Flag("disable-backgrounding-occluded-windows", true),
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...) // TestMain ends it
	ctx, _ := chromedp.NewContext(allocator)
	return ctx, chromedp.Do(ctx)
})

// newBrowser returns a browser without cookies, which no other test uses.
func newBrowser(t testing.TB) *browser {
	t.Helper()
	canvastest.Chromium(t)
	all, err := chrome()
	if err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	ctx, leave := chromedp.NewContext(all, chromedp.WithNewBrowserContext())
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("the browser has no new profile: %v", err)
	}
	t.Cleanup(leave)
	return &browser{t: t, ctx: ctx}
}

// A tab is a tab of a browser. A test fails if the console of its tab contains an error at the end.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	console  []string
	forgiven []string // texts of console messages that do not count as errors
}

// open opens an address in a new tab of this size.
func (b *browser) open(address string, width, height int64) *tab {
	b.t.Helper()
	ctx, leave := chromedp.NewContext(b.ctx)
	x := &tab{t: b.t, ctx: ctx}
	said := chromedp.Console(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for m, err := range said {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.IsException() {
				x.mu.Lock()
				x.console = append(x.console, m.Source+" "+m.String())
				x.mu.Unlock()
			}
		}
	}()
	b.t.Cleanup(func() {
		if b.t.Failed() {
			b.t.Logf("the page shows:\n%s", x.text("body"))
			x.picture("failed-" + strings.ReplaceAll(b.t.Name(), "/", "-"))
		}
		leave()
		<-read
		if wrong := x.complaints(); len(wrong) > 0 {
			b.t.Errorf("the console has %q", wrong)
		}
	})
	x.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(address))
	return x
}

// complaints returns the console's messages, without the forgiven ones.
func (x *tab) complaints() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(x.console), func(line string) bool {
		return slices.ContainsFunc(x.forgiven, func(text string) bool { return strings.Contains(line, text) })
	})
}

// forgive makes the tab ignore console messages that contain a text, for example that a killed server cannot be
// reached. It also applies to later messages, because the browser may report such errors late.
func (x *tab) forgive(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgiven = append(x.forgiven, text)
}

// do runs actions in the tab, and fails the test if one of them takes too long.
func (x *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, parleytest.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		x.t.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression in the page.
func eval[T any](x *tab, js string) T {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, parleytest.Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		x.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// wait waits until a JavaScript expression is true in the page.
func (x *tab) wait(what, js string) {
	x.t.Helper()
	for deadline := time.Now().Add(parleytest.Patience); !eval[bool](x, "!!("+js+")"); {
		if time.Now().After(deadline) {
			x.t.Fatalf("waited in vain for %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// waitText waits until an element contains a text.
func (x *tab) waitText(css, text string) {
	x.t.Helper()
	x.wait(fmt.Sprintf("%q in %s", text, css), fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.textContent.includes(%q))", css, text))
}

// reload reloads the page, and returns once the old page is gone.
func (x *tab) reload() {
	x.t.Helper()
	eval[bool](x, "(window.before = true, setTimeout(() => location.reload()), true)")
	for deadline := time.Now().Add(parleytest.Patience); ; <-time.After(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(x.ctx, parleytest.Patience)
		anew, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!window.before"))
		cancel()
		if err == nil && anew { // an expression fails while the tab navigates
			return
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("the page isn't loaded again: %v", err)
		}
	}
}

// text returns the texts of the elements that match a selector, one on each line.
func (x *tab) text(css string) string {
	x.t.Helper()
	// The browser does not lay out what is out of sight, so it has no inner text.
	const read = "e.checkVisibility({contentVisibilityAuto: true}) ? e.innerText : e.textContent"
	return eval[string](x, fmt.Sprintf("[...document.querySelectorAll(%q)].map(e => %s).join('\\n')", css, read))
}

// count returns how often a text is in the elements that match a selector.
func (x *tab) count(css, text string) int { return strings.Count(x.text(css), text) }

// press clicks the button with this text.
func (x *tab) press(label string) {
	x.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button, a.button')].find(b => b.offsetParent && !b.disabled && b.textContent.trim() === %q)", label)
	x.wait("the button "+label, find)
	eval[bool](x, "("+find+".click(), true)")
}

// pressLabel clicks the button with this label for screen readers.
func (x *tab) pressLabel(label string) {
	x.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button')].find(b => b.offsetParent && !b.disabled && b.ariaLabel === %q)", label)
	x.wait("the button "+label, find)
	eval[bool](x, "("+find+".click(), true)")
}

// write types a text into a field, and then presses the Enter key.
func (x *tab) write(css, text string) {
	x.t.Helper()
	x.do(chromedp.WaitVisible(css), chromedp.SendKeys(css, text))
	x.key("Enter", "\r", 13, 0)
}

// key presses a key as a keyboard does, so that the page can prevent the default action.
func (x *tab) key(name, text string, code int64, modifiers int64) {
	x.t.Helper()
	x.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		press := input.DispatchKeyEventParams{Type: "keyDown", Key: name, Code: name, Text: text, WindowsVirtualKeyCode: code, Modifiers: modifiers}
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, press); err != nil {
			return err
		}
		press.Type, press.Text = "keyUp", ""
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, press)
		return err
	}))
}

// look sets the color scheme.
func (x *tab) look(scheme string) {
	x.t.Helper()
	prefers := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	x.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, prefers)
		return err
	}))
}

// picture saves a screenshot of the tab in the folder that PARLEY_TEST_PICTURES names, so that people can look at it.
func (x *tab) picture(name string) {
	x.t.Helper()
	dir := os.Getenv("PARLEY_TEST_PICTURES")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, parleytest.Patience)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		x.t.Log("no picture: ", err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "page-"+cmp.Or(name, "x")+".png"), raw, 0o600); err != nil {
		x.t.Log("no picture: ", err)
	}
}
