package outbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/bus"
	"parley/tools/spelling"
)

// An UnknownError says that a message's destination names a target or a channel that isn't configured.
type UnknownError struct {
	Kind       string // "target" or "channel"
	Name       string
	Suggestion string   // the existing name that may have been meant, or ""
	KnownNames []string // the names that exist
}

// Error proposes the nearest existing name or, if none is near, lists all of them.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there's no %s %q", e.Kind, e.Name)
	switch {
	case e.Suggestion != "":
		return fmt.Sprintf("%s; did you mean %q?", text, e.Suggestion)
	case len(e.KnownNames) == 0:
		return fmt.Sprintf("%s; no %s is configured", text, e.Kind)
	}
	return fmt.Sprintf("%s; known names: %s", text, strings.Join(e.KnownNames, ", "))
}

// A Directory finds the addresses behind the names that people, programs and models give as destinations.
type Directory struct {
	Targets  map[string][]bus.Address // by name
	Channels []string                 // the names of channels that have addresses
}

// Find returns the addresses for a name, which is a target's name or an address written as CHANNEL:CHAT[/THREAD].
// Its errors are *UnknownError and *InvalidError.
func (d Directory) Find(name string) ([]bus.Address, error) {
	if to, ok := d.Targets[name]; ok {
		return to, nil
	}
	if !strings.Contains(name, ":") {
		return nil, newUnknownError("target", name, slices.Collect(maps.Keys(d.Targets)))
	}
	a, err := bus.ParseAddress(name)
	if err != nil || len(name) > bus.MaxKey {
		return nil, &InvalidError{"bad_address", fmt.Sprintf("%q isn't an address: write CHANNEL:CHAT or CHANNEL:CHAT/THREAD, in at most %d bytes and without control characters", clip(name), bus.MaxKey)}
	}
	if err := d.CheckChannel(a.Channel); err != nil {
		return nil, err
	}
	return []bus.Address{a}, nil
}

// CheckChannel returns an *UnknownError if there is no channel with that name.
func (d Directory) CheckChannel(name string) error {
	if slices.Contains(d.Channels, name) {
		return nil
	}
	return newUnknownError("channel", name, d.Channels)
}

func newUnknownError(what, name string, known []string) error {
	known = slices.Sorted(slices.Values(known))
	return &UnknownError{Kind: what, Name: name, Suggestion: spelling.Nearest(name, known), KnownNames: known}
}

func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
