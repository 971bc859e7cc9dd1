package canvas_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/sandbox"
	"parley/tools/toolstest"
)

// pageCall is a call whose picture is kept as the browser has made it.
const pageCall = `{"html":"<p>hello","height":200}`

// examplePicture returns a picture that a browser could have made.
func examplePicture(t *testing.T) []byte {
	t.Helper()
	var raw bytes.Buffer
	if err := png.Encode(&raw, image.NewGray(image.Rect(0, 0, 20, 10))); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

// A picture is stored only if the session's lease was checked after the browser had ended, and soon after that check.
// Otherwise the document is sent without a picture.
func TestThePictureOfALostSessionIsNotKept(t *testing.T) {
	began := time.Now()
	for _, lost := range []error{nil, errors.New("lost")} {
		kept := map[string]time.Time{} // by name: until when the session was certainly held
		keep := func(_ context.Context, call tools.Call, name string, _ []byte) (string, error) {
			kept[name] = call.HeldAt
			return canvas.Folder + "/" + name, nil
		}
		c := toolstest.New(canvas.New(keep, new(canvas.Reader), canvas.NewBrowser(printingSandbox{examplePicture(t)}, "x", time.Minute)))
		before := began.Add(-time.Minute)
		c.Call.HeldAt = before
		c.Call.CheckLease = func(context.Context) error { return lost }
		got := c.Want(t, "canvas", pageCall, "")
		at, has := kept["call-1-canvas.png"]
		if has == (lost != nil) || has && at.Before(began) || !kept["call-1-canvas.html"].Equal(before) || strings.Contains(got, "another process") != (lost != nil) {
			t.Errorf("lease %v: kept %v, told %s", lost, kept, got)
		}
	}
}

// A busySandbox is a sandbox whose commands end when their time is over.
type busySandbox struct{}

func (busySandbox) Run(ctx context.Context, _ sandbox.Command) (sandbox.Result, error) {
	<-ctx.Done()
	return sandbox.Result{Killed: sandbox.Timeout}, nil
}

// While all browsers are busy, the document is sent without a picture before the call's time is over.
func TestAPictureWaitsForOthersOnlyForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := canvas.NewBrowser(busySandbox{}, "x", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() { _ = b.Check(ctx) }()
		}
		synctest.Wait()
		c, kept := newCaller(b)
		if got := c.Want(t, "canvas", pageCall, ""); !strings.Contains(got, "too many other pictures") || len(kept) != 1 {
			t.Errorf("told %s, kept %d files", got, len(kept))
		}
		cancel()
		synctest.Wait()
	})
}

// A gatedSandbox is a sandbox whose commands end one by one. Each signals that it runs.
type gatedSandbox struct {
	runs, end chan struct{}
	picture   []byte
}

func (g gatedSandbox) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	select {
	case g.runs <- struct{}{}:
		<-g.end
		return printingSandbox{g.picture}.Run(ctx, c)
	case <-ctx.Done():
		return sandbox.Result{}, ctx.Err()
	}
}

// If one conversation has more pictures than slots, the next free browser makes the picture of another conversation.
func TestAnotherConversationsPictureIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := gatedSandbox{runs: make(chan struct{}, 10), end: make(chan struct{}), picture: examplePicture(t)}
		tool := canvas.New(func(context.Context, tools.Call, string, []byte) (string, error) { return "x", nil }, new(canvas.Reader), canvas.NewBrowser(box, "x", time.Minute))
		drawn := make(chan string, 10)
		for n, session := range []string{"busy", "busy", "busy", "busy", "other"} {
			go func() {
				c := toolstest.New(tool)
				c.Call.Session = session
				c.Want(t, "canvas", pageCall, "")
				drawn <- session
			}()
			synctest.Wait()
			if got, want := len(box.runs), min(n+1, 2); got != want {
				t.Errorf("%d browsers run, want %d", got, want)
			}
		}
		want := []string{"busy", "busy", "other", "busy", "busy"}
		for i := range want {
			box.end <- struct{}{} // the browsers that run came in this order
			if got := <-drawn; got != want[i] {
				t.Errorf("the picture %d is of %s, want %s", i, got, want[i])
			}
			synctest.Wait()
		}
	})
}
