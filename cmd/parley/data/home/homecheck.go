package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/data/migrate"
)

// CheckData returns an error if a bot would lose track of its data: if the bus or the store is
// configured elsewhere while the home still contains their data, or is in the home although the
// data was moved elsewhere. It also refuses a shared bus without a shared store, and an unfinished
// migration.
func CheckData(c *config.Config) error {
	if c.Bus.URL != "" && c.Store.URL == "" {
		return &config.SettingError{
			Where: c.Origin("bus.url"), Key: "bus.url",
			Remedy: "[bus] url without [store] url: processes would share mail but not logs: set [store] url or DATABASE_URL, or remove [bus] url",
		}
	}
	moved, err := migrate.Read(c.Home)
	if err != nil {
		return err
	}
	if moved.Unfinished() {
		return &config.SettingError{Key: "home", Remedy: fmt.Sprintf(
			"the migration of %s to %s isn't finished: run the same parley migrate command again; or, to keep using this home as if the migration had never begun, delete %s and empty the destination",
			c.Home, moved.Places(), migrate.Path(c.Home))}
	}
	fleet, err := readFleet(c.Home)
	if err != nil {
		return err
	}
	parts := []struct {
		key, Location, moved, fleet string
		files                       []string
	}{
		{"store.url", string(c.Store.URL), moved.Store, fleet.Store, []string{StoreFile, homedb.BookFile}},
		{"bus.url", string(c.Bus.URL), moved.Bus, fleet.Bus, []string{BusFile}},
	}
	for _, part := range parts {
		switch {
		case part.Location == "" && part.moved != "":
			return &config.SettingError{Where: c.Origin(part.key), Key: part.key, Remedy: fmt.Sprintf(
				"not set, but the home's data was moved to %s on %s: serve it from there with the configuration that names it; or delete %s to go back to the data from before the move",
				part.moved, moved.Done.Format(time.DateOnly), migrate.Path(c.Home))}
		case part.Location == "" && part.fleet != "":
			return &config.SettingError{Where: c.Origin(part.key), Key: part.key, Remedy: fmt.Sprintf(
				"not set, but this home's bot keeps that data in %s%s; or delete %s if this home should have its own data from now on",
				part.fleet, fleet.remedy(c.File), fleetPath(c.Home))}
		case part.Location != "" && part.moved == "":
			if err := checkLeft(c, part.key, part.files); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkLeft returns an error if the home contains files that would no longer be used.
func checkLeft(c *config.Config, key string, files []string) error {
	for _, file := range files {
		path := filepath.Join(c.Home, file)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("look for data in the home: %w", err)
		}
		return &config.SettingError{
			Where: c.Origin(key), Key: key,
			Remedy: fmt.Sprintf("the home has data of its own in %s, which would be ignored: move it with parley migrate, or give this bot a new --home", path),
		}
	}
	return nil
}

// checkArrived returns an error while a migration to the store is incomplete, so that no process
// answers before all data is there.
func checkArrived(ctx context.Context, c *config.Config) error {
	if c.Store.URL == "" {
		return nil
	}
	arriving, err := migrate.Unfinished(ctx, string(c.Store.URL))
	if err != nil {
		return NameSetting(c, "store.url", err)
	}
	if arriving {
		return &config.SettingError{
			Where: c.Origin("store.url"), Key: "store.url",
			Remedy: "parley migrate hasn't finished moving a bot to " + StoreName(string(c.Store.URL)) + ": let it finish first, or run it again where you began it",
		}
	}
	return nil
}
