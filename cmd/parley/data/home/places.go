package home

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/backup"
	"parley/tools/plainjson"
)

// placesFile is the file in the workspaces' root that lists, by agent, the folders in which
// sessions have had their directories, if these are not in the root. So a changed setting is
// noticed, and the files of an agent that is no longer configured are found.
const placesFile = ".parley-agents.json"

func readPlaces(root string) (map[string]string, error) {
	noted, err := plainjson.ReadFile[map[string]string](filepath.Join(root, placesFile))
	if err != nil {
		return nil, fmt.Errorf("find out where agents' sessions have their files: %w", err)
	}
	return noted, nil
}

// notePlaces records where the directories of agents' sessions are.
func notePlaces(c *config.Config, folders map[string]string) (err error) {
	was, err := readPlaces(c.Workspace.Root)
	if err != nil || maps.Equal(was, folders) {
		return err
	}
	raw, err := plainjson.MarshalIndent(folders, "", "  ")
	if err != nil {
		return err
	}
	// Another process in the fleet may be writing its own.
	f, err := os.CreateTemp(c.Workspace.Root, placesFile+".*")
	if err != nil {
		return fmt.Errorf("record where agents' sessions have their files: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.Workspace.Root, placesFile))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("record where agents' sessions have their files: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// AgentFolders returns, by agent, the folders that contain the directories of agents' sessions, if
// these are not in the workspaces' root. For an agent in the configuration this is the configured folder, and for one
// that was removed from it the folder that was recorded, if that still exists.
func AgentFolders(c *config.Config) (map[string]string, error) {
	noted, err := readPlaces(c.Workspace.Root)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for agent, dir := range noted {
		if _, configured := c.Agents[agent]; !configured && isDir(dir) {
			folders[agent] = dir
		}
	}
	for _, f := range c.Folders()[1:] {
		folders[f.Agent] = f.Dir
	}
	return folders, nil
}

// CheckPlaces refuses a configuration with which sessions would lose track of their files, because
// the files are where an earlier configuration, or a restore, has put them.
func CheckPlaces(c *config.Config) error {
	noted, err := readPlaces(c.Workspace.Root)
	if err != nil {
		return err
	}
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		now := cmp.Or(c.Agents[agent].Workspace, c.Workspace.Root)
		if was := noted[agent]; was != "" {
			if err := checkThere(c, agent, was, now); err != nil {
				return err
			}
			if err := checkEmpty(c, agent, was, now); err != nil {
				return err
			}
		}
		if err := checkEmpty(c, agent, c.Workspace.Root, now); err != nil {
			return err
		}
	}
	return nil
}

// placeError returns the error about an agent's folder, with what to do.
func placeError(c *config.Config, agent, remedy string) error {
	key := "agents." + agent + ".workspace"
	return &config.SettingError{Where: c.Origin(key), Key: key, Remedy: remedy}
}

// checkThere refuses a folder that was an agent's but is gone, for example because its filesystem
// is not mounted.
func checkThere(c *config.Config, agent, was, now string) error {
	if isDir(was) {
		return nil
	}
	if was != now {
		if moved, err := hasFiles(filepath.Join(now, agent)); err != nil || moved {
			return err
		}
	}
	return placeError(c, agent, fmt.Sprintf("%s, where the files of this agent's conversations were, isn't there anymore: mount it or move it back; if they're gone for good, run `mkdir -p %s`", was, was))
}

// checkEmpty refuses an agent's folder while sessions' directories are in the previous folder.
func checkEmpty(c *config.Config, agent, was, now string) error {
	if was == now {
		return nil
	}
	from, to := filepath.Join(was, agent), filepath.Join(now, agent)
	left, err := hasFiles(from)
	if err != nil || !left || isSame(from, to) {
		return err
	}
	there, err := hasFiles(to)
	if err != nil {
		return err
	}
	if there {
		return placeError(c, agent, fmt.Sprintf("this agent's conversations have files in %s, but its workspace is set to %s, which has some, too: stop all processes, move the missing ones over with `mv -n %s/* %s/`, and move away or delete whatever is left in %s",
			from, to, from, to, from))
	}
	return placeError(c, agent, fmt.Sprintf("the files of this agent's conversations are in %s, but its workspace is set to %s: stop all processes and move the files over with `mkdir -p %s && mv %s %s/`",
		from, to, now, from, now))
}

// MoveRestoredWorkspaces moves agents' directories, which a restore has put into the home, to the
// folders of these agents. LeftByRestore reports those that it cannot move, because they are on
// another filesystem.
func MoveRestoredWorkspaces(c *config.Config) error {
	restored := backup.Workspaces(c.Home)
	for _, f := range c.Folders()[1:] {
		from, to := filepath.Join(restored, f.Agent), filepath.Join(f.Dir, f.Agent)
		if left, err := hasFiles(from); err != nil {
			return err
		} else if !left {
			continue
		}
		owner := OwnerOf(f.Dir)
		if err := os.MkdirAll(f.Dir, 0o700); err != nil {
			return NameSetting(c, f.Key, err)
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // the folder is empty: see CheckUnused
			return NameSetting(c, f.Key, err)
		}
		err := os.Rename(from, to)
		if errors.Is(err, syscall.EXDEV) {
			continue
		}
		if err = errors.Join(err, owner.giveFolder(f.Dir, f.Agent)); err != nil {
			return NameSetting(c, f.Key, err)
		}
	}
	return nil
}

// LeftByRestore returns what the operator has to do before the first serve, because a restore has
// put sessions' files in a different place than the configuration expects.
func LeftByRestore(c *config.Config) (next []string, err error) {
	for _, f := range c.Folders() {
		from, all := backup.Workspaces(c.Home), "/."
		if f.Agent != "" {
			from, all = filepath.Join(from, f.Agent), ""
		}
		left, err := hasFiles(from)
		if err != nil {
			return nil, err
		}
		if left && !isSame(from, f.Dir) {
			next = append(next, fmt.Sprintf("move the conversations' files to their place before you first run parley serve: mkdir -p %s && cp -a %s%s %s/ && rm -r %s", f.Dir, from, all, f.Dir, from))
		}
	}
	slices.Reverse(next) // an agent's files are moved before the root that contains them
	return next, nil
}

// CheckUnused refuses agents' folders that contain sessions' directories, because a restore cannot
// move these aside.
func CheckUnused(c *config.Config) error {
	for _, f := range c.Folders()[1:] {
		dir := filepath.Join(f.Dir, f.Agent)
		used, err := hasFiles(dir)
		if err != nil {
			return err
		}
		if used {
			return placeError(c, f.Agent, fmt.Sprintf("%s contains files of this agent's conversations, but a restore only sets aside the home's own files: move it away first, for example with `mv %s %s.before`", dir, dir, dir))
		}
	}
	return nil
}

// hasFiles reports whether a directory contains anything.
func hasFiles(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, Unusable(dir, fmt.Errorf("look for sessions' files: %w", err))
	}
	return len(entries) > 0, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isSame reports whether two paths lead to the same directory.
func isSame(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
