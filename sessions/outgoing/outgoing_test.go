package outgoing_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions/outgoing"
)

const session = "main:telegram:42"

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T, root string, most int64) *outgoing.Store {
	t.Helper()
	s, err := outgoing.Open(root, most)
	requireNoError(t, err)
	t.Cleanup(func() { requireNoError(t, s.Close()) })
	return s
}

func mustKeep(t *testing.T, s *outgoing.Store, call, content string) outgoing.File {
	t.Helper()
	f, err := s.Keep(t.Context(), session, call, strings.NewReader(content), 1<<20)
	requireNoError(t, err)
	return f
}

// listFiles returns the paths of all files and folders below a root.
func listFiles(t *testing.T, root string) (all []string) {
	t.Helper()
	requireNoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && path != root {
			all = append(all, path)
			if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others may read %s: %v", path, err)
			}
		}
		return err
	}))
	return all
}

func TestKeepReadRelease(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, 1<<20)
	if left := listFiles(t, root); len(left) != 0 {
		t.Errorf("opening has made %v", left)
	}
	f := mustKeep(t, s, "call", "a chart")
	sum := sha256.Sum256([]byte("a chart"))
	if f.SHA256 != hex.EncodeToString(sum[:]) || f.Size != 7 || f.Ref != outgoing.RefOf(session, "call") {
		t.Errorf("kept is %+v", f)
	}
	if again := mustKeep(t, s, "call", "a chart"); again != f {
		t.Errorf("kept again it is %+v", again)
	}
	other := mustKeep(t, s, "call", "another")
	for _, message := range []string{"m/0", "m/1"} {
		requireNoError(t, s.Refer(outgoing.Reference{Ref: f.Ref, Session: session, Message: message}))
		requireNoError(t, s.Refer(outgoing.Reference{Ref: f.Ref, Session: session, Message: message}))
	}
	elsewhere := openStore(t, root, 1<<20) // the store of another process
	for _, want := range []struct {
		file    outgoing.File
		content string
	}{{f, "a chart"}, {other, "another"}} {
		if got, err := elsewhere.Read(want.file); err != nil || string(got) != want.content {
			t.Errorf("read %q, %v", got, err)
		}
	}
	all, err := s.References(t.Context(), session)
	if err != nil || len(all) != 2 || all[0].Ref != f.Ref || all[0].Session != session || all[0].Message == all[1].Message {
		t.Errorf("the references are %+v, %v", all, err)
	}
	requireNoError(t, elsewhere.Release(f.Ref, "m/0"))
	requireNoError(t, elsewhere.Release(f.Ref, "m/0"))
	if _, err := s.Read(f); err != nil {
		t.Errorf("a file that another message is to carry is gone: %v", err)
	}
	requireNoError(t, s.Release(f.Ref, "m/1"))
	requireNoError(t, s.Release(f.Ref, "m/1"))
	if _, err := s.Read(f); !errors.Is(err, outgoing.ErrMissing) {
		t.Errorf("after the last reference a read gives %v", err)
	}
	if left := listFiles(t, filepath.Join(root, outgoing.Folder)); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	if err := s.Refer(outgoing.Reference{Ref: f.Ref, Session: session, Message: "m/2"}); !errors.Is(err, outgoing.ErrMissing) {
		t.Errorf("a reference to a folder that is gone gives %v", err)
	}
}

// The files that a call has kept are listed until they are removed.
func TestKeptFilesOfACall(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, 1<<20)
	wantKept := func(when string, want ...outgoing.File) {
		t.Helper()
		if got, err := s.Kept(session, "call"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", when, got, err, want)
		}
	}
	wantKept("at first")
	f := mustKeep(t, s, "call", "a chart")
	mustKeep(t, s, "other", "another")
	requireNoError(t, s.Refer(outgoing.Reference{Ref: f.Ref, Session: session, Message: "m/0"}))
	requireNoError(t, os.WriteFile(filepath.Join(root, outgoing.Folder, filepath.FromSlash(f.Ref), "new-"+strings.Repeat("x", 26)), nil, 0o600)) // a file that is still being written
	wantKept("kept", f)
	requireNoError(t, s.Release(f.Ref, "m/0"))
	wantKept("released")
}

// Read returns exactly the content that was kept, or an error.
func TestReadReturnsOnlyKeptFiles(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, 1<<20)
	f := mustKeep(t, s, "call", "the content")
	path := filepath.Join(root, outgoing.Folder, filepath.FromSlash(f.Ref), f.SHA256)
	requireNoError(t, os.WriteFile(path, []byte("another one"), 0o600))
	if got, err := s.Read(f); !errors.Is(err, outgoing.ErrMissing) {
		t.Errorf("a file that was changed gives %q, %v", got, err)
	}
	requireNoError(t, os.WriteFile(path, []byte("longer than it was"), 0o600))
	if got, err := s.Read(f); !errors.Is(err, outgoing.ErrMissing) {
		t.Errorf("a longer file gives %q, %v", got, err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	requireNoError(t, os.WriteFile(secret, []byte("the content"), 0o600))
	requireNoError(t, os.Remove(path))
	requireNoError(t, os.Symlink(secret, path))
	if got, err := s.Read(f); !errors.Is(err, outgoing.ErrMissing) {
		t.Errorf("a link gives %q, %v", got, err)
	}
	inside := filepath.Join(root, "secret")
	requireNoError(t, os.WriteFile(inside, []byte("the content"), 0o600))
	for _, ref := range []string{"", "..", "../..", "/", f.Ref + "/..", "../" + f.Ref, strings.ToUpper(f.Ref), f.Ref[:20], root} {
		bad := f
		bad.Ref = ref
		if got, err := s.Read(bad); !errors.Is(err, outgoing.ErrMissing) {
			t.Errorf("the reference %q gives %q, %v", ref, got, err)
		}
		requireNoError(t, s.Release(ref, "m"))
		if err := s.Refer(outgoing.Reference{Ref: ref, Message: "m"}); !errors.Is(err, outgoing.ErrMissing) {
			t.Errorf("to refer to %q gives %v", ref, err)
		}
	}
	for _, sum := range []string{"", "../../../secret", strings.Repeat("a", 64), "../" + f.SHA256[3:]} {
		bad := f
		bad.SHA256 = sum
		if got, err := s.Read(bad); !errors.Is(err, outgoing.ErrMissing) {
			t.Errorf("the sum %q gives %q, %v", sum, got, err)
		}
	}
}

func TestSizeLimits(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, 10)
	if _, err := s.Keep(t.Context(), session, "a", strings.NewReader("12345"), 4); !errors.Is(err, outgoing.ErrTooLarge) {
		t.Errorf("a file that is too large gives %v", err)
	}
	f, err := s.Keep(t.Context(), session, "a", strings.NewReader("123456"), 6)
	requireNoError(t, err)
	if _, err := s.Keep(t.Context(), session, "b", strings.NewReader("12345"), 6); !errors.Is(err, outgoing.ErrFull) {
		t.Errorf("more than a session may have gives %v", err)
	}
	if again, err := s.Keep(t.Context(), session, "a", strings.NewReader("123456"), 6); err != nil || again != f {
		t.Errorf("the same again is %+v, %v", again, err)
	}
	if _, err := s.Keep(t.Context(), "main:telegram:43", "b", strings.NewReader("12345"), 6); err != nil {
		t.Errorf("another session suffers: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Keep(ended, session, "c", strings.NewReader("1"), 6); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end a call gives %v", err)
	}
	broken := io.MultiReader(strings.NewReader("1"), errorReader{})
	if _, err := s.Keep(t.Context(), session, "c", broken, 6); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that breaks off gives %v", err)
	}
	for _, path := range listFiles(t, root) {
		if strings.Contains(path, "new-") {
			t.Errorf("a refused file has left %s", path)
		}
	}
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Successive holders of a session, and all destinations of a call, may use a folder concurrently.
func TestConcurrentUse(t *testing.T) {
	root := t.TempDir()
	content := bytes.Repeat([]byte("x"), 1<<16)
	var wg sync.WaitGroup
	for n := range 8 {
		s := openStore(t, root, 1<<30)
		wg.Go(func() {
			f, err := s.Keep(t.Context(), session, "call", bytes.NewReader(content), 1<<20)
			if err == nil {
				err = s.Refer(outgoing.Reference{Ref: f.Ref, Session: session, Message: fmt.Sprint("m/", n)})
			}
			if err == nil {
				_, err = s.Read(f)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ref := outgoing.RefOf(session, "call")
	s := openStore(t, root, 1<<30)
	for n := range 8 {
		wg.Go(func() {
			if err := s.Release(ref, fmt.Sprint("m/", n)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left := listFiles(t, filepath.Join(root, outgoing.Folder)); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestRemove(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, 1<<20)
	if removed, err := s.Remove(t.Context(), session); removed || err != nil {
		t.Errorf("nothing was removed: %v, %v", removed, err)
	}
	mine := mustKeep(t, s, "call", "mine")
	others, err := s.Keep(t.Context(), "main:telegram:43", "call", strings.NewReader("theirs"), 100)
	requireNoError(t, err)
	if removed, err := s.Remove(t.Context(), session); !removed || err != nil {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if _, err := s.Read(mine); !errors.Is(err, outgoing.ErrMissing) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := s.Read(others); err != nil {
		t.Errorf("another's is gone: %v", err)
	}
}

func TestSweep(t *testing.T) {
	root := t.TempDir()
	s := openStore(t, root, 1<<20)
	ctx := t.Context()
	sent, waits, unreferred := mustKeep(t, s, "sent", "1"), mustKeep(t, s, "waits", "2"), mustKeep(t, s, "unreferred", "3")
	for _, r := range []outgoing.Reference{{sent.Ref, session, "sent"}, {waits.Ref, session, "waits"}, {waits.Ref, session, "also sent"}} {
		requireNoError(t, s.Refer(r))
	}
	asked := 0
	needed := func(r outgoing.Reference) (bool, error) {
		asked++
		return r.Message == "waits" && r.Session == session, nil
	}
	if n, err := s.Sweep(ctx, time.Now().Add(-time.Hour), needed); n != 0 || err != nil || asked != 0 {
		t.Errorf("what is new was looked at: %d, %v, %d", n, err, asked)
	}
	refused := errors.New("refused")
	if _, err := s.Sweep(ctx, time.Now().Add(time.Hour), func(outgoing.Reference) (bool, error) { return false, refused }); !errors.Is(err, refused) {
		t.Errorf("who cannot tell is not heard: %v", err)
	}
	if _, err := s.Sweep(ctx, time.Now().Add(time.Hour), needed); err != nil {
		t.Errorf("sweeping: %v", err)
	}
	if n, err := s.Sweep(ctx, time.Now().Add(time.Hour), needed); n != 0 || err != nil {
		t.Errorf("swept twice: %d, %v", n, err)
	}
	for _, f := range []outgoing.File{sent, unreferred} {
		if _, err := s.Read(f); !errors.Is(err, outgoing.ErrMissing) {
			t.Errorf("%+v is still there: %v", f, err)
		}
	}
	if _, err := s.Read(waits); err != nil {
		t.Errorf("what waits is gone: %v", err)
	}
	if all, err := s.References(ctx, ""); err != nil || len(all) != 1 || all[0].Message != "waits" {
		t.Errorf("the references are %+v, %v", all, err)
	}
}
