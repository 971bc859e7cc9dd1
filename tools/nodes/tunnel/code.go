package tunnel

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// CodeFor returns the code with which a device joins through the broker, as people type it: the owner's code, followed
// by a mark of the server's key, by which the device recognizes the server.
func CodeFor(code string, server ed25519.PublicKey) string { return code + "-" + keyMark(server) }

// ParseCode returns the parts of a code that CodeFor has made; false if the code contains no mark of a server.
func ParseCode(typed string) (code string, knows func(ed25519.PublicKey) bool, ok bool) {
	code, about := typed, ""
	if at := strings.LastIndexByte(typed, '-'); at >= 0 {
		code, about = typed[:at], strings.ToLower(typed[at+1:])
	}
	return code, func(key ed25519.PublicKey) bool { return keyMark(key) == about }, len(about) == markSize
}

const markSize = 26 // characters that stand for 128 bits

// keyMark returns a short text that identifies a key. Nobody can make a second key with the same text.
func keyMark(key ed25519.PublicKey) string {
	sum := sha256.Sum256(append([]byte("parley server\x00"), key...))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
