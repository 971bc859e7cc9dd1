package outbox

import (
	"fmt"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels/markup"
)

// An InvalidError says why a request can never be sent.
type InvalidError struct {
	Code    string // for programs
	Message string // what is wrong and what to do
}

// Error returns Message.
func (e *InvalidError) Error() string { return e.Message }

const (
	// MaxDestinations is the maximum number of addresses in one request.
	MaxDestinations = 100

	maxSubject  = 256 // bytes of a Request's Subject
	maxFileName = 255 // bytes

	// maxCopies is how many bytes the file of one request may take up on the bus, where each destination has a
	// copy.
	maxCopies = 100 << 20
	// largeFile is the size, in bytes, above which a file's copies are published one after another instead of
	// concurrently.
	largeFile = 256 << 10
)

func check(r Request) error {
	switch {
	case markup.IsBlank(r.Text) && r.File == nil:
		return &InvalidError{"empty", "there's nothing to send: give some visible text, or a file"}
	case len(r.Subject) > maxSubject:
		return &InvalidError{"key_too_long", fmt.Sprintf("the key is %d bytes long; at most %d are allowed", len(r.Subject), maxSubject)}
	case r.File != nil && !isFileName(r.File.Name):
		return &InvalidError{"bad_file_name", fmt.Sprintf("the file needs a plain name of at most %d bytes, without slashes, quotation marks or control characters", maxFileName)}
	}
	return nil
}

// checkCopies refuses a file that is too large for the number of destinations.
func checkCopies(f *bus.File, destinations int) error {
	if f == nil || len(f.Data) == 0 || len(f.Data) <= maxCopies/destinations {
		return nil
	}
	return &InvalidError{"too_many_copies", fmt.Sprintf(
		"a file of %d bytes can go to at most %d destinations at once, and you named %d: name fewer, or send a link",
		len(f.Data), maxCopies/len(f.Data), destinations)}
}

// isFileName reports whether a file may have this name: it is not a path, and can do no harm in the headers in
// which it is sent to platforms.
func isFileName(name string) bool {
	return !markup.IsBlank(name) && name != "." && name != ".." && len(name) <= maxFileName &&
		bus.IsClean(name) && !strings.ContainsAny(name, `/\"`)
}

// destinations returns the addresses that a request goes to.
func (o *Outbox) destinations(r Request) ([]bus.Address, error) {
	if r.Answer == nil {
		return o.Resolve(r.To)
	}
	if err := (Directory{Channels: o.Channels()}).CheckChannel(r.Answer.At.Channel); err != nil {
		return nil, err
	}
	return []bus.Address{r.Answer.At}, nil
}

// Resolve returns the addresses for a list of names, each address once, in the order in which they first occur. It
// refuses more than MaxDestinations, and none.
func (o *Outbox) Resolve(names []string) ([]bus.Address, error) {
	if len(names) == 0 {
		return nil, &InvalidError{"no_destination", `there's no destination: name a target or an address in "to"`}
	}
	directory := Directory{Targets: o.Targets(), Channels: o.Channels()}
	var all []bus.Address
	for _, name := range names {
		to, err := directory.Find(name)
		if err != nil {
			return nil, err
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
		return nil, &InvalidError{"no_destination", "there's no destination: the target is empty"}
	}
	return all, nil
}

func joinAddresses(all []bus.Address) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = a.String()
	}
	return strings.Join(names, ", ")
}
