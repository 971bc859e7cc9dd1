package platforms

import (
	"fmt"
	"log/slog"
	"sync"

	"parley/channels"
	"parley/cmd/parley/config"
)

// Abilities say what messages on a channel can show and carry, for code that sends no message itself.
type Abilities struct {
	Title                 string // the platform's name
	Length                int    // the most characters of one message
	Files, Buttons, Edits bool
}

// abilitiesOf returns what a channel can do. It makes no request to the platform.
func abilitiesOf(c config.Channel) (Abilities, error) {
	p, ok := platformNamed(c.Platform)
	if !ok {
		return Abilities{}, fmt.Errorf("there's no platform %q", c.Platform)
	}
	ch, err := p.open(c, AdapterParts{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return Abilities{}, err
	}
	limits := ch.Limits()
	a := Abilities{Title: p.Title, Length: limits.Length}
	_, a.Files = channels.AsFileSender(ch)
	_, a.Buttons = channels.AsButtonShower(ch)
	_, edits := channels.AsEditor(ch)
	a.Edits = edits && limits.DraftEvery > 0 && c.Stream != "off"
	return a, nil
}

// KnownAbilities caches what channels can do, so that each channel's adapter is asked once for each
// reading of the settings. The zero KnownAbilities is ready to use.
type KnownAbilities struct {
	mu       sync.Mutex
	knownFor *config.Config // the settings to which known applies
	known    map[string]Abilities
}

// Of returns what a channel can do according to the settings c, or the zero Abilities if it is not on a chat
// platform. If that cannot be determined, only the first call returns the error, and later ones return the zero
// Abilities.
func (k *KnownAbilities) Of(c *config.Config, channel string) (Abilities, error) {
	settings, ok := c.Channels[channel]
	if !ok {
		return Abilities{}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.knownFor != c {
		k.knownFor, k.known = c, map[string]Abilities{}
	}
	if can, known := k.known[channel]; known {
		return can, nil
	}
	can, err := abilitiesOf(settings)
	k.known[channel] = can
	if err != nil {
		return Abilities{}, fmt.Errorf("find out what the channel %s can do: %w", channel, err)
	}
	return can, nil
}
