package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
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

// Run prints the version.
func (versionCmd) Run(c *cli, tty terminal) error {
	b := thisBuild()
	if c.JSON {
		return json.NewEncoder(tty.out).Encode(b)
	}
	_, err := fmt.Fprintf(tty.out, "parley %s %s %s\n", b.Version, b.Revision, b.Go)
	return err
}
