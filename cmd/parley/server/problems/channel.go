package problems

import (
	"context"
	"fmt"
	"time"
)

// Channel returns the Source that watches whether a channel is connected to its platform. Up
// reports whether it is, and judges is as in Source. Owners are told once the channel was down
// for longer than tellAfter.
func Channel(name string, up, judges func() bool, tellAfter time.Duration) Source {
	id := "channel/" + name
	return Source{
		ID: id, Judges: judges,
		Look: func(context.Context, map[string]bool) ([]Concern, error) {
			if up() {
				return nil, nil
			}
			return []Concern{{ID: id, TellAfter: tellAfter, Text: fmt.Sprintf(
				"The channel `%s` has been down for %s. Nothing is lost: messages to it are waiting. `parley status` and the log say what's wrong.", name, tellAfter)}}, nil
		},
		Over: func(string) string { return fmt.Sprintf("The channel `%s` is back.", name) },
	}
}
