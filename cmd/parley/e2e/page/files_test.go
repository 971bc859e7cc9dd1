package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// The page lists the files of a session folder by folder, adds new files by itself, and downloads files. It shows a
// file as a picture only if its content is a picture, whatever its name.
func TestFilesOfASession(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() > 0 || !strings.Contains(r.Said(), "write") {
			return agenttest.Reply("I have it")
		}
		return agenttest.Calls(agenttest.Call("write_file", `{"path":"notes/a/hid\u202eden.txt","content":"`+strings.ReplaceAll(hostileName, `"`, `\"`)+`"}`))
	}, "")
	dir := t.TempDir()
	picture, fake := filepath.Join(dir, "red.png"), filepath.Join(dir, "fake.png")
	parleytest.Must(t, os.WriteFile(picture, parleytest.Picture(t, 200), 0o600))
	parleytest.Must(t, os.WriteFile(fake, []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit=1"><script>window.hit=2</script></svg>`), 0o600))
	b := newBrowser(t)
	x := enter(b, o, 1280, 800)
	x.do(chromedp.SetUploadFiles(".composer input[type=file]", []string{picture, fake}, chromedp.NodeReady))
	x.waitText(".file", "fake.png")
	x.write(field, "look")
	x.waitText(".answer", "I have it")
	x.press("Files")
	x.press("attachments/")
	x.waitText(".files-panel", "red.png")
	show := func(name string) string { // the name of the stored file includes a number
		return eval[string](x, "[...document.querySelectorAll('.files-panel button')].find(b => b.ariaLabel?.endsWith('-"+name+"')).ariaLabel")
	}
	x.pressLabel(show("red.png"))
	x.wait("the picture", "document.querySelector('.picture img')?.naturalWidth === 8")
	x.pressLabel(show("fake.png"))
	x.waitText(".picture [role=alert]", "isn't a picture")
	if eval[bool](x, "document.querySelector('.picture img') !== null || window.hit !== undefined") {
		t.Error("what is no picture is shown as one")
	}
	eval[bool](x, "(window.setInterval = () => 0, true)") // the page does not poll anymore
	x.press("All files")
	x.write(field, "write it")
	x.press("notes/")
	x.press("a/")
	x.waitText(".files-panel .name", `hid\u202eden.txt`)
	x.picture("files-panel")
	eval[bool](x, `(fetch(document.querySelector('.files-panel a.button').href).then(async r => { window.got = [await r.text(), r.headers.get('Content-Type'), r.headers.get('Content-Disposition')] }), true)`)
	x.wait("the download", "window.got")
	got := eval[[]string](x, "window.got")
	if len(got) != 3 || got[0] != hostileName || got[1] != "application/octet-stream" || !strings.HasPrefix(got[2], "attachment") {
		t.Errorf("a download is %q", got)
	}
	for _, width := range []int64{390, 360} {
		x.do(chromedp.EmulateViewport(width, 800))
		x.fits("files")
	}
	x.press("Close")
	x.wait("the files to go", "!document.querySelector('.files-panel')")
}
