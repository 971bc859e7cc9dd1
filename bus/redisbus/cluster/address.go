package cluster

import (
	"errors"

	"parley/bus/redisbus/master"
)

// suffix ends the schemes of addresses of a Cluster: redis+cluster and rediss+cluster.
const suffix = "cluster"

// defaultPort is the port on which a Redis listens by default.
const defaultPort = "6379"

// Is reports whether an address names a Cluster.
func Is(address string) bool { return master.Has(address, suffix) }

// Parse parses an address of a Cluster: redis+cluster://[USER:PASSWORD@]HOST:PORT,HOST:PORT?PARAMETERS, with some
// of its nodes, which know the others. Its errors do not repeat the address, which may contain passwords.
func Parse(address string) (a master.Address, err error) {
	if a, err = master.ParseAddress(address, suffix, defaultPort); err != nil {
		return a, err
	}
	if a.Path != "" || a.Take("db") != "" {
		return a, errors.New("a Cluster has only one database: remove what follows the nodes; [bus] prefix keeps several fleets apart")
	}
	return a, nil
}
