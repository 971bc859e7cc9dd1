package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// scheme is the prefix of a target's text.
const scheme = "ssh://"

// ErrTarget is returned for a text that is not a target.
var ErrTarget = errors.New(`no target such as "ssh://user@host", "ssh://user@host:2222" or "ssh://user@host/opt/parley/bin/parley"`)

// A Target is a user on a machine that ssh reaches, and the program there. Parse makes it; none of its texts begins
// with "-", or has characters with a meaning for a shell.
type Target struct {
	User, Host string
	Port       int    // 0 means what ssh takes
	Program    string // the absolute path of parley there; "" means that the shell there finds it
}

// Parse reads a target. The error is ErrTarget.
func Parse(text string) (Target, error) {
	rest, isTarget := strings.CutPrefix(text, scheme)
	if !isTarget {
		return Target{}, ErrTarget
	}
	user, rest, hasUser := strings.Cut(rest, "@")
	host, program, hasProgram := strings.Cut(rest, "/")
	t := Target{User: user}
	if hasProgram {
		t.Program = "/" + program
	}
	if i := strings.LastIndex(host, ":"); i >= 0 && !strings.HasSuffix(host, "]") {
		port, err := strconv.ParseUint(host[i+1:], 10, 16)
		if err != nil || port == 0 || host[i+1] == '0' {
			return Target{}, ErrTarget
		}
		host, t.Port = host[:i], int(port)
	}
	inner, isBracketed := strings.CutPrefix(host, "[")
	t.Host = strings.TrimSuffix(inner, "]")
	isWhole := hasUser && isBracketed == (len(inner) > len(t.Host))
	userFits := len(user) <= maxUser && !strings.HasPrefix(user, "-") && !strings.HasPrefix(user, ".") && consistsOf(user, letters+"_.-")
	if !isWhole || !userFits || !isHost(t.Host, isBracketed) || hasProgram && !isProgramPath(t.Program) {
		return Target{}, ErrTarget
	}
	return t, nil
}

// Limits of the texts of a target, in bytes.
const (
	maxUser = 64
	maxHost = 253
)

// Characters without a meaning for a shell, whatever surrounds them.
const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz0123456789"
	letters   = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// consistsOf reports whether a text is not empty and has only these characters. It doesn't use a regular expression,
// because it runs with every message of an agent on a target.
func consistsOf(text, characters string) bool {
	return text != "" && strings.Trim(text, characters) == ""
}

// isProgramPath reports whether a text is an absolute path without empty elements.
func isProgramPath(path string) bool {
	for element := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if !consistsOf(element, letters+"_.+-") {
			return false
		}
	}
	return true
}

// isHost reports whether a text is the name or address of a machine; IPv6 addresses are in brackets.
func isHost(host string, bracketed bool) bool {
	if !bracketed {
		return len(host) <= maxHost && consistsOf(host, lowerCase+"_.-") && strings.Trim(host, "_.-") == host
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Is6() && addr.Zone() == ""
}

// String returns the target in the form that Parse reads.
func (t Target) String() string {
	host := t.Host
	switch {
	case t.Port != 0:
		host = net.JoinHostPort(host, strconv.Itoa(t.Port))
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	u := url.URL{Scheme: "ssh", User: url.User(t.User), Host: host, Path: t.Program}
	return u.String()
}

// Limits and the prefix of the names of targets' nodes.
const (
	namePrefix = "ssh-"
	maxName    = 32
)

// Name returns the name of the target's node: ssh-USER-HOST, and -PORT if there is one. Characters that a node's name
// can't have become hyphens. If the name is too long, its end is replaced by a hash.
func (t Target) Name() string {
	name := t.User + "-" + t.Host
	if t.Port != 0 {
		name += "-" + strconv.Itoa(t.Port)
	}
	name = namePrefix + strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "-" + hex.EncodeToString(sum[:3])
	return name[:maxName-len(mark)] + mark
}
