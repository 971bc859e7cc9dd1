package config

import (
	"os"
	"path/filepath"
	"strings"
)

// Sought is where the configuration file was looked for, for telling somebody who
// expected another one.
type Sought struct {
	// Places are those that were looked at before none was found, in words; empty
	// where a file was found.
	Places []string
	// Unread is a ./parley.toml that is there and was passed over on purpose; "" if
	// there is none, or if a file was named.
	Unread string
}

// seek finds out where a file is looked for.
func (l *loader) seek() (s Sought) {
	file, named, _ := l.findFile()
	if named {
		return s
	}
	const local = "parley.toml"
	if !l.opts.LookLocal && !sameFile(file, local) {
		if info, err := os.Stat(local); err == nil && info.Mode().IsRegular() {
			s.Unread = local
			if abs, err := filepath.Abs(local); err == nil {
				s.Unread = abs
			}
		}
	}
	if _, err := os.Stat(file); file == "" || err == nil {
		return s
	}
	s.Places = []string{"$PARLEY_CONFIG (not set)"}
	if l.opts.LookLocal {
		s.Places = append(s.Places, "./"+local)
	}
	if file != local {
		s.Places = append(s.Places, file)
	}
	return s
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// String says that no file was found and where it was looked for; it is empty where
// one was found.
func (s Sought) String() string {
	if len(s.Places) == 0 {
		return ""
	}
	return "no configuration file was found; looked at --config (not given), " + strings.Join(s.Places, ", ")
}
