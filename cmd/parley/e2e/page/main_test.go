// Package page tests the web page in a real browser, with the real program and a scripted model.
package page

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/cmd/parley/parleytest"
	"parley/tools/canvas/canvastest"
)

func TestMain(m *testing.M) {
	code := parleytest.Main(m)
	if canvastest.ChromiumPath() != "" {
		if ctx, err := chrome(); err == nil {
			_ = chromedp.Cancel(ctx) // the tests are over
		}
	}
	os.Exit(code)
}
