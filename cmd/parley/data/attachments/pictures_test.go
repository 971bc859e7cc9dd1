package attachments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/agent/pictures"
	"parley/channels"
	"parley/cmd/parley/data/attachments"
	"parley/sessions/workspace"
	"parley/tools"
	tool "parley/tools/image"
)

// A shelf is a keeper over a real workspace.
type shelf struct {
	*attachments.Keeper
	all   *workspace.Workspaces
	dir   *workspace.Dir
	from  *fetches
	blind bool
	late  []bool // for each of the next openings for writing, whether it comes too late
}

const most = 1 << 20 // bytes of a file

const session = "main:test:c"

func newShelf(t *testing.T, maxBytes int64) *shelf {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: t.TempDir(), MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	dir, err := all.Open(session)
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{all: all, dir: dir}
	s.Keeper = attachments.New(s.config(nil))
	return s
}

// config returns a configuration in which files come from that source, or else from s.from.
func (s *shelf) config(from *fetches) attachments.Config {
	return attachments.Config{
		Workspace: s.all.Open, SeesPictures: func(string) bool { return !s.blind }, Log: slog.New(slog.DiscardHandler),
		Writable: func(_ context.Context, call tools.Call) (*workspace.Dir, error) {
			dir, err := s.all.Open(call.Session)
			if len(s.late) > 0 {
				if s.late[0] {
					dir = dir.WritableUntil(call.HeldAt.Add(-time.Second))
				}
				s.late = s.late[1:]
			}
			return dir, err
		},
		Fetcher: func(string) (channels.Fetcher, int64) {
			switch {
			case from != nil:
				return from, most
			case s.from != nil:
				return s.from, most
			}
			return nil, most
		},
	}
}

func (s *shelf) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := s.dir.Write(name, content); err != nil {
		t.Fatal(err)
	}
}

func square(t *testing.T, side int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// look calls the tool.
func (s *shelf) look(t *testing.T, path string) (tools.Result, error) {
	t.Helper()
	args, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		t.Fatal(err)
	}
	return tool.New(s.Show)[0].Run(t.Context(), tools.Call{Session: session, Name: "image", Args: args})
}

func TestTheModelIsShownAPictureOfTheWorkspace(t *testing.T) {
	s := newShelf(t, 0)
	s.write(t, "out/chart.png", square(t, 3000))
	for range 2 { // the second time nothing is new
		r, err := s.look(t, "/workspace/out/chart.png")
		if err != nil || len(r.Pictures) != 1 || r.Pictures[0].Path != "out/chart.png" {
			t.Fatalf("%+v, %v", r, err)
		}
		raw := s.Picture(t.Context(), session, llm.Picture{View: r.Pictures[0].View, Hash: r.Pictures[0].Hash})
		shown, _, err := image.DecodeConfig(bytes.NewReader(raw))
		if err != nil || shown.Width != pictures.Side {
			t.Errorf("shown %d pixels wide, %v", shown.Width, err)
		}
		s.write(t, r.Pictures[0].View, []byte("something else"))
		if raw := s.Picture(t.Context(), session, llm.Picture{View: r.Pictures[0].View, Hash: r.Pictures[0].Hash}); raw != nil {
			t.Error("another file was shown in its place")
		}
	}
}

func TestWhatCannotBeShownIsSaid(t *testing.T) {
	s := newShelf(t, 4096+8192)
	s.write(t, "notes.txt", []byte("hello"))
	for path, want := range map[string]string{
		"notes.txt": "not a PNG, JPEG, GIF or WebP", "none.png": "file_not_found", "../x.png": "invalid_path", ".": "directory",
	} {
		if r, err := s.look(t, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %s", path, r.Content, err, want)
		}
	}
	s.blind = true
	if _, err := s.look(t, "notes.txt"); err == nil || !strings.Contains(err.Error(), "cannot see") {
		t.Errorf("%v", err)
	}
}

// A picture that is shown again counts as new, so it isn't removed as old before the log names it.
func TestAPictureThatIsShownAgainIsNew(t *testing.T) {
	s := newShelf(t, 0)
	s.write(t, "chart.png", square(t, 10))
	for range 2 {
		r, err := s.look(t, "chart.png")
		if err != nil || len(r.Pictures) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		now := time.Now()
		if old, err := s.all.ListOld(t.Context(), session, pictures.Folder, now.Add(-time.Minute)); err != nil || len(old) > 0 {
			t.Errorf("%q count as old, %v", old, err)
		}
		if err := os.Chtimes(filepath.Join(s.dir.Path(), r.Pictures[0].View), time.Time{}, now.Add(-24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}
