package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/cmd/parley/config"
	"parley/tools/canvas"
	"parley/tools/sandbox"
)

// checkCanvas makes a picture with the configured browser; it returns no finding if none is configured. err says why
// there is no sandbox; nil if there is one.
func checkCanvas(ctx context.Context, cfg *config.Config, box *sandbox.Box, err error) []Finding {
	program := cfg.Canvas.Browser
	if program == "" {
		return nil
	}
	f := Finding{Part: "canvas", State: fine}
	browser, remedy := canvas.NewBrowser(box, program, canvas.BrowserTime), textPictureRemedy
	began := time.Now()
	switch missing := browser.CheckProgram(); {
	case missing != nil:
		err, remedy = missing, textBrowserRemedy
	case err != nil:
	case box.Mode() != sandbox.Bubblewrap:
		err = errors.New(textNeedsBubblewrap)
	default:
		err = browser.Check(ctx)
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf(textNoPicture, program, err), fmt.Sprintf(remedy, settingOf(cfg, "canvas.browser"))
		return []Finding{f}
	}
	f.Detail = fmt.Sprintf(textPicture, program, time.Since(began).Milliseconds())
	return []Finding{f}
}
