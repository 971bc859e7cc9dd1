//go:build linux

package canvas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/tools/canvas"
	"parley/tools/canvas/canvastest"
	"parley/tools/sandbox"
	"parley/tools/testrace"
	"parley/tools/toolstest"
)

// newBrowser returns a Browser with the Chromium of this machine. Chromium runs in no other mode of the sandbox.
func newBrowser(t *testing.T) *canvas.Browser {
	t.Helper()
	return canvas.NewBrowser(openSandbox(t), canvastest.Chromium(t), 2*time.Minute)
}

func openSandbox(t *testing.T, read ...string) sandbox.Sandbox {
	t.Helper()
	box, err := sandbox.Open(t.Context(), sandbox.Config{
		Mode: sandbox.Bubblewrap, Read: read, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Skipf("NOT TESTED: this machine has no sandbox: %v", err)
	}
	return box
}

// A callResult is a call's result as the model gets it.
type callResult struct{ Path, Picture, Note string }

// drawCanvas makes a call that must succeed, and returns its result and the picture; nil if there is none.
func drawCanvas(t *testing.T, b *canvas.Browser, args string) (callResult, image.Image) {
	t.Helper()
	c, kept := newCaller(b)
	var got callResult
	if err := json.Unmarshal([]byte(c.Want(t, "canvas", args, "")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Picture == "" {
		return got, nil
	}
	raw := kept.onlyFile(t, ".png")
	if dir := os.Getenv("PARLEY_TEST_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".png"), []byte(raw), 0o600); err != nil {
			t.Error(err)
		}
	}
	shot, err := png.Decode(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return got, shot
}

// colors returns how many pixels of a picture have each color.
func colors(p image.Image) map[string]int {
	all := map[string]int{}
	for y := range p.Bounds().Max.Y {
		for x := range p.Bounds().Max.X {
			r, g, b, _ := p.At(x, y).RGBA()
			all[fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)]++
		}
	}
	return all
}

func TestPictures(t *testing.T) {
	b := newBrowser(t)
	for name, c := range map[string]struct{ args, color string }{
		"table":  {`{"title":"Sales","table":{"columns":["who","much"],"rows":[["Ann","1"],["Bob","2"]]}}`, "#f6f7f9"},
		"plot":   {`{"title":"Load","plot":{"kind":"line","x":["1","2","3"],"series":[{"name":"one","values":[1,3,2]},{"name":"two","values":[2,2,5]}]}}`, "#2f5fd0"},
		"bars":   {`{"plot":{"kind":"bar","x":["Mon","Tue","Wed"],"series":[{"name":"one","values":[1,3,-2]},{"name":"two","values":[2,2,5]}]}}`, "#b3261e"},
		"script": {toolstest.Args("html", `<div id=a style="width:90px;height:90px"></div><script>a.style.background='#123456'</script>`, "height", 200), "#123456"},
	} {
		t.Run(name, func(t *testing.T) {
			got, shot := drawCanvas(t, b, c.args)
			if shot == nil {
				t.Fatalf("there is no picture: %s", got.Note)
			}
			size := shot.Bounds()
			if colors(shot)[c.color] < 100 || size.Dx() < 600 || size.Dx() > 1600 || size.Dy() < 100 || size.Dy() > 1200 {
				t.Errorf("the picture has %v, and %d pixels of %s", size, colors(shot)[c.color], c.color)
			}
		})
	}
	t.Run("page without a height", func(t *testing.T) {
		page := `<body style="margin:0"><div style="height:%dpx;width:400px;background:#123456"></div>`
		for high, want := range map[int]int{300: 624, 3000: 2000} { // two pixels each, and a margin
			if _, shot := drawCanvas(t, b, toolstest.Args("html", fmt.Sprintf(page, high))); shot == nil || shot.Bounds().Size() != image.Pt(824, want) {
				t.Errorf("the picture of a page of %d pixels hasn't the size %d by %d", high, 824, want)
			}
		}
	})
	t.Run("long", func(t *testing.T) {
		rows := strings.Repeat(`["x"],`, 40)
		if got, shot := drawCanvas(t, b, `{"table":{"columns":["a"],"rows":[`+rows+`["x"]]}}`); shot == nil || shot.Bounds().Dy() < 1000 {
			t.Errorf("told %+v", got)
		}
		rows = strings.Repeat(rows, 4)
		if got, shot := drawCanvas(t, b, `{"table":{"columns":["a"],"rows":[`+rows+`["x"]]}}`); shot != nil || !strings.Contains(got.Note, "too long for a picture") {
			t.Errorf("told %+v", got)
		}
	})
}

// A hostile document reaches neither the network nor files of the machine that makes its picture.
func TestAHostileDocumentReachesNothing(t *testing.T) {
	b := newBrowser(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int32
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	secret := filepath.Join(t.TempDir(), "secret.html")
	if err := os.WriteFile(secret, []byte(`<body style="background:#fedcba">`), 0o600); err != nil {
		t.Fatal(err)
	}
	to := "http://" + l.Addr().String()
	page := fmt.Sprintf(`<iframe src="file://%[1]s" width=300 height=300></iframe><iframe src="file:///etc/passwd"></iframe><img src="%[2]s"><link rel=preconnect href="%[2]s">
		<script>fetch('%[2]s').catch(()=>0); new WebSocket('ws://%[3]s'); try { new RTCPeerConnection({iceServers:[{urls:'turn:%[3]s?transport=tcp',username:'a',credential:'b'}]}).createDataChannel('x') } catch {}</script>
		<iframe src="%[2]s"></iframe><form id=f action="%[2]s"></form><script>f.submit()</script>`, secret, to, l.Addr())
	got, shot := drawCanvas(t, b, toolstest.Args("html", page, "height", 600))
	if shot != nil && colors(shot)["#fedcba"] > 0 {
		t.Error("the picture shows a file of the machine")
	}
	if shot == nil {
		t.Errorf("there is no picture: %s", got.Note)
	}
	_ = l.Close()
	<-served
	if n := reached.Load(); n > 0 {
		t.Errorf("the document has made %d connections", n)
	}
}

// A readAllSandbox is a sandbox whose commands can read everything in its configuration.
type readAllSandbox struct{ sandbox.Sandbox }

func (s readAllSandbox) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	c.ReadsFor = nil
	return s.Sandbox.Run(ctx, c)
}

// A document can't navigate the browser to a file of the machine, and the folders in [sandbox] read aren't there.
func TestADocumentCannotOpenLocalFiles(t *testing.T) {
	program := canvastest.Chromium(t)
	shown := t.TempDir()
	secret := filepath.Join(shown, "secret.html")
	if err := os.WriteFile(secret, []byte(`<body style="background:#fedcba">`), 0o644); err != nil { //nolint:gosec // commands may run as another user
		t.Fatal(err)
	}
	box := openSandbox(t, shown)
	cat := sandbox.Command{Args: []string{"cat", secret}}
	if out, err := box.Run(t.Context(), cat); err != nil || !strings.Contains(out.Stdout, "#fedcba") {
		t.Fatalf("commands can't read it: %+v, %v", out, err)
	}
	cat.ReadsFor = []string{program}
	if out, err := box.Run(t.Context(), cat); err != nil || out.Stdout != "" {
		t.Errorf("the browser can read it: %+v, %v", out, err)
	}
	b := canvas.NewBrowser(readAllSandbox{box}, program, 2*time.Minute)
	for name, page := range map[string]string{
		"itself":  `<script>location = 'file://%s'</script>`,
		"refresh": `<meta http-equiv="refresh" content="0;url=file://%s">`,
		"the top": `<script>try { top.location = 'file://%s' } catch {}</script>`,
		"a link":  `<a id=a target=_top href="file://%s">x</a><script>a.click()</script>`,
		"a frame": `<iframe src="file://%s"></iframe>`,
		"opened":  `<script>open('file://%s', '_top')</script>`,
	} {
		page = `<body style="background:#123456">` + fmt.Sprintf(page, secret)
		_, shot := drawCanvas(t, b, toolstest.Args("html", page, "height", 300))
		if shot == nil || colors(shot)["#fedcba"] > 0 {
			t.Errorf("%s: the picture shows a file of the machine, or there is none", name)
		}
	}
}

// A document that never finishes, uses all memory, or fails in the browser has no picture, and the model is told why.
func TestWhyThereIsNoPicture(t *testing.T) {
	page := toolstest.Args("html", "<p>hello")
	box := openSandbox(t)
	broken := filepath.Join("/bin", "false")
	if got, shot := drawCanvas(t, canvas.NewBrowser(box, broken, time.Minute), page); shot != nil || !strings.Contains(got.Note, "the browser failed") || !strings.HasSuffix(got.Path, ".html") {
		t.Errorf("told %+v", got)
	}
	missing := canvas.NewBrowser(box, filepath.Join(t.TempDir(), "chromium"), time.Minute)
	if got, shot := drawCanvas(t, missing, page); shot != nil || !strings.Contains(got.Note, "isn't installed") || !strings.HasSuffix(got.Path, ".html") {
		t.Errorf("told %+v", got)
	}
	lies := canvas.NewBrowser(printingSandbox{[]byte("not a picture")}, "x", time.Minute)
	if got, shot := drawCanvas(t, lies, page); shot != nil || !strings.Contains(got.Note, "no picture of the right size") {
		t.Errorf("told %+v", got)
	}
	var large bytes.Buffer
	if err := png.Encode(&large, image.NewGray(image.Rect(0, 0, 1601, 10))); err != nil {
		t.Fatal(err)
	}
	if got, shot := drawCanvas(t, canvas.NewBrowser(printingSandbox{large.Bytes()}, "x", time.Minute), page); shot != nil || !strings.Contains(got.Note, "no picture of the right size") {
		t.Errorf("told %+v", got)
	}
	if got, shot := drawCanvas(t, canvas.NewBrowser(printingSandbox{make([]byte, 6<<20)}, "x", time.Minute), page); shot != nil || !strings.Contains(got.Note, "more than 5 MB") {
		t.Errorf("told %+v", got)
	}
	b := canvas.NewBrowser(box, canvastest.Chromium(t), 3*time.Second)
	if got, shot := drawCanvas(t, b, toolstest.Args("html", "<script>for (;;);</script>")); shot != nil || !strings.Contains(got.Note, "longer than 3s") {
		t.Errorf("told %+v", got)
	}
}

// Debian's browser program is a script, which reads its settings in /etc.
func TestABrowserIsChecked(t *testing.T) {
	if _, err := os.Stat("/usr/bin/chromium"); err == nil {
		if err := canvas.NewBrowser(openSandbox(t), "/usr/bin/chromium", 2*time.Minute).Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := newBrowser(t).Check(t.Context()); err != nil {
		t.Error(err)
	}
}
