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

// emptyEnd is how many pixels are empty at the end of a table or plot: more than anywhere else in it. keptEnd is how many of
// them the picture keeps.
const (
	emptyEnd = 40
	keptEnd  = 12
)

// minWidth is the width of the narrowest picture, because platforms show those that are much higher than wide badly.
const minWidth = 600

// A Browser makes pictures of documents with a Chromium that runs in a sandbox, without a network and without files other
// than the document, its own and those of the system. At most two run at once; sessions take turns.
type Browser struct {
	sandbox sandbox.Sandbox
	program string
	within  time.Duration
	places  places
}

// longestWait is how long a picture waits for other pictures. The document goes with the answer without it after that.
const longestWait = 15 * time.Second

// BrowserTime is how long making a picture of a canvas may take.
const BrowserTime = 10 * time.Second

// NewBrowser returns a Browser that runs the program at that path, for so long at most.
func NewBrowser(in sandbox.Sandbox, program string, within time.Duration) *Browser {
	return &Browser{sandbox: in, program: program, within: within}
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
	return nil // what else is wrong shows when it runs
}

// A window is the part of a document that a picture shows, in pixels of the document. Each of them is as wide and as high as
// scale pixels of the picture.
type window struct {
	width, height, scale int
	trims                bool // whether the picture ends where the document does, if that is within the window
	// whole says that there is no picture of a document that is longer than the window. The model can't know that the
	// picture would lack something.
	whole bool
}

// windowOf returns the window for what a call shows.
func windowOf(a args) window {
	w := window{width: pictureWidth / 2, height: pictureHeight / 2, scale: 2, trims: true, whole: a.HTML == ""}
	switch {
	case a.HTML != "" && a.Height > 0:
		w.trims, w.height = false, a.Height
		if a.Height > pictureHeight/2 {
			w.scale = 1
		}
	case a.Height > w.height, a.Table != nil && (len(a.Table.Rows) > 20 || len(a.Table.Columns) > 10):
		w.width, w.height, w.scale = pictureWidth, pictureHeight, 1
	}
	return w
}

// printCommand has the browser read a page from standard input and print its picture. Chromium's own sandbox is off: it can't be
// set up within this one, which already keeps all of Chromium's processes from the network, from other processes, and from
// all files but those of the system and of the browser. The document is in one process with the page around it, because the
// browser takes the picture when that page has nothing left to do, and doesn't wait for what another process still draws.
const printCommand = `cat >"$TMPDIR/canvas.html" &&
"$0" "$@" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions --disable-background-networking \
	--no-first-run --no-default-browser-check --hide-scrollbars --mute-audio --virtual-time-budget=3000 --disable-features=IsolateSandboxedIframes \
	--user-data-dir="$TMPDIR/profile" --screenshot="$TMPDIR/canvas.png" "file://$TMPDIR/canvas.html" >/dev/null 2>"$TMPDIR/said" </dev/null
cat "$TMPDIR/canvas.png" || { tail -c 500 "$TMPDIR/said" >&2; exit 1; }`

// stage returns a page that shows nothing but a document, in a frame. The document can't lead the frame to another page, such
// as a file of the system, because the page's policy allows none, and it can't lead the page there either.
func stage(doc []byte) []byte {
	return fmt.Appendf(nil, `<!doctype html>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<style>iframe { border: 0; position: fixed; inset: 0; width: 100%%; height: 100%%; }</style>
<iframe sandbox="allow-scripts" srcdoc="%s"></iframe>
`, html.EscapeString(Policy), html.EscapeString(string(doc)))
}

// picture returns a PNG of a document of a session. Errors that say why there is none are *PictureError.
func (b *Browser) picture(ctx context.Context, session string, doc []byte, w window) ([]byte, error) {
	waiting, stop := context.WithTimeout(ctx, longestWait)
	leave, err := b.places.take(waiting, session)
	stop()
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &PictureError{"too many other pictures are being made"}
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, b.within)
	defer cancel()
	shot := &limitedBuffer{}
	out, err := b.sandbox.Run(limited, sandbox.Command{
		Args: []string{
			"sh", "-c", printCommand, b.program,
			"--window-size=" + strconv.Itoa(w.width) + "," + strconv.Itoa(w.height), "--force-device-scale-factor=" + strconv.Itoa(w.scale),
			fmt.Sprint("--timeout=", (b.within * 4 / 5).Milliseconds()), // then it shows what it has
		},
		Stdin: bytes.NewReader(stage(doc)), Stdout: shot, Shows: needs(b.program), ReadsFor: pathsOf(b.program),
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &PictureError{err.Error()}
	case out.Killed == sandbox.Timeout:
		return nil, &PictureError{fmt.Sprintf("the browser took longer than %s", b.within)}
	case out.Killed != "":
		return nil, &PictureError{"the sandbox ended the browser: " + out.Detail}
	case out.ExitCode != 0:
		if err := b.CheckProgram(); err != nil {
			return nil, err
		}
		return nil, &PictureError{"the browser failed: " + lastLine(out.Stderr)}
	case shot.over:
		return nil, &PictureError{fmt.Sprintf("the picture would have more than %d MB", maxPicture>>20)}
	}
	return finish(shot.Bytes(), w)
}

// pathsOf returns the paths of a program: its own and, if that is a link, where it leads.
func pathsOf(program string) []string {
	paths := []string{program}
	if itself, err := filepath.EvalSymlinks(program); err == nil {
		paths = append(paths, itself)
	}
	return paths
}

// needs returns the folders besides the system's that a browser needs: the settings of Debian's, and those in which others
// install themselves. What lies elsewhere needs [sandbox] read.
func needs(program string) []sandbox.Shown {
	folders := []string{"/etc/chromium.d"}
	if itself, err := filepath.EvalSymlinks(program); err == nil && strings.HasPrefix(itself, "/opt/") {
		folders = append(folders, filepath.Dir(itself))
	}
	var shown []sandbox.Shown
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			shown = append(shown, sandbox.Shown{Path: folder, As: folder})
		}
	}
	return shown
}

// finish checks what a browser has printed, and cuts off what is empty below and beside the document if the window says so.
func finish(raw []byte, w window) ([]byte, error) {
	size, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil || size.Width > pictureWidth || size.Height > pictureHeight { // a document may have broken the browser
		return nil, &PictureError{"the browser made no picture of the right size"}
	}
	if !w.trims {
		return raw, nil
	}
	whole, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, &PictureError{"the browser made no picture"}
	}
	end, kept := endOf(whole), keptEnd*w.scale
	if w.whole && size.Height-end.Y < emptyEnd*w.scale {
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

// endOf returns where a picture ends: below and to the right, there is only the color of its last corner.
func endOf(p image.Image) (end image.Point) {
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

// lastLine returns the last line of what a program has said.
func lastLine(said string) string {
	said = strings.TrimSpace(said)
	return said[strings.LastIndexByte(said, '\n')+1:]
}

// Check makes a picture of a small document, and returns why it can't.
func (b *Browser) Check(ctx context.Context) error {
	a := args{Table: &table{Columns: []string{"a"}, Rows: [][]string{{"b"}}}}
	doc, err := a.document(false)
	if err != nil {
		return err
	}
	_, err = b.picture(ctx, "", doc, windowOf(a))
	return err
}

// A limitedBuffer keeps at most maxPicture bytes, and whether there were more.
type limitedBuffer struct {
	bytes.Buffer
	over bool
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPicture {
		l.over = true
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
