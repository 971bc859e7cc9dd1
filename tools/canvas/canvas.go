// Package canvas provides the tool with which an agent shows people a table, a plot, or a page in HTML.
//
// A call stores one document in the session's workspace. The web page shows it in a frame; on platforms it goes with the
// answer, as a picture where there is a browser to make one (picture.go), or else as it is. document.go puts documents
// together, table.go and plot.go draw what the model gives as data, still.go takes out of a document everything
// that can run or reach another server, and places.go bounds how many documents are worked on at once.
package canvas

import (
	"cmp"
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"parley/tools"
)

// Name is the tool's name.
const Name = "canvas"

// Folder is the folder in a session's workspace for canvases. A file's name begins with the id of the call that made it.
const Folder = ".agent/canvas"

// MaxDocument is the size of the largest document, in bytes.
const MaxDocument = maxHTML + 64<<10

// Limits of what a model may show.
const (
	maxHTML    = 1 << 20 // bytes
	maxTitle   = 200     // bytes
	maxColumns = 50
	maxRows    = 1000
	maxCells   = 20_000
	maxCell    = 2000 // bytes
	maxSeries  = 8    // because each has a color of its own
	maxPoints  = 2000 // of each series
	minHeight  = 100  // pixels
	maxHeight  = 2000
)

// A Keeper stores a file of a call's session under a name below Folder, and returns its path. A file that a call stores
// again replaces the first.
type Keeper func(ctx context.Context, call tools.Call, name string, content []byte) (path string, err error)

// New makes the tool canvas. The browser makes pictures of documents; if it is nil, there are none.
func New(keep Keeper, reader *Reader, browser *Browser) tools.Tool {
	return tools.New(tools.Spec{
		Name: Name, Effect: tools.Idempotent, Permission: tools.FileWrite, Timeout: maxTime, MaxTimeout: -1,
		Touches: tools.TouchesNothing(), Description: description,
	}, canvasTool{keep, reader, browser}.show)
}

// maxTime is how long a call may take. It is longer than a picture waits for others, takes, and needs to be stored.
const maxTime = time.Minute

// A canvasTool runs the calls.
type canvasTool struct {
	keep    Keeper
	reader  *Reader
	browser *Browser
}

type args struct {
	HTML   string `json:"html,omitempty" jsonschema:"a page: HTML with inline styles and scripts, which reaches no network; pictures as data: URLs"`
	Table  *table `json:"table,omitempty" jsonschema:"a table"`
	Plot   *plot  `json:"plot,omitempty" jsonschema:"a plot"`
	Title  string `json:"title,omitempty" jsonschema:"its title, in a few words"`
	Height int    `json:"height,omitempty" jsonschema:"its height in pixels, 100 to 2000; a picture of a page ends there, or after 1000"`

	removeScripts bool // whether scripts, links and other active parts were removed from HTML
}

// A result is what the model is told. The web page reads it, too.
type result struct {
	Path    string `json:"path"`              // the document
	Picture string `json:"picture,omitempty"` // a picture of it
	Title   string `json:"title,omitempty"`
	Height  int    `json:"height"`
	Note    string `json:"note"`
}

func (s canvasTool) show(ctx context.Context, call tools.Call, a args) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	told := result{Title: a.Title, Height: a.height(), Note: noteShown}
	if call.Untrusted && a.HTML != "" {
		quiet, err := s.reader.Still(ctx, call.Session, []byte(a.HTML))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, tools.Errorf(tools.InvalidArgs, errUnreadable, err)
		}
		a.HTML, a.removeScripts = string(quiet), true
		told.Note += noteStill
	}
	doc, err := a.document(true)
	if err != nil {
		return nil, err
	}
	if len(doc) > MaxDocument {
		return nil, tools.Errorf(tools.InvalidArgs, errLarge, len(doc), MaxDocument)
	}
	name := fileName(call.ID, a.Title)
	if told.Path, err = s.keep(ctx, call, name+".html", doc); err != nil {
		return nil, tools.DirError(err)
	}
	if s.browser != nil {
		told.Picture, err = s.keepPicture(ctx, call, a, name+".png")
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if failed, ok := errors.AsType[*PictureError](err); ok {
			told.Note += noteNoPicture + failed.Error()
		} else if err != nil {
			return nil, err
		}
	}
	return tools.Enclosed{Value: told, Files: []string{cmp.Or(told.Picture, told.Path)}}, nil
}

// keepPicture makes a picture of what a call shows, stores it, and returns its path. It returns a *PictureError if
// there can be no picture, so that the call goes on without one.
func (s canvasTool) keepPicture(ctx context.Context, call tools.Call, a args, name string) (string, error) {
	doc, err := a.document(false)
	if err != nil {
		return "", err
	}
	picture, err := s.browser.picture(ctx, call.Session, doc, windowOf(a))
	if err != nil {
		return "", err
	}
	if call.CheckLease != nil { // the session may have been lost meanwhile, and erased
		held := time.Now()
		if err := call.CheckLease(ctx); err != nil {
			return "", &PictureError{whyNotHeld}
		}
		call.HeldAt = held
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	kept, err := s.keep(ctx, call, name, picture)
	if err != nil {
		return "", tools.DirError(err)
	}
	return kept, nil
}

// check returns an error unless the arguments have exactly one thing to show, within the limits.
func (a args) check() error {
	given := 0
	for _, is := range []bool{a.HTML != "", a.Table != nil, a.Plot != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return tools.Errorf(tools.InvalidArgs, errOne)
	case len(a.Title) > maxTitle:
		return tools.Errorf(tools.InvalidArgs, errTitle, len(a.Title), maxTitle)
	case a.Height != 0 && (a.Height < minHeight || a.Height > maxHeight):
		return tools.Errorf(tools.InvalidArgs, errHeight, a.Height, minHeight, maxHeight)
	case len(a.HTML) > maxHTML:
		return tools.Errorf(tools.InvalidArgs, errHTML, len(a.HTML), maxHTML)
	case a.Table != nil:
		return a.Table.check()
	case a.Plot != nil:
		return a.Plot.check()
	}
	return nil
}

// height returns the height in which a canvas is shown, in pixels.
func (a args) height() int {
	const ofPlot, ofPage, ofRow, ofTitle = 420, 480, 34, 60
	switch {
	case a.Height != 0:
		return a.Height
	case a.Plot != nil:
		return ofPlot
	case a.Table != nil:
		return min(ofPage, ofTitle+ofRow*(1+len(a.Table.Rows)))
	}
	return ofPage
}

// fileName returns the name, without ending, of the files of a call: the call's id, so that every attempt gets the same,
// and some of the title for people.
func fileName(id, title string) string { return id + "-" + titlePart(title) }

// titlePart returns the part of a title that goes into a file name: at most 40 lowercase letters, digits and underscores,
// or "canvas" if the title has no letters from a to z and no digits. It has no "-", at which SentName cuts.
func titlePart(title string) string {
	const longest = 40
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') })
	part := strings.Join(words, "_")
	if len(part) > longest {
		part = strings.TrimRight(part[:longest], "_")
	}
	if part == "" {
		return "canvas"
	}
	return part
}

// SentName returns the name under which a platform is sent the file of a canvas: the part from the title. It returns
// false for other files.
func SentName(file string) (string, bool) {
	if path.Dir(file) != Folder {
		return "", false
	}
	base := path.Base(file)
	return base[strings.LastIndexByte(base, '-')+1:], true
}
