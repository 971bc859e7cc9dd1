package home

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/parleytest"
)

// A home on a full disk can be read, but isn't ready, because it can't store anything.
func TestAFullDiskIsNotReady(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("only who may mount has a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	cfg, err := config.Load(config.Options{Home: filepath.Join(dir, "home"), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(t.Context(), cfg, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, ready bool) {
		t.Helper()
		parleytest.WaitFor(t, what, func() bool {
			parts := h.Ready(t.Context())
			return (parts["bus"] == nil) == ready && (parts["store"] == nil) == ready
		})
	}
	want("an empty disk to be ready", true)
	full := filepath.Join(dir, "full")
	fill(t, full)
	want("a full disk not to be", false)
	if first := h.ready.checkedAt; time.Since(first) < readinessTTL/2 {
		h.Ready(t.Context())
		if h.ready.checkedAt != first {
			t.Error("what was found out just now is found out again")
		}
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	want("a disk with room again to be ready", true)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 1} {
		for err == nil || errors.Is(err, fs.ErrExist) {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}
