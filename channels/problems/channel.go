package problems

import (
	"context"
	"fmt"
	"time"
)

// Channel returns the Source that watches whether a channel is connected to its platform. up reports whether it is,
// and judges is Source.IsResponsible. Owners are told once the channel has been down for longer than tellAfter.
func Channel(name string, up, judges func() bool, tellAfter time.Duration) Source {
	id := "channel/" + name
	return Source{
		ID: id, IsResponsible: judges,
		FindConcerns: func(context.Context, map[string]bool) ([]Concern, error) {
			if up() {
				return nil, nil
			}
			return []Concern{{ID: id, TellAfter: tellAfter, Text: fmt.Sprintf(
				textChannelDown, name, tellAfter)}}, nil
		},
		EndText: func(string) string { return fmt.Sprintf(textChannelBack, name) },
	}
}
