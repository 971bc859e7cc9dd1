package attachments_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/attached"
	"parley/agent/transcribe"
	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/data/attachments"
	"parley/sessions"
	"parley/sessions/workspace"
	"parley/tools/guard"
)

// fetches is a platform that gives its answers in order and repeats the last one.
type fetches []func() (io.ReadCloser, error)

func (f *fetches) Fetch(_ context.Context, _ bus.Address, _ bus.Attachment, _ int64) (io.ReadCloser, error) {
	next := (*f)[0]
	if len(*f) > 1 {
		*f = (*f)[1:]
	}
	return next()
}

func gives(content string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
}

func fails(err error) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return nil, err }
}

func held(context.Context) error { return nil }

func fetching(a sessions.Attached) agent.FileToFetch {
	return agent.FileToFetch{Session: session, Turn: "m1", At: bus.Address{Channel: "test", Chat: "c"}, File: attached.File{Attached: a, N: 3}, CheckLease: held}
}

func (s *shelf) fetch(t *testing.T, a sessions.Attached, answers ...func() (io.ReadCloser, error)) sessions.Fetched {
	t.Helper()
	f := fetches(answers)
	s.from = &f
	got, err := s.Fetch(t.Context(), fetching(a))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s *shelf) read(t *testing.T, name string) string {
	t.Helper()
	raw, err := fs.ReadFile(s.dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A process that is cut off after it wrote the file and before it wrote the log fetches the file again. There is
// still one file.
func TestAFileIsKeptUnderANameOfItsOwn(t *testing.T) {
	s := newShelf(t, 0)
	for range 2 {
		got := s.fetch(t, sessions.Attached{Kind: bus.Document, Name: "report.csv", Type: "text/csv"}, gives("a,b\n1,2\n"))
		if got.Path != "attachments/3-report.csv" || got.Type != "text/csv" || got.Size != 8 || got.Problem != "" || len(got.Hash) != 64 {
			t.Fatalf("%+v", got)
		}
		if s.read(t, got.Path) != "a,b\n1,2\n" {
			t.Errorf("the file holds %q", s.read(t, got.Path))
		}
	}
	all, err := s.dir.ReadDir("attachments")
	if err != nil || len(all) != 1 {
		t.Errorf("there are %d files, %v", len(all), err)
	}
	if !guard.ReadMarks(s.dir).Has("attachments/3-report.csv") {
		t.Error("what a person has sent is not marked as untrusted")
	}
}

func TestNamesOfFiles(t *testing.T) {
	s := newShelf(t, 0)
	long := strings.Repeat("ä", 300)
	for name, want := range map[string]string{
		"../../etc/passwd": "3-passwd.txt", `C:\x\y.txt`: "3-y.txt", "": "3-voice.txt", "...": "3-voice.txt", ".bashrc": "3-bashrc.txt",
		"a b\n$(rm)`x`.md": "3-a_b___rm__x_.md", "отчёт.txt": "3-отчёт.txt", "-rf": "3-rf.txt", "x\u202etxt.exe": "3-x_txt.exe",
		long + ".pdf": "3-" + strings.Repeat("ä", 48) + ".pdf", "a.tar." + long: "",
	} {
		got := s.fetch(t, sessions.Attached{Kind: bus.Voice, Name: name}, gives("hello"))
		path := strings.TrimPrefix(got.Path, "attachments/")
		if want != "" && path != want || len(path) > 120 || got.Problem != "" {
			t.Errorf("%q became %q, want %q; %s", name, path, want, got.Problem)
		}
	}
}

func TestTheContentSaysWhatAFileIs(t *testing.T) {
	s := newShelf(t, 0)
	for _, c := range []struct{ name, said, content, want string }{
		{"a.png", "image/png", "%PDF-1.7\n", "application/pdf"},
		{"a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.pdf", "application/pdf", "hello", "text/plain"},
		{"a.md", "text/markdown", "# hello", "text/markdown"},
		{"v.oga", "audio/ogg", "OggS\x00\x02", "audio/ogg"},
		{"x.html", "text/plain", "<html><script>", "text/html"},
	} {
		if got := s.fetch(t, sessions.Attached{Kind: bus.Document, Name: c.name, Type: c.said}, gives(c.content)); got.Type != c.want {
			t.Errorf("%s, said to be %s, is %s, want %s", c.name, c.said, got.Type, c.want)
		}
	}
}

func TestAPictureIsMadeFitToBeShown(t *testing.T) {
	s := newShelf(t, 0)
	got := s.fetch(t, sessions.Attached{Kind: bus.Document, Name: "a.bin"}, gives(string(square(t, 2000))))
	if got.Picture == nil || got.Picture.Path != got.Path || got.Type != "image/png" {
		t.Fatalf("%+v", got)
	}
	if s.read(t, got.Picture.View) == s.read(t, got.Path) {
		t.Error("a large picture is shown as it is")
	}
	bad := s.fetch(t, sessions.Attached{Kind: bus.Picture, Name: "b.png"}, gives(string(square(t, 9)[:30])))
	if bad.Picture != nil || bad.Path == "" || bad.Problem != "" {
		t.Errorf("of a damaged picture came %+v", bad)
	}
}

func TestWhatCannotBeHadIsSaidInWords(t *testing.T) {
	rejected := &channels.SendError{Fault: channels.Rejected, Code: "file_deleted", Err: errors.New("xoxb-secret")}
	stop := &channels.SendError{Fault: channels.Stop, Code: "missing_scope", Err: errors.New("xoxb-secret")}
	large := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(make([]byte, most+1))), nil }
	s := newShelf(t, 200<<10)
	for name, c := range map[string]struct {
		size   int64
		answer func() (io.ReadCloser, error)
		want   string
	}{
		"announced as too large": {most + 1, gives("x"), "larger than the 1 MB"},
		"too large":              {0, large, "larger than the 1 MB"},
		"says that it is":        {0, fails(channels.ErrTooLarge), "larger than the 1 MB"},
		"gone":                   {0, fails(rejected), "test no longer has it"},
		"refused":                {0, fails(stop), "test won't let me"},
		"empty":                  {0, gives(""), "empty"},
		"no room":                {0, gives(strings.Repeat("x", 300<<10)), "no room"},
	} {
		got := s.fetch(t, sessions.Attached{Kind: bus.Document, Name: "a", Size: c.size}, c.answer)
		if !strings.Contains(got.Problem, c.want) || got.Path != "" && name != "no room" || strings.Contains(got.Problem, "xoxb") {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
	s.from = nil
	if got, err := s.Fetch(t.Context(), fetching(sessions.Attached{})); err != nil || !strings.Contains(got.Problem, "can't fetch") {
		t.Errorf("%+v, %v", got, err)
	}
}

// A fetch that fails is tried again, but not forever.
func TestFetchingIsTriedAgain(t *testing.T) {
	s := newShelf(t, 0)
	synctest.Test(t, func(t *testing.T) {
		later := &channels.SendError{Fault: channels.Retry, Code: "429", RetryAfter: 20 * time.Second, Err: errors.New("slow down")}
		began := time.Now()
		f := fetches{fails(later), fails(errors.New("cut off")), gives("hello")}
		k := attachments.New(s.config(&f))
		got, err := k.Fetch(t.Context(), fetching(sessions.Attached{Name: "a.txt"}))
		if err != nil || got.Problem != "" || time.Since(began) < 20*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(began), got, err)
		}
		f = fetches{fails(errors.New("cut off"))}
		if got, err := k.Fetch(t.Context(), fetching(sessions.Attached{Name: "a.txt"})); err != nil || !strings.Contains(got.Problem, "4 times") {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A process that has lost the session writes no file.
func TestWhoHasLostTheSessionKeepsNothing(t *testing.T) {
	s := newShelf(t, 0)
	f := fetches{gives("hello")}
	s.from = &f
	lost := fetching(sessions.Attached{Name: "a.txt"})
	lost.CheckLease = func(context.Context) error { return bus.ErrFenced }
	if _, err := s.Fetch(t.Context(), lost); !errors.Is(err, bus.ErrFenced) {
		t.Errorf("%v", err)
	}
	if _, err := fs.Stat(s.dir, "attachments/3-a.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// A write that comes too late because the machine stood still is tried again while the process holds the session. A
// file that is never in time isn't recorded as unavailable; a picture that is never in time is kept as an ordinary
// file.
func TestWhatComesTooLateIsWrittenAgain(t *testing.T) {
	for what, late := range map[string][]bool{"the file": {true, true}, "the picture": {false, true, true}} {
		s := newShelf(t, 0)
		s.late = late
		if got := s.fetch(t, sessions.Attached{Name: "a.png"}, gives(string(square(t, 9)))); got.Picture == nil || len(s.late) > 0 {
			t.Errorf("%s is late twice: %+v, and %d times more", what, got, len(s.late))
		}
	}
	s := newShelf(t, 0)
	f := fetches{gives(string(square(t, 9)))}
	s.from, s.late = &f, []bool{true, true, true}
	if got, err := s.Fetch(t.Context(), fetching(sessions.Attached{Name: "a.png"})); !errors.Is(err, workspace.ErrLate) {
		t.Errorf("the file is always late: %+v, %v", got, err)
	}
	s.late = []bool{false, true, true, true}
	if got := s.fetch(t, sessions.Attached{Name: "a.png"}, gives(string(square(t, 9)))); got.Picture != nil || got.Path == "" {
		t.Errorf("the picture is always late: %+v", got)
	}
}

// hears records what it is given.
type hears struct{ err error }

func (h hears) Words(_ context.Context, name string, recording []byte) (string, error) {
	return name + " says " + string(recording), h.err
}

func TestVoiceMessagesAreWrittenDown(t *testing.T) {
	s := newShelf(t, 0)
	listen := func(by attachments.Transcriber, forwarded, quoted bool) sessions.Fetched {
		t.Helper()
		f := fetches{gives("OggS\x00")}
		cfg := s.config(&f)
		cfg.Transcriber = func() attachments.Transcriber { return by }
		of := fetching(sessions.Attached{Kind: bus.Voice, Type: "audio/ogg", Quoted: quoted})
		of.Forwarded = forwarded
		got, err := attachments.New(cfg).Fetch(t.Context(), of)
		if err != nil || got.Path != "attachments/3-voice.ogg" {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	if got := listen(hears{}, false, false); got.SpokenWords != "3-voice.ogg says OggS\x00" || got.Untrusted || got.UnheardReason != "" {
		t.Errorf("%+v", got)
	}
	if got := listen(hears{}, false, true); !got.Untrusted {
		t.Errorf("of a message that was replied to: %+v", got)
	}
	if got := listen(hears{}, true, false); !got.Untrusted {
		t.Errorf("of a message that was passed on: %+v", got)
	}
	if got := listen(hears{err: errors.New("away")}, false, false); got.SpokenWords != "" || !strings.Contains(got.UnheardReason, "can't be reached") {
		t.Errorf("%+v", got)
	}
	if got := listen(hears{err: transcribe.ErrRefused}, false, false); got.SpokenWords != "" || !strings.Contains(got.UnheardReason, "refused it") {
		t.Errorf("%+v", got)
	}
	if got := listen(nil, false, false); !strings.Contains(got.UnheardReason, "no transcription server is set up") {
		t.Errorf("%+v", got)
	}
}
