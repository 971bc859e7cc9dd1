package outbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels/markup"
	"parley/tools/spelling"
)

// An UnknownError says that a destination names nothing that is configured.
type UnknownError struct {
	What    string // "target" or "channel"
	Name    string
	Nearest string   // what a slip of the pen may have meant, or ""
	Known   []string // what there is
}

// Error says what there is instead.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %q", e.What, e.Name)
	switch {
	case e.Nearest != "":
		return fmt.Sprintf("%s; did you mean %q?", text, e.Nearest)
	case len(e.Known) == 0:
		return fmt.Sprintf("%s; no %s is configured", text, e.What)
	}
	return fmt.Sprintf("%s; there is: %s", text, strings.Join(e.Known, ", "))
}

// An InvalidError says what about a request could never be sent.
type InvalidError struct {
	Code    string // for programs
	Message string // what is wrong and what to do
}

// Error is the message.
func (e *InvalidError) Error() string { return e.Message }

const (
	// MaxDestinations is how many addresses one request may have.
	MaxDestinations = 100

	maxSubject  = 256 // bytes of what ties messages together
	maxFileName = 255 // bytes

	// maxCopies bounds what one request's file takes on the bus, where each
	// destination has a copy.
	maxCopies = 100 << 20
	// largeFile is from how many bytes on files are published one after the other.
	largeFile = 256 << 10
)

func check(r Request) error {
	switch {
	case markup.Blank(r.Text) && r.File == nil:
		return &InvalidError{"empty", "there is nothing to say: give a text in which there is something to see, or a file"}
	case len(r.Subject) > maxSubject:
		return &InvalidError{"key_too_long", fmt.Sprintf("the key has %d bytes; at most %d are allowed", len(r.Subject), maxSubject)}
	case r.File != nil && !isFileName(r.File.Name):
		return &InvalidError{"bad_file_name", fmt.Sprintf("the file needs a plain name of at most %d bytes, without slashes, quotation marks and control characters", maxFileName)}
	}
	return nil
}

// checkCopies refuses a file that is too large for so many destinations.
func checkCopies(f *bus.File, destinations int) error {
	if f == nil || len(f.Data) == 0 || len(f.Data) <= maxCopies/destinations {
		return nil
	}
	return &InvalidError{"too_many_copies", fmt.Sprintf(
		"a file of %d bytes can go to %d destinations at once, and these are %d: name fewer in a request, or send a link",
		len(f.Data), maxCopies/len(f.Data), destinations)}
}

// isFileName tells of a name that it names no place, and that it does no harm in
// the headers in which platforms are told of it.
func isFileName(name string) bool {
	return !markup.Blank(name) && name != "." && name != ".." && len(name) <= maxFileName &&
		bus.IsClean(name) && !strings.ContainsAny(name, `/\"`)
}

// resolve makes addresses of names, each once, in the order of their first mention.
func (o *Outbox) resolve(names []string) ([]bus.Address, error) {
	if len(names) == 0 {
		return nil, &InvalidError{"no_destination", `there is no destination: name a target or an address in "to"`}
	}
	targets := o.Targets()
	var all []bus.Address
	for _, name := range names {
		to, ok := targets[name]
		if !ok {
			a, err := o.address(name, targets)
			if err != nil {
				return nil, err
			}
			to = []bus.Address{a}
		}
		for _, a := range to {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
		if len(all) > MaxDestinations {
			return nil, &InvalidError{"too_many_destinations", fmt.Sprintf(`"to" has more than %d addresses: send several messages`, MaxDestinations)}
		}
	}
	if len(all) == 0 {
		return nil, &InvalidError{"no_destination", "there is no destination: the target is empty"}
	}
	return all, nil
}

func (o *Outbox) address(name string, targets map[string][]bus.Address) (bus.Address, error) {
	if !strings.Contains(name, ":") {
		known := slices.Sorted(maps.Keys(targets))
		return bus.Address{}, &UnknownError{What: "target", Name: name, Nearest: spelling.Nearest(name, known), Known: known}
	}
	a, err := bus.ParseAddress(name)
	if err != nil || len(name) > bus.MaxKey {
		return bus.Address{}, &InvalidError{"bad_address", fmt.Sprintf("%q is no address: want CHANNEL:CHAT or CHANNEL:CHAT/THREAD, at most %d bytes and no control characters", clip(name), bus.MaxKey)}
	}
	if known := o.Channels(); !slices.Contains(known, a.Channel) {
		return bus.Address{}, &UnknownError{What: "channel", Name: a.Channel, Nearest: spelling.Nearest(a.Channel, known), Known: slices.Sorted(slices.Values(known))}
	}
	return a, nil
}

func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func joined(all []bus.Address) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}
