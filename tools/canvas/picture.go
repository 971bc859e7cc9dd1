package canvas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley/tools/sandbox"
)

// Limits of pictures.
const (
	maxPicture    = 5 << 20 // bytes
	pictureWidth  = 1600    // pixels, and of the height 2000
	pictureHeight = 2000
)

// minEmptyEnd is how many empty pixels at the end of a table or plot are cut off: more than occur anywhere else in it.
// keptMargin is how many of them the picture keeps.
const (
	minEmptyEnd = 40
	keptMargin  = 12
)

// minWidth is the width of the narrowest picture, because platforms show pictures badly that are much higher than wide.
const minWidth = 600

// A Browser makes pictures of documents with a Chromium that runs in a sandbox, without a network and without files other
// than the document, its own and those of the system. At most two run at once; sessions take turns.
type Browser struct {
	sandbox sandbox.Sandbox
	program string
	timeout time.Duration
	places  fairSlots
}

// maxPictureWait is how long a picture waits for other pictures. After that, the document is sent without a picture.
const maxPictureWait = 15 * time.Second

// BrowserTime is how long making a picture of a canvas may take. A browser that starts beside other work on a small
// machine needs more than ten seconds.
const BrowserTime = 30 * time.Second

// NewBrowser returns a Browser that runs the program at that path, for at most the given time.
func NewBrowser(in sandbox.Sandbox, program string, within time.Duration) *Browser {
	return &Browser{sandbox: in, program: program, timeout: within}
}

// A PictureError says why a document has no picture, for models and operators.
type PictureError struct{ Why string }

// Error returns the reason.
func (e *PictureError) Error() string { return e.Why }

// CheckProgram returns a *PictureError if the browser isn't a program on this machine.
func (b *Browser) CheckProgram() error {
	info, err := os.Stat(b.program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &PictureError{whyMissing}
	case err == nil && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0):
		return &PictureError{whyNoProgram}
	}
	return nil // other errors show when the browser runs
}

// A window is the part of a document that a picture shows, in pixels of the document. Each of them is as wide and as high as
// scale pixels of the picture.
type window struct {
	width, height, scale int
	trimsEnd             bool // whether the picture ends where the document does, if that is within the window
	// wholeOnly says that there is no picture of a document that is longer than the window, because the model can't
	// know that a part is missing.
	wholeOnly bool
}

// windowOf returns the window for what a call shows.
func windowOf(a args) window {
	w := window{width: pictureWidth / 2, height: pictureHeight / 2, scale: 2, trimsEnd: true, wholeOnly: a.HTML == ""}
	switch {
	case a.HTML != "" && a.Height > 0:
		w.trimsEnd, w.height = false, a.Height
		if a.Height > pictureHeight/2 {
			w.scale = 1
		}
	case a.Height > w.height, a.Table != nil && (len(a.Table.Rows) > 20 || len(a.Table.Columns) > 10):
		w.width, w.height, w.scale = pictureWidth, pictureHeight, 1
	}
	return w
}

// printCommand makes the browser read a page from standard input and print its picture. Chromium's own sandbox is off:
// it can't be set up within this one, which already keeps all of Chromium's processes from the network, from other
// processes, and from all files but those of the system and the browser. The document and the page around it are in one
// process, because the browser takes the picture when that page is idle, and doesn't wait for another process.
const printCommand = `cat >"$TMPDIR/canvas.html" &&
"$0" "$@" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions --disable-background-networking \
	--no-first-run --no-default-browser-check --hide-scrollbars --mute-audio --virtual-time-budget=3000 --disable-features=IsolateSandboxedIframes \
	--user-data-dir="$TMPDIR/profile" --screenshot="$TMPDIR/canvas.png" "file://$TMPDIR/canvas.html" >/dev/null 2>"$TMPDIR/said" </dev/null
cat "$TMPDIR/canvas.png" || { tail -c 500 "$TMPDIR/said" >&2; exit 1; }`

// framePage returns a page that shows only a document, in a frame. The document can't navigate the frame or the page to
// another page, such as a file of the system, because the page's policy allows none.
func framePage(doc []byte) []byte {
	return fmt.Appendf(nil, `<!doctype html>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<style>iframe { border: 0; position: fixed; inset: 0; width: 100%%; height: 100%%; }</style>
<iframe sandbox="allow-scripts" srcdoc="%s"></iframe>
`, html.EscapeString(Policy), html.EscapeString(string(doc)))
}

// picture returns a PNG of a document of a session. If there is none for a reason that the model should know, the error
// is a *PictureError.
func (b *Browser) picture(ctx context.Context, session string, doc []byte, w window) ([]byte, error) {
	waiting, stop := context.WithTimeout(ctx, maxPictureWait)
	leave, err := b.places.take(waiting, session)
	stop()
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &PictureError{"too many other pictures are being made"}
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	shot := &limitedBuffer{}
	out, err := b.sandbox.Run(limited, sandbox.Command{
		Args: []string{
			"sh", "-c", printCommand, b.program,
			"--window-size=" + strconv.Itoa(w.width) + "," + strconv.Itoa(w.height), "--force-device-scale-factor=" + strconv.Itoa(w.scale),
			fmt.Sprint("--timeout=", (b.timeout * 4 / 5).Milliseconds()), // then it prints what is drawn so far
		},
		Stdin: bytes.NewReader(framePage(doc)), Stdout: shot, ShownFolders: browserFolders(b.program), ReadsFor: pathsOf(b.program),
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &PictureError{err.Error()}
	case out.Killed == sandbox.Timeout:
		return nil, &PictureError{fmt.Sprintf("the browser took longer than %s", b.timeout)}
	case out.Killed != "":
		return nil, &PictureError{"the sandbox ended the browser: " + out.Detail}
	case out.ExitCode != 0:
		if err := b.CheckProgram(); err != nil {
			return nil, err
		}
		return nil, &PictureError{"the browser failed: " + lastLine(out.Stderr)}
	case shot.exceeded:
		return nil, &PictureError{fmt.Sprintf("the picture would have more than %d MB", maxPicture>>20)}
	}
	return finish(shot.Bytes(), w)
}

// pathsOf returns the paths of a program: its own and, if that is a link, its target.
func pathsOf(program string) []string {
	paths := []string{program}
	if itself, err := filepath.EvalSymlinks(program); err == nil {
		paths = append(paths, itself)
	}
	return paths
}

// browserFolders returns the folders that a browser needs besides the system's: Debian's settings, and the usual
// folders of other installations. Other folders need [sandbox] read.
func browserFolders(program string) []sandbox.Shown {
	folders := []string{"/etc/chromium.d"}
	if itself, err := filepath.EvalSymlinks(program); err == nil && strings.HasPrefix(itself, "/opt/") {
		folders = append(folders, filepath.Dir(itself))
	}
	var shown []sandbox.Shown
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			shown = append(shown, sandbox.Shown{Path: folder, PathInside: folder})
		}
	}
	return shown
}

// finish checks a browser's output, and cuts off the empty space below and beside the document if the window says so.
func finish(raw []byte, w window) ([]byte, error) {
	size, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil || size.Width > pictureWidth || size.Height > pictureHeight { // a document may have broken the browser
		return nil, &PictureError{"the browser made no picture of the right size"}
	}
	if !w.trimsEnd {
		return raw, nil
	}
	whole, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, &PictureError{"the browser made no picture"}
	}
	end, kept := contentEnd(whole), keptMargin*w.scale
	if w.wholeOnly && size.Height-end.Y < minEmptyEnd*w.scale {
		return nil, &PictureError{"the document is too long for a picture"}
	}
	part := image.Rect(0, 0, min(size.Width, max(minWidth, end.X+kept)), min(size.Height, end.Y+kept))
	cut := image.NewRGBA(part)
	draw.Draw(cut, part, whole, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, cut); err != nil {
		return nil, fmt.Errorf("encode the picture of a canvas: %w", err)
	}
	return out.Bytes(), nil
}

// contentEnd returns where a picture's content ends: below and to the right, there is only the color of its last
// corner.
func contentEnd(p image.Image) (end image.Point) {
	size := p.Bounds().Max
	ground := color.RGBAModel.Convert(p.At(size.X-1, size.Y-1))
	for y := range size.Y {
		for x := range size.X {
			if (y >= end.Y || x >= end.X) && color.RGBAModel.Convert(p.At(x, y)) != ground {
				end = image.Pt(max(end.X, x+1), y+1)
			}
		}
	}
	return end
}

// lastLine returns the last line of a program's output.
func lastLine(said string) string {
	said = strings.TrimSpace(said)
	return said[strings.LastIndexByte(said, '\n')+1:]
}

// Check makes a picture of a small document, and returns the error if that fails.
func (b *Browser) Check(ctx context.Context) error {
	a := args{Table: &table{Columns: []string{"a"}, Rows: [][]string{{"b"}}}}
	doc, err := a.document(false)
	if err != nil {
		return err
	}
	_, err = b.picture(ctx, "", doc, windowOf(a))
	return err
}

// A limitedBuffer keeps at most maxPicture bytes, and records whether there were more.
type limitedBuffer struct {
	bytes.Buffer
	exceeded bool
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPicture {
		l.exceeded = true
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
