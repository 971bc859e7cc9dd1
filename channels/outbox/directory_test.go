package outbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels/outbox"
)

func TestDirectoryFindsWhatANameStandsFor(t *testing.T) {
	one, two := bus.Address{Channel: "tg", Chat: "1"}, bus.Address{Channel: "slack", Chat: "C1", Thread: "7"}
	d := outbox.Directory{Targets: map[string][]bus.Address{"ci": {one, two}}, Channels: []string{"tg", "slack"}}
	for name, want := range map[string][]bus.Address{"ci": {one, two}, "tg:1": {one}, "slack:C1/7": {two}} {
		if got, err := d.Find(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("Find(%q) = %v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"cy":         `there's no target "cy"; did you mean "ci"?`,
		"tgg:1":      `there's no channel "tgg"; did you mean "tg"?`,
		"matrix:1":   `there's no channel "matrix"; known names: slack, tg`,
		"everywhere": `there's no target "everywhere"; known names: ci`,
	} {
		_, err := d.Find(name)
		if unknown, ok := errors.AsType[*outbox.UnknownError](err); !ok || unknown.Error() != want {
			t.Errorf("Find(%q): %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"tg:", ":1", "tg:1\n", "tg:" + strings.Repeat("1", bus.MaxKey)} {
		_, err := d.Find(name)
		if invalid, ok := errors.AsType[*outbox.InvalidError](err); !ok || invalid.Code != "bad_address" {
			t.Errorf("Find(%q): %v, want a bad_address", name, err)
		}
	}
}
