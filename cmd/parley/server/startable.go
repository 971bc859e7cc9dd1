package server

import (
	"context"
	"fmt"
	"net"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/server/skillfolders"
)

// CheckStart returns why a process with this role would not start with these settings, as far as
// the settings and the files that they name show; nil if it would. It changes nothing.
func CheckStart(role Role, c *config.Config) error {
	if err := role.Check(c); err != nil {
		return err
	}
	_, err := models.Prices(c)
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

// CheckPort returns an error if HTTP cannot listen at its address, unless this home's own server is
// already listening there.
func CheckPort(ctx context.Context, c *config.Config) error {
	if c.HTTP.Listen == "" {
		return nil
	}
	if own, err := home.DialSocket(ctx, c.Home); err == nil {
		return own.Close()
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.HTTP.Listen)
	if err != nil {
		return cannotListen(c, err)
	}
	return l.Close()
}

// cannotListen returns the error for an address at which HTTP cannot listen.
func cannotListen(c *config.Config, err error) *config.SettingError {
	return &config.SettingError{
		Where: c.Origin("http.listen"), Key: "http.listen",
		Remedy: fmt.Sprintf("can't listen there (%v): set another address, or \"\" for none", err),
	}
}
