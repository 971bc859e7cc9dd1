package home

import (
	"context"
	"fmt"
	"net"

	"parley/cmd/parley/config"
)

// CheckPort returns an error if HTTP cannot listen at its address. It doesn't look while this home's server runs, because that
// may be what listens there.
func CheckPort(ctx context.Context, c *config.Config) error {
	if c.HTTP.Listen == "" {
		return nil
	}
	if own, err := DialSocket(ctx, c.Home); err == nil {
		return own.Close()
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.HTTP.Listen)
	if err != nil {
		return CannotListen(c, err)
	}
	return l.Close()
}

// CannotListen returns the error for an address at which HTTP cannot listen.
func CannotListen(c *config.Config, err error) *config.SettingError {
	return &config.SettingError{
		Where: c.Origin("http.listen"), Key: "http.listen",
		Remedy: fmt.Sprintf("can't listen there (%v): set another address, or \"\" for none", err),
	}
}
