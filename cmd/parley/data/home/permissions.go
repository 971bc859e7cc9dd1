package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/homedb"
)

// othersMayWrite contains the mode bits that let other users change something.
const othersMayWrite fs.FileMode = 0o022

// homeFiles returns the names of those files in a home that determine what the bot does and whom it
// listens to.
func homeFiles() []string {
	names := []string{TokenFile, "parley.toml", "workspaces", TerminalsDir}
	for _, db := range []string{BusFile, StoreFile, homedb.BookFile} {
		names = append(names, db, db+"-wal", db+"-shm", db+".lock")
	}
	return names
}

// CheckPermissions refuses a home that other users of the machine can write to: they could put a conversation, an owner
// or a socket of their own into it. It also refuses a home that belongs to another user, unless root runs the program.
// A missing home is fine, because it will be created for its owner alone.
func CheckPermissions(c *config.Config) error {
	home, err := os.Stat(c.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check the home: %w", err)
	}
	refused := func(path, what, remedy string) error {
		return &config.SettingError{Where: c.Origin("home"), Key: "home", Remedy: path + " " + what + ": " + remedy}
	}
	if uid, ok := uidOf(home); ok && os.Geteuid() != 0 && uid != os.Geteuid() {
		return refused(c.Home, fmt.Sprintf("belongs to user %d, but parley is running as user %d", uid, os.Geteuid()),
			fmt.Sprintf("run parley as its owner, hand it over with `chown -R %d %s`, or choose another with --home", os.Geteuid(), c.Home))
	}
	writable := func(path string, info fs.FileInfo) error {
		return refused(path, fmt.Sprintf("is writable by other users (mode %04o)", info.Mode().Perm()),
			fmt.Sprintf("run `chmod go-w %s`; if you can't, use --home to name a folder in it, which Parley will make accessible only to its own user", path))
	}
	if home.Mode()&othersMayWrite != 0 {
		return writable(c.Home, home)
	}
	if home.Mode().Perm()&0o011 == 0 {
		return nil // nobody else can reach its contents
	}
	for _, name := range homeFiles() {
		path := filepath.Join(c.Home, name)
		// The target of a link is not part of the home; the link itself cannot be replaced.
		info, err := os.Lstat(path)
		if err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode()&othersMayWrite != 0 {
			return writable(path, info)
		}
	}
	return nil
}

// uidOf returns the user that a file belongs to; false if the system doesn't say.
func uidOf(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
