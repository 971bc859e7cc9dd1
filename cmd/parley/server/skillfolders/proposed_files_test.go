package skillfolders

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An accepted skill is installed completely in the operator's folder, readable for the user that runs commands, and
// replaces no other skill.
func TestASkillIsInstalled(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "skills")
	s := ShownProposal{Proposal: Proposal{Name: "x"}, Files: []ProposedFile{{"SKILL.md", false, "words"}, {"bin/run", true, "#!/bin/sh\n"}}}
	var err error
	if s.Hash, err = hashOf(s.Files); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, ".proposed-x")
	if err := os.MkdirAll(filepath.Join(left, "of a process that died"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, as if the process had died after the first
		place, err := install(dir, s)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(found) != 1 || found[0] != place {
			t.Errorf("the folder has %v, %v", found, err)
		}
		for name, mode := range map[string]os.FileMode{".": 0o755, "SKILL.md": 0o644, "bin": 0o755, "bin/run": 0o755} {
			info, err := os.Stat(filepath.Join(place, name))
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s is %v, %v", name, info, err)
			}
		}
	}
	other := s
	other.Hash = "another"
	if _, err := install(dir, other); err == nil || !strings.Contains(err.Error(), "propose x-v2") {
		t.Errorf("another skill of that name is installed: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := install(filepath.Join(dir, "file"), s); err == nil || !strings.Contains(err.Error(), "can't be written to") {
		t.Errorf("into a file it is installed: %v", err)
	}
}
