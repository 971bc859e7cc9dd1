package tunnel

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// CodeFor returns the code with which a device joins through the broker, as people type it: the code that an owner has got, and
// what the device knows the server by that it gives that code to.
func CodeFor(code string, server ed25519.PublicKey) string { return code + "-" + mark(server) }

// ParseCode returns the parts of a code that CodeFor has made; false if there is nothing in it about a server.
func ParseCode(typed string) (code string, knows func(ed25519.PublicKey) bool, ok bool) {
	code, about := typed, ""
	if at := strings.LastIndexByte(typed, '-'); at >= 0 {
		code, about = typed[:at], strings.ToLower(typed[at+1:])
	}
	return code, func(key ed25519.PublicKey) bool { return mark(key) == about }, len(about) == markSize
}

const markSize = 26 // characters that stand for 128 bits

// mark returns a short text that stands for a key. Nobody can make a second key with the same.
func mark(key ed25519.PublicKey) string {
	sum := sha256.Sum256(append([]byte("parley server\x00"), key...))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
