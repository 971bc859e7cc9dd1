package master

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// An Address is a parsed address that names several servers:
// redis+SUFFIX://[USER:PASSWORD@]HOST:PORT,HOST:PORT/PATH?PARAMETERS, or rediss+SUFFIX:// for TLS.
type Address struct {
	Hosts []string // each as host:port
	Path  string   // the path without its slash
	// ServerName is the name for which all certificates must be valid (tls_name). If it is "", each must
	// be valid for the host that is dialed, for which others usually give an IP address.
	ServerName string
	// Copies is how many replicas must have a write before it counts as written (copies); 1 if the address
	// doesn't say.
	Copies int

	parameters url.Values
	url        url.URL
}

var errHosts = errors.New("each server has to be HOST:PORT, with a comma between two")

// ParseAddress parses an address whose scheme ends with "+" and suffix. Servers without a port get the one
// given. Its errors do not repeat the address, which may contain passwords.
func ParseAddress(address, suffix, port string) (a Address, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return a, errHosts
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if !strings.Contains(host, ":") {
			host = net.JoinHostPort(host, port)
		}
		if name, _, err := net.SplitHostPort(host); err != nil || name == "" {
			return a, errHosts
		}
		a.Hosts = append(a.Hosts, host)
	}
	a.Path, a.parameters, a.url, a.Copies = strings.Trim(u.Path, "/"), u.Query(), *u, 1
	a.url.Scheme = strings.TrimSuffix(u.Scheme, "+"+suffix)
	a.ServerName = a.Take("tls_name")
	if text := a.Take("copies"); text != "" {
		if a.Copies, err = strconv.Atoi(text); err != nil || a.Copies < 0 {
			return a, fmt.Errorf("copies is %q, but it has to be a number of replicas, or 0", text)
		}
	}
	return a, nil
}

// Take removes a parameter, and returns its value; "" if the address has none.
func (a *Address) Take(parameter string) string {
	defer a.parameters.Del(parameter)
	return a.parameters.Get(parameter)
}

// Redis returns the address of one Redis in the form that its client accepts, with the remaining parameters. The
// client must ignore its host.
func (a *Address) Redis() string {
	u := a.url
	u.Host, u.Path, u.RawPath, u.RawQuery = a.Hosts[0], "", "", a.parameters.Encode()
	return u.String()
}

// Has reports whether an address's scheme ends with "+" and suffix.
func Has(address, suffix string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return strings.HasSuffix(scheme, "+"+suffix)
}
