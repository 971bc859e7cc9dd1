package server

import (
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/server/skillfolders"
	"parley/cmd/parley/server/voices"
)

// CheckStart returns why a process with this role would not start with these settings, as far as
// the settings and the files that they name show; nil if it would. It changes nothing.
func CheckStart(role Role, c *config.Config) error {
	if err := role.Check(c); err != nil {
		return err
	}
	list, err := models.Prices(c)
	if err == nil {
		err = voices.Check(c, list)
	}
	if err != nil {
		return err
	}
	if role.Works() {
		if err := skillfolders.Find(c).Err(); err != nil {
			return err
		}
		folder, err := openKnowledge(c)
		if err != nil {
			return err
		}
		if folder != nil {
			return folder.Close()
		}
	}
	return nil
}
