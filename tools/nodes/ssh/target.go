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

// scheme is what the text of a target begins with.
const scheme = "ssh://"

// ErrTarget says that a text is no target.
var ErrTarget = errors.New(`no target such as "ssh://user@host", "ssh://user@host:2222" or "ssh://user@host/opt/parley/bin/parley"`)

// A Target is a user on a machine, which ssh reaches, and the program there. Parse makes it; none of its texts begins with
// "-", or has characters that mean something to a shell.
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
	if !isWhole || !userFits || !hostFits(t.Host, isBracketed) || hasProgram && !programFits(t.Program) {
		return Target{}, ErrTarget
	}
	return t, nil
}

// The bounds of what a target consists of, in bytes.
const (
	maxUser = 64
	maxHost = 253
)

// Characters that mean nothing to a shell, whatever surrounds them.
const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz0123456789"
	letters   = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// consistsOf reports whether a text is not empty and has no other characters than these. No regular expression is
// compiled for it: the settings of an agent are asked for its target with every message.
func consistsOf(text, characters string) bool {
	return text != "" && strings.Trim(text, characters) == ""
}

// programFits reports whether a text is an absolute path without empty elements.
func programFits(path string) bool {
	for element := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if !consistsOf(element, letters+"_.+-") {
			return false
		}
	}
	return true
}

// hostFits reports whether a text is the name or address of a machine; IPv6 addresses are in brackets.
func hostFits(host string, bracketed bool) bool {
	if !bracketed {
		return len(host) <= maxHost && consistsOf(host, lowerCase+"_.-") && strings.Trim(host, "_.-") == host
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Is6() && addr.Zone() == ""
}

// String returns the target as Parse reads it.
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

// The names of the nodes that targets are.
const (
	namePrefix = "ssh-"
	maxName    = 32
)

// Name returns the name of the node that the target is: ssh-USER-HOST, and -PORT if there is one, in which each character that no
// node's name can have is a hyphen. If that is too long, a hash is at its end instead.
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
