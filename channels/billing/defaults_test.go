package billing_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"parley/channels"
	"parley/channels/billing"
	"parley/channels/problems"
)

// capNotes keeps one note in memory.
type capNotes struct{ value string }

func (n *capNotes) SetNote(_ context.Context, _, _, value string) error {
	n.value = value
	return nil
}

func (n *capNotes) Noted(context.Context, string, string) (channels.Note, error) {
	return channels.Note{Value: n.value}, nil
}

func TestDefaultCapsAreAnnouncedOnce(t *testing.T) {
	failed := errors.New("the bus is away")
	for _, c := range []struct {
		name    string
		used    bool
		before  string   // what was announced before
		set     []string // the keys that the operator has set
		telling error
		told    bool
		noted   string
		err     error
	}{
		{name: "people used the bot before", used: true, set: []string{"day"}, told: true, noted: "user_day=$2.00 month=$200.00"},
		{name: "nobody used it", noted: "user_day=$2.00 day=$20.00 month=$200.00"},
		{name: "all are set", used: true, set: []string{"user_day", "day", "month"}},
		{name: "all were announced", used: true, before: "user_day=$2.00 day=$20.00 month=$200.00", noted: "user_day=$2.00 day=$20.00 month=$200.00"},
		{name: "one has changed", used: true, before: "user_day=$1.00", set: []string{"day", "month"}, noted: "user_day=$1.00 user_day=$2.00"},
		{name: "no chat with an owner is known", used: true, set: []string{"day", "month"}, telling: problems.ErrNobody, told: true, noted: "user_day=$2.00"},
		{name: "telling fails", used: true, telling: failed, told: true, err: failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told string
			notes := &capNotes{value: c.before}
			d := &billing.DefaultCaps{
				Caps: billing.Caps{UserDay: 2_000_000, Day: 20_000_000, Month: 200_000_000}, IsSet: func(key string) bool { return slices.Contains(c.set, key) },
				Notes: notes, WasUsedBefore: func(context.Context) (bool, error) { return c.used, nil }, Log: slog.New(slog.DiscardHandler),
				Tell: func(_ context.Context, _, text string) error {
					told = text
					return c.telling
				},
			}
			if err := d.Announce(t.Context()); !errors.Is(err, c.err) || (told != "") != c.told || notes.value != c.noted {
				t.Errorf("told %q, noted %q, %v", told, notes.value, err)
			}
			if c.set != nil && c.told && strings.Contains(told, "$20.00") {
				t.Errorf("a cap that is set was told: %q", told)
			}
			if c.name == "people used the bot before" && (!strings.Contains(told, "$2.00 for one person in a day, $200.00 for everyone together in a month") || !strings.Contains(told, "`user_day`, `month`")) {
				t.Error(told)
			}
		})
	}
}
