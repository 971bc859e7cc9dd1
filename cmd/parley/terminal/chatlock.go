package terminal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"parley/cmd/parley/data/home"
)

const (
	defaultChat     = "default"
	maxDefaultChats = 100
)

// LockConversation locks a conversation with an agent ("" means the main one) for this terminal:
// the named one, or else the first of default, default-2, … that no other terminal has locked. If
// that is not the first, it tells the person so, on said, and after maxDefaultChats it gives up. A
// named conversation is joined even if another terminal has locked it.
func LockConversation(homeDir, agent, name string, said io.Writer) (chat string, unlock func(), err error) {
	chat = name
	if name == "" {
		chat = defaultChat
	}
	for n := 2; ; n++ {
		unlock, err := lockChat(homeDir, agent, chat)
		switch taken := errors.Is(err, syscall.EWOULDBLOCK); {
		case err == nil:
			return chat, unlock, nil
		case !taken:
			return "", nil, fmt.Errorf("lock the conversation %s: %w", chat, err)
		case name != "":
			return chat, func() {}, nil
		case n > maxDefaultChats:
			return "", nil, fmt.Errorf("%d terminals are already open: name a conversation with --session", maxDefaultChats)
		}
		next := fmt.Sprintf("%s-%d", defaultChat, n)
		fmt.Fprintf(said, "another terminal is using the conversation %s; this one uses %s\n", chat, next)
		chat = next
	}
}

// lockChat locks a conversation until unlock is called. The kernel releases the lock when the
// process dies, however it dies, and no server needs to know about it, because all terminals run on
// the home's machine. The lock file is never removed: otherwise two terminals could lock two files
// with the same name.
func lockChat(homeDir, agent, chat string) (unlock func(), err error) {
	if agent != "" {
		chat = agent + ":" + chat
	}
	dir := filepath.Join(homeDir, home.TerminalsDir)
	owner := home.OwnerOf(homeDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, shortHash(chat)+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := owner.GiveHome(homeDir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // nothing was written
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
