package config

import (
	"testing"

	"parley/cmd/parley/config/schema"
)

// declared returns all sections as they are without a home.
func declared() []schema.Section {
	var all []schema.Section
	for _, r := range sections([]Platform{{Name: "x"}}, "") {
		all = append(all, r.Section)
	}
	return all
}

// Every setting in the table can be read, shown, explained and filled in.
func TestDeclarationsAreWhole(t *testing.T) {
	for _, r := range sections([]Platform{{Name: "x"}}, "") {
		for _, set := range r.Settings {
			name := r.Name + "." + set.Key
			if set.Example == "" && set.Default == nil {
				t.Errorf("%s has neither an example nor a default", name)
			}
			if number := set.Kind == schema.Count || set.Kind == schema.Money || set.Kind == schema.Duration; number && (set.Least <= 0) != set.ZeroIsOff {
				t.Errorf("%s has no least: 0 would mean something", name)
			}
			if set.NotYet && set.Default != nil {
				t.Errorf("%s has a default and no effect", name)
			}
			if !set.NotYet && r.fill != nil && set.Fill == nil {
				t.Errorf("%s fills no field", name)
			}
		}
		if r.fill == nil && !r.KeysAreNames() {
			t.Errorf("%s fills nothing", r.Name)
		}
	}
}
