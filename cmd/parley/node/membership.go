package node

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley/tools/plainjson"
)

// A Membership is what a device knows about the server that it has joined.
type Membership struct {
	Server    string `json:"server"` // the server's address
	Name      string `json:"name"`   // the name of this node
	ServerKey []byte `json:"server_key"`
}

// Joined reports whether the device of a home has joined a server; false if that cannot be read.
func Joined(home string) bool {
	_, _, err := read(home)
	return err == nil
}

// read reads the membership and the device's key. It returns a *SetupError if the device has not joined.
func read(home string) (m Membership, key ed25519.PrivateKey, err error) {
	m, err = plainjson.ReadFile[Membership](filepath.Join(home, membershipFile))
	if err != nil {
		return m, nil, fmt.Errorf("read what the node knows of its server: %w", err)
	}
	key, err = readKey(home)
	if err != nil {
		return m, nil, err
	}
	if m.Server == "" || m.Name == "" || len(m.ServerKey) != ed25519.PublicKeySize || key == nil {
		return m, nil, newSetupError(textNotJoined, home)
	}
	return m, key, nil
}

// readKey reads the device's key; nil if there is none.
func readKey(home string) (ed25519.PrivateKey, error) {
	path := filepath.Join(home, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's key: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, newSetupError(textBadKey, path)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// makeKey returns the device's key, and creates it if there is none. The key is on disk before it is used, so a
// device that dies while it joins can join again with the same code.
func makeKey(home string) (ed25519.PrivateKey, error) {
	key, err := readKey(home)
	if err != nil || key != nil {
		return key, err
	}
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // rand.Read never fails
	text := base64.StdEncoding.EncodeToString(seed) + "\n"
	if err := plainjson.ReplaceFileBytes(filepath.Join(home, keyFile), []byte(text)); err != nil {
		return nil, fmt.Errorf("write the node's key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}
