package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels/outbox"
	"parley/cmd/parley/config/schema"
)

// targetsSection declares the section of targets, each a list of addresses.
func targetsSection() section {
	return section{
		Section: schema.Section{Name: "targets", Named: true, RefuseName: refuseOwnName, Reload: withChannels, Settings: []schema.Setting{
			{Kind: placeList{listed: true}, Example: `["telegram:42"]`, Reload: withChannels},
		}},
		check: func(l *loader) {
			for _, name := range l.Names("targets") {
				path := "targets." + name
				checkPlaces(l, path, false)
				checkTooMany(l, path, l.At(path), l.Texts(path))
			}
		},
	}
}

// refuseOwnName returns why a channel or target cannot have a name; nil if it can.
func refuseOwnName(name string) *schema.Fault {
	if slices.Contains([]string{"agent", "web", "console"}, name) {
		return &schema.Fault{Wrong: "the name " + name + " is reserved for Parley itself", Remedy: "choose another"}
	}
	return nil
}

// A placeList is the kind of a setting that names targets and addresses, or hosts: a list, or a
// single one. Whether they exist is checked later, when all channels are known.
type placeList struct {
	listed bool // whether even a single one has to be in a list
}

// Decode converts a string or a list to a list.
func (k placeList) Decode(d *schema.Decoder, v any) (any, *schema.Fault) {
	if _, alone := v.(string); alone && k.listed {
		return nil, d.WrongType("a list", v)
	}
	return decodePlaces(d, v)
}

// Show returns the list unchanged.
func (placeList) Show(v any) any { return v }

func decodePlaces(d *schema.Decoder, v any) ([]string, *schema.Fault) {
	if s, ok := v.(string); ok {
		v = []any{s}
	}
	list, f := d.Texts(v)
	if f == nil && len(list) == 0 {
		f = &schema.Fault{Wrong: "is empty", Remedy: d.Example()}
	}
	return list, f
}

// checkPlaces reports entries in the list at this path that are not addresses and, if targets is
// set, not names of targets either.
func checkPlaces(l *loader, path string, targets bool) {
	if !l.Mentioned(path) {
		return // the value is inherited, and reported where it is written
	}
	for i, s := range l.Texts(path) {
		if f := checkPlace(l, s, targets); f != nil {
			l.Report(l.ElementAt(path, i), path, f.Wrong, f.Remedy)
		}
	}
}

// checkTooMany reports a list of targets and addresses that refers to more addresses than one message
// may have.
func checkTooMany(l *loader, path string, at schema.Origin, to []string) {
	addresses := map[string]bool{}
	for _, s := range to {
		places, isTarget := l.Value("targets." + s).([]string)
		if !isTarget {
			addresses[s] = true
			continue
		}
		for _, address := range places {
			addresses[address] = true
		}
	}
	if n := len(addresses); n > outbox.MaxDestinations {
		l.Report(at, path, fmt.Sprintf("leads to %d addresses, but a message may have at most %d", n, outbox.MaxDestinations), "split it into several targets")
	}
}

// checkPlace returns what is wrong with s, which must be an address or, if targets is set, may be
// the name of a target; nil if nothing is wrong.
func checkPlace(l *loader, s string, targets bool) *schema.Fault {
	directory := outbox.Directory{Channels: l.Names("channels")}
	if targets {
		directory.Targets = map[string][]bus.Address{}
		for _, name := range l.Names("targets") {
			directory.Targets[name] = nil
		}
	}
	_, err := directory.Find(s)
	if err == nil {
		return nil
	}
	unknown, ok := errors.AsType[*outbox.UnknownError](err)
	if !ok || unknown.Kind == "target" && !targets {
		return &schema.Fault{Wrong: fmt.Sprintf("%q isn't an address", s), Remedy: "write CHANNEL:CHAT or CHANNEL:CHAT/THREAD"}
	}
	f := &schema.Fault{Wrong: fmt.Sprintf("no %s is called %q", unknown.Kind, unknown.Name)}
	switch {
	case unknown.Suggestion != "":
		f.Remedy = fmt.Sprintf("write %q", unknown.Suggestion+strings.TrimPrefix(s, unknown.Name))
	case unknown.Kind == "target":
		f.Remedy = "add it to [targets], or write an address: CHANNEL:CHAT"
	default:
		f.Remedy = "add [channels." + unknown.Name + "]"
		if len(unknown.KnownNames) > 0 {
			f.Remedy += ", or use one of " + strings.Join(unknown.KnownNames, ", ")
		}
	}
	return f
}

// Places returns the addresses that a list of targets and addresses refers to.
func (c *Config) Places(written []string) (all []bus.Address) {
	for _, place := range written {
		if to, ok := c.Targets[place]; ok {
			all = append(all, to...)
			continue
		}
		if at, err := bus.ParseAddress(place); err == nil { // the configuration was checked
			all = append(all, at)
		}
	}
	return all
}
