package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/cmd/parley/config"
)

// checkElsewhere keeps a bot from forgetting: where the bus or the store is not
// in the home, nothing may be left in the home that it would no longer look at.
// It also refuses a shared bus without a shared store, whoever asks for it.
func checkElsewhere(c *config.Config) error {
	if c.Bus.URL != "" && c.Store.URL == "" {
		return &settingError{
			where: originOf(c, "bus.url"), key: "bus.url",
			remedy: "[bus] url without [store] url: processes would share mail but not logs: set [store] url or DATABASE_URL, or leave the bus out",
		}
	}
	parts := []struct {
		key   string
		away  bool
		files []string
	}{
		{"store.url", c.Store.URL != "", []string{storeFile, bookFile}},
		{"bus.url", c.Bus.URL != "", []string{busFile}},
	}
	for _, part := range parts {
		if !part.away {
			continue
		}
		for _, file := range part.files {
			path := filepath.Join(c.Home, file)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return fmt.Errorf("look for data in the home: %w", err)
			}
			return &settingError{
				where: originOf(c, part.key), key: part.key,
				remedy: fmt.Sprintf("the home has data of its own in %s, which would be forgotten: take it along with parley migrate, or give this bot a new --home", path),
			}
		}
	}
	return nil
}
