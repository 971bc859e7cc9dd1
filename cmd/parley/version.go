package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"parley/agent/metrics"
	"parley/cmd/parley/terminal"
	"parley/tools/plainjson"
)

// version is set by the linker when a release is built.
var version = "devel"

// thisBuild returns the version and revision of this program, and Go's version. The revision is "" if it wasn't built
// in a checkout.
func thisBuild() metrics.Build {
	b := metrics.Build{Version: version, Go: runtime.Version()}
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

type versionCmd struct{}

// A versionFlag prints the version and runs no command.
type versionFlag bool

// BeforeReset prints the version before kong reads the rest of the command line.
func (versionFlag) BeforeReset(app *kong.Kong, tty terminal.Terminal) error {
	err := versionCmd{}.Run(&globalFlags{}, tty)
	app.Exit(exitDone)
	return err
}

// Help shows examples.
func (versionCmd) Help() string { return examples("parley version", "parley --json version") }

// Run prints the version.
func (versionCmd) Run(c *globalFlags, tty terminal.Terminal) error {
	b := thisBuild()
	if c.JSON {
		return plainjson.NewEncoder(tty.Out).Encode(b)
	}
	parts := []string{"parley", b.Version, b.Revision, b.Go}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" }) // outside a checkout there is no revision
	_, err := fmt.Fprintln(tty.Out, strings.Join(parts, " "))
	return err
}
