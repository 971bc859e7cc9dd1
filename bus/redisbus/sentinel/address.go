// Package sentinel finds out which Redis is the master of a group that Sentinels watch.
package sentinel

import (
	"errors"
	"strings"

	"parley/bus/redisbus/master"
)

// suffix ends the schemes of addresses with Sentinels: redis+sentinel and rediss+sentinel.
const suffix = "sentinel"

// defaultPort is the port on which a Sentinel listens by default.
const defaultPort = "26379"

// An Address is a parsed address with Sentinels:
// redis+sentinel://[USER:PASSWORD@]HOST:PORT,HOST:PORT/NAME?PARAMETERS. Its hosts are the Sentinels' hosts.
type Address struct {
	master.Address
	Name string // the master's name in the Sentinels' settings
	// User and Password are for the Sentinels (sentinel_user, sentinel_password). Those before the @ are for Redis.
	User, Password string
}

// Is reports whether an address names Sentinels.
func Is(address string) bool { return master.Has(address, suffix) }

// Parse parses an address with Sentinels. Its errors do not repeat the address, which may contain
// passwords.
func Parse(address string) (a Address, err error) {
	if a.Address, err = master.ParseAddress(address, suffix, defaultPort); err != nil {
		return a, err
	}
	if a.Name = a.Path; a.Name == "" || strings.Contains(a.Name, "/") {
		return a, errors.New("after the Sentinels, write the name that they use for the master, such as /mymaster; ?db=1 chooses a database")
	}
	a.User, a.Password = a.Take("sentinel_user"), a.Take("sentinel_password")
	return a, nil
}
