package sqlbook_test

import (
	"maps"
	"testing"

	"parley/bus"
	"parley/channels"
)

func TestNamesIncludeOnlyPeople(t *testing.T) {
	b := openBook(t, newPlace(t))
	for _, c := range []channels.Chat{
		{Address: bus.Address{Channel: "telegram", Chat: "42"}, Person: "telegram:42", Name: "Ada"},
		{Address: bus.Address{Channel: "telegram", Chat: "43"}, Person: "telegram:43", Name: "Bob"},
		{Address: bus.Address{Channel: "slack", Chat: "D1"}, Person: "slack:U1", Name: "Ida"},
	} {
		if err := b.RecordChat(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		people []string
		want   map[string]string
	}{
		{nil, map[string]string{}},
		{[]string{"telegram:44"}, map[string]string{}},
		{[]string{"telegram:42", "telegram:44", "slack:U1"}, map[string]string{"telegram:42": "Ada", "slack:U1": "Ida"}},
	} {
		if got, err := b.Names(t.Context(), c.people...); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("the names of %q are %q, %v", c.people, got, err)
		}
	}
}
