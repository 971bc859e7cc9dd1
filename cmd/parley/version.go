package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// version is set by the linker when a release is built.
var version = "devel"

type versionCmd struct{}

// build is what this program was built from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

// A versionFlag prints the version in place of any command.
type versionFlag bool

// BeforeReset prints before anything else of the command line is looked at.
func (versionFlag) BeforeReset(app *kong.Kong, tty terminal) error {
	err := versionCmd{}.Run(&cli{}, tty)
	app.Exit(exitDone)
	return err
}

// Run prints the version.
func (versionCmd) Run(c *cli, tty terminal) error {
	b := thisBuild()
	if c.JSON {
		return json.NewEncoder(tty.out).Encode(b)
	}
	parts := []string{"parley", b.Version, b.Revision, b.Go}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" }) // outside of a checkout there is no revision
	_, err := fmt.Fprintln(tty.out, strings.Join(parts, " "))
	return err
}
