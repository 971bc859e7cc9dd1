package home

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"parley/cmd/parley/config"
)

// MarkerFile is the file in a workspace root that names the store whose conversations the
// workspaces belong to.
const MarkerFile = ".parley-store"

// MarkWorkspace ensures that all processes of one store, and no others, work in the same files: the first one writes
// the store's name into the root, and into each folder that an agent has in its place, and processes of another store
// are refused. It does nothing if the store is in the home.
func MarkWorkspace(c *config.Config) error {
	if c.Store.URL == "" {
		return nil
	}
	for _, f := range c.Folders() {
		if err := markFolder(c, f); err != nil {
			return err
		}
	}
	return nil
}

func markFolder(c *config.Config, folder config.Folder) error {
	name := StoreName(string(c.Store.URL))
	path := filepath.Join(folder.Dir, MarkerFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(name + "\n")
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("mark the workspace: %w", err)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("mark the workspace: %w", err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the workspace's marker: %w", err)
	}
	if found := strings.TrimSpace(string(raw)); found != "" && found != name {
		return &config.SettingError{
			Where: c.Origin(folder.Key), Key: folder.Key,
			Remedy: fmt.Sprintf("%s belongs to the store %s, and the configuration names %s: give every process of a fleet the same shared root, and each store its own; if the store was moved, delete %s", folder.Dir, found, name, path),
		}
	}
	return nil
}

// OwnRoot reports whether a fleet's conversations have their files in a home, which belongs to one
// process.
func OwnRoot(c *config.Config) bool { return IsOwnFolder(c, c.Workspace.Root) }

// IsOwnFolder reports whether a folder with a fleet's files is in a home.
func IsOwnFolder(c *config.Config, dir string) bool {
	return c.Bus.URL != "" && isInside(c.Home, dir)
}

// ForCommand returns the configuration for a command that reads a fleet's data, with a home that
// exists only while the command runs. With it, the command creates no folder for sessions' files
// where no server has worked.
func ForCommand(c config.Config, home string) (*config.Config, error) {
	c.Home = home
	c.Agents = maps.Clone(c.Agents)
	worked := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, MarkerFile))
		return err == nil
	}
	shared, noted := worked(c.Workspace.Root), map[string]string{}
	if shared {
		var err error
		if noted, err = readPlaces(c.Workspace.Root); err != nil {
			return nil, err
		}
	} else {
		c.Workspace.Root = filepath.Join(home, "workspaces")
	}
	for name, agent := range c.Agents {
		if !shared || noted[name] == "" && !worked(agent.Workspace) {
			agent.Workspace = ""
			c.Agents[name] = agent
		}
	}
	return &c, nil
}

// isInside reports whether path is dir or below it.
func isInside(dir, path string) bool {
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
}

// StoreName returns a store's address without the secrets in it; "unreadable" if it isn't a URL.
func StoreName(place string) string {
	u, err := url.Parse(place)
	if err != nil {
		return "unreadable"
	}
	return u.Host + u.Path
}

// BusName returns a bus's address without the secrets in it; "" if the bus is in the
// home.
func BusName(c *config.Config) string {
	if c.Bus.URL == "" {
		return ""
	}
	name := StoreName(string(c.Bus.URL))
	if c.Bus.Prefix != "" {
		name += " (" + c.Bus.Prefix + ")"
	}
	return name
}
