package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley/cmd/parley/config/schema"
)

// withEnv returns the options with Env set.
func (o Options) withEnv() Options {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	return o
}

// variable returns the value of an environment variable; false if it is unset or empty.
func (o Options) variable(name string) (string, bool) {
	v, ok := o.Env(name)
	return v, ok && v != ""
}

// findHome returns the absolute path of the home, or "" and why it cannot be determined.
func findHome(o Options) (dir string, wrong []schema.Problem) {
	home, from := o.Home, schema.Origin{}
	if home == "" {
		if v, ok := o.variable("PARLEY_HOME"); ok {
			home, from = v, schema.Origin{Var: "PARLEY_HOME"}
		} else if v, ok := o.variable("HOME"); ok {
			home = filepath.Join(v, ".parley")
		}
	}
	if home == "" {
		return "", []schema.Problem{{Wrong: "Parley can't find a home: neither $HOME nor $PARLEY_HOME is set", Remedy: "give --home DIR"}}
	}
	abs, err := filepath.Abs(home)
	if err != nil {
		return "", []schema.Problem{from.Problem("", &schema.Fault{Wrong: "Parley can't find the home: " + schema.Reason(err), Remedy: "give --home an absolute path"})}
	}
	return abs, nil
}

// HomeDir returns the absolute path of the home, whatever the configuration is like.
func HomeDir(o Options) (string, error) {
	dir, wrong := findHome(o.withEnv())
	if len(wrong) > 0 {
		return "", &schema.Error{Problems: wrong}
	}
	return dir, nil
}

// findFile returns the path of the configuration file, which may not exist; "" if nobody knows where to look. named
// says that the operator has named the file, so that it must exist, and from where.
func findFile(o Options, home string) (file string, named bool, from schema.Origin) {
	if o.File != "" {
		return o.File, true, schema.Origin{}
	}
	if v, ok := o.variable("PARLEY_CONFIG"); ok {
		return v, true, schema.Origin{Var: "PARLEY_CONFIG"}
	}
	if o.LookLocal {
		if _, err := os.Stat(localFile); !errors.Is(err, fs.ErrNotExist) {
			return localFile, false, schema.Origin{}
		}
	}
	if home == "" {
		return "", false, schema.Origin{}
	}
	return filepath.Join(home, localFile), false, schema.Origin{}
}

// localFile is the name of the configuration file, in the home and in the working directory.
const localFile = "parley.toml"

// Place returns the absolute path at which a command's configuration file is, or would be: the path
// that the operator named, or else the one in the working directory, if it is looked for there and
// exists, or else the one in the home.
func Place(o Options) (string, error) {
	o = o.withEnv()
	home, wrong := findHome(o)
	if err := schema.ErrorOf(wrong); err != nil && o.File == "" {
		return "", err
	}
	file, _, _ := findFile(o, home)
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("find out where the configuration is: %w", err)
	}
	return abs, nil
}

// FileSearch records where the configuration file was searched for. It is printed for a person who expected another
// file.
type FileSearch struct {
	// Places lists in words the places that were searched, if no file was found; empty if one was
	// found.
	Places []string
	// Unread is a ./parley.toml that exists but was ignored on purpose; "" if there is none, or if
	// a file was given.
	Unread string
}

// fileSearchOf returns where the configuration file was searched for without success, and whether a
// parley.toml in the working directory is ignored.
func fileSearchOf(o Options, home string) (s FileSearch) {
	file, named, _ := findFile(o, home)
	if named {
		return s
	}
	if !o.LookLocal && !isSameFile(file, localFile) {
		if info, err := os.Stat(localFile); err == nil && info.Mode().IsRegular() {
			s.Unread = localFile
			if abs, err := filepath.Abs(localFile); err == nil {
				s.Unread = abs
			}
		}
	}
	if _, err := os.Stat(file); file == "" || err == nil {
		return s
	}
	s.Places = []string{"$PARLEY_CONFIG (not set)"}
	if o.LookLocal {
		s.Places = append(s.Places, "./"+localFile)
	}
	if file != localFile {
		s.Places = append(s.Places, file)
	}
	return s
}

func isSameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// String returns in words that no file was found and where it was searched for, or "" if one was found.
func (s FileSearch) String() string {
	if len(s.Places) == 0 {
		return ""
	}
	return "Parley found no configuration file. It looked for one in these places: --config (not given), " + strings.Join(s.Places, ", ")
}
