package home

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"parley/cmd/parley/config"
)

// While a process serves that doesn't know files in answers, no such files are sent. While one serves that doesn't
// know messages that grow, none are begun.
func TestBesideAnOlderReleaseNothingNewIsBegun(t *testing.T) {
	dir := t.TempDir()
	c := &config.Config{Home: dir}
	c.Workspace.Root, c.Workspace.MaxMB = dir+"/workspaces", 1
	h, err := Open(t.Context(), c, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if why, err := h.MaySendFiles(t.Context()); why != "" || err != nil {
		t.Errorf("alone: %q, %v", why, err)
	}
	if may, err := h.MayGrow(t.Context()); !may || err != nil {
		t.Errorf("alone no message may grow: %v", err)
	}
	if may, err := h.MaySummarizeParts(t.Context()); !may || err != nil {
		t.Errorf("alone no turn may be summed up: %v", err)
	}
	if may, err := h.MayArchive(t.Context()); !may || err != nil {
		t.Errorf("alone the audit may not be archived: %v", err)
	}
	if err := h.Book.NoteProcess(t.Context(), h.self, understandsArchive-1); err != nil {
		t.Fatal(err)
	}
	if may, err := h.MayArchive(t.Context()); may || err != nil {
		t.Errorf("beside an older release the audit may be archived, %v", err)
	}
	if err := h.Book.NoteProcess(t.Context(), h.self, understandsParts-1); err != nil {
		t.Fatal(err)
	}
	if may, err := h.MaySummarizeParts(t.Context()); may || err != nil {
		t.Errorf("beside an older release a turn may be summed up, %v", err)
	}
	if err := h.Book.NoteProcess(t.Context(), h.self, understandsGrowth-1); err != nil {
		t.Fatal(err)
	}
	if may, err := h.MayGrow(t.Context()); may || err != nil {
		t.Errorf("beside an older release messages may grow, %v", err)
	}
	if why, err := h.MaySendFiles(t.Context()); why != "" || err != nil {
		t.Errorf("beside a release that knows files: %q, %v", why, err)
	}
	if err := h.Book.NoteProcess(t.Context(), h.self, understandsFiles-1); err != nil {
		t.Fatal(err)
	}
	if why, err := h.MaySendFiles(t.Context()); why == "" || err != nil {
		t.Errorf("beside an older release: %q, %v", why, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if why, err := h.MaySendFiles(ended); !strings.Contains(why, "can't tell") || err == nil {
		t.Errorf("without knowing: %q, %v", why, err)
	}
}
