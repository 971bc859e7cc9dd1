package home

import (
	"fmt"
	"path/filepath"

	"parley/cmd/parley/config"
	"parley/tools/plainjson"
)

// fleetFile is the name of the fleetNote in the home of a process whose bot stores its data elsewhere.
const fleetFile = "fleet.json"

// A fleetNote says where a bot's data is if it is not in its home. A command that is called without the bot's
// configuration then knows that it is in the wrong place, and doesn't create new data there, which would keep the
// next serve from starting.
type fleetNote struct {
	Store  string `json:"store"`            // the store's address without secrets
	Bus    string `json:"bus,omitempty"`    // without secrets; "" means the home
	Config string `json:"config,omitempty"` // the configuration file that names these places
}

func fleetPath(home string) string { return filepath.Join(home, fleetFile) }

// remedy returns, as the end of an error, what the operator who has loaded the configuration file loaded should do.
func (n fleetNote) remedy(loaded string) string {
	switch n.Config {
	case "":
		return ": use the configuration that names it, with --config or the environment"
	case loaded: // the file has changed since, or a container has mounted another file there
		return ", which " + n.Config + " named earlier: start with a configuration that names it (in deploy, that's compose.fleet.yaml rather than compose.yaml)"
	}
	return ": add --config " + n.Config
}

func readFleet(home string) (n fleetNote, err error) {
	if n, err = plainjson.ReadFile[fleetNote](fleetPath(home)); err != nil {
		return n, fmt.Errorf("find out where the home's data is: %w", err)
	}
	return n, nil
}

// NoteWhereDataIs records in the home where its bot's data is, if that is elsewhere.
func NoteWhereDataIs(c *config.Config) error {
	if c.Store.URL == "" {
		return nil
	}
	now := fleetNote{Store: StoreName(string(c.Store.URL)), Bus: BusName(c), Config: c.File}
	if was, err := readFleet(c.Home); err == nil && was == now {
		return nil
	}
	if err := plainjson.ReplaceFile(fleetPath(c.Home), now); err != nil {
		return fmt.Errorf("record where the home's data is: %w", err)
	}
	return nil
}
