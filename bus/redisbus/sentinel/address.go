// Package sentinel finds out which Redis is the master of a group that Sentinels watch.
package sentinel

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// suffix ends the schemes of addresses with Sentinels: redis+sentinel and rediss+sentinel.
const suffix = "+sentinel"

// defaultPort is the port on which a Sentinel listens by default.
const defaultPort = "26379"

// An Address is a parsed address with Sentinels:
// redis+sentinel://[USER:PASSWORD@]HOST:PORT,HOST:PORT/NAME?PARAMETERS.
type Address struct {
	Sentinels []string // each as host:port
	Name      string   // what the Sentinels call the master
	// User and Password are for the Sentinels (sentinel_user, sentinel_password). Those before
	// the @ are Redis' own.
	User, Password string
	// ServerName is the name for which all certificates must be valid (tls_name). If it is "", each must
	// be valid for the host that is dialed, for which Sentinels usually give an IP address.
	ServerName string
	// Copies is how many replicas must have a write before it counts as written (copies); 1 if the address doesn't
	// say.
	Copies int
	// Redis is the address of Redis itself, in the form that its client takes. Its host is to be ignored.
	Redis string
}

// Is reports whether an address names Sentinels.
func Is(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return strings.HasSuffix(scheme, suffix)
}

// Parse parses an address with Sentinels. Its errors do not repeat the address, which may contain
// passwords.
func Parse(address string) (a Address, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return a, errors.New("each Sentinel has to be HOST:PORT, with a comma between two")
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if !strings.Contains(host, ":") {
			host = net.JoinHostPort(host, defaultPort)
		}
		if name, _, err := net.SplitHostPort(host); err != nil || name == "" {
			return a, errors.New("each Sentinel has to be HOST:PORT, with a comma between two")
		}
		a.Sentinels = append(a.Sentinels, host)
	}
	if a.Name = strings.Trim(u.Path, "/"); a.Name == "" || strings.Contains(a.Name, "/") {
		return a, errors.New("after the Sentinels, write the name that they use for the master, such as /mymaster; ?db=1 chooses a database")
	}
	query := u.Query()
	take := func(name string) string {
		defer query.Del(name)
		return query.Get(name)
	}
	a.User, a.Password, a.ServerName, a.Copies = take("sentinel_user"), take("sentinel_password"), take("tls_name"), 1
	if text := take("copies"); text != "" {
		if a.Copies, err = strconv.Atoi(text); err != nil || a.Copies < 0 {
			return a, fmt.Errorf("copies is %q, but it has to be a number of replicas, or 0", text)
		}
	}
	u.Scheme, u.Host, u.Path, u.RawPath, u.RawQuery = strings.TrimSuffix(u.Scheme, suffix), a.Sentinels[0], "", "", query.Encode()
	a.Redis = u.String()
	return a, nil
}
