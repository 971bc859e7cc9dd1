package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"parley/cmd/parley/config/schema"
)

// Workspace says where sessions keep their files, and how much they may keep.
type Workspace struct {
	Root  string // absolute path
	MaxMB int    // the limit for one session
	// UndoTurns is how many turns of a session can be undone; 0 means none.
	UndoTurns int
}

// A Folder is a folder that contains sessions' directories.
type Folder struct {
	Agent string // whose sessions; "" means those of all agents that have no folder of their own
	Key   string // key of the setting
	Dir   string // absolute path
}

// workspaceSection declares the settings for where sessions keep their files. home is the home's
// folder.
func workspaceSection(home string) section {
	return section{
		Section: schema.Section{Name: "workspace", Settings: []schema.Setting{
			{Key: "root", Kind: schema.Path, Default: filepath.Join(home, "workspaces"), Example: `"workspaces"`, Fill: schema.Into(func(w *Workspace) any { return &w.Root })},
			{Key: "max_mb", Kind: schema.Count, Default: int64(200), Least: 1, Fill: schema.Into(func(w *Workspace) any { return &w.MaxMB })},
			{Key: "undo_turns", Kind: schema.Count, Default: int64(20), ZeroIsOff: true, Fill: schema.Into(func(w *Workspace) any { return &w.UndoTurns })},
		}},
		check: checkAgentFolders,
	}
}

// checkAgentFolders reports agents' folders in which their sessions' files would not be separate
// from others.
func checkAgentFolders(l *loader) {
	if shared := "agents." + defaults + ".workspace"; l.Mentioned(shared) {
		l.Report(l.At(shared), shared, "all agents would share the folder", "write it as root in [workspace], or give agents folders of their own: [agents.NAME] workspace")
		return
	}
	taken := foldersInUse(l)
	for _, name := range l.Names("agents") {
		path := "agents." + name + ".workspace"
		dir := l.Text(path)
		if dir == "" {
			continue
		}
		real := realPath(dir)
		if schema.Within(real, realPath(l.home)) {
			l.Report(l.At(path), path, "the home is in that folder", "choose one that doesn't contain the home, such as /srv/"+name)
			continue
		}
		i := slices.IndexFunc(taken, func(other folderInUse) bool { return schema.Within(other.dir, real) || schema.Within(real, other.dir) })
		if i >= 0 {
			l.Report(l.At(path), path, fmt.Sprintf("%s overlaps with %s", dir, taken[i].what), "choose a folder just for this agent's conversations, such as /srv/"+name)
		}
		taken = append(taken, folderInUse{"the folder of the agent " + name, real})
	}
}

// A folderInUse is a folder that must not contain an agent's folder, nor be inside one.
type folderInUse struct{ what, dir string }

// foldersInUse lists the folders that are used for something else.
func foldersInUse(l *loader) []folderInUse {
	all := []folderInUse{{"the folder in [workspace] root", realPath(l.Text("workspace.root"))}}
	for _, name := range []string{"workspaces", "skills", "terminals"} {
		all = append(all, folderInUse{"one of the home's own folders", realPath(filepath.Join(l.home, name))})
	}
	if dir := l.Text("knowledge.dir"); dir != "" {
		all = append(all, folderInUse{"the folder in [knowledge] dir", realPath(dir)})
	}
	for _, dir := range l.Texts("skills.dirs") {
		all = append(all, folderInUse{"a folder in [skills] dirs", realPath(dir)})
	}
	return all
}

// realPath returns a path with the symbolic links resolved in the part of it that exists.
func realPath(path string) string {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}
