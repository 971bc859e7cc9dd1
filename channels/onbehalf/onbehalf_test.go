package onbehalf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/tools/message"
)

func TestAttributionText(t *testing.T) {
	at := func(s string) bus.Address {
		a, err := bus.ParseAddress(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		person, name string
		from, to     string
		content      string
		want         string
	}{
		{"telegram:42", "Alex Ö.", "telegram:42", "slack:C1", "hi", "Alex Ö. (`telegram:42`) asked me to tell you:\n\n> hi"},
		{"slack:U1", "", "slack:C2/17.5", "slack:C1", "one\r\n\r\n> two", "`slack:U1` asked me, in `slack:C2`, to tell you:\n\n> one\n> \n> > two"},
		{"slack:U1", "*<!channel>* `x` @everyone [a](b)\n#1", "slack:D1", "slack:C1", "hi", "channel x everyone ab 1 (`slack:U1`) asked me, in `slack:D1`, to tell you:\n\n> hi"},
		{"slack:U1", strings.Repeat("x", 90), "slack:D1", "slack:C1", "hi", strings.Repeat("x", 40) + " (`slack:U1`) asked me, in `slack:D1`, to tell you:\n\n> hi"},
		{"web:ci", "ci", "web:ci", "slack:C1", "hi", "ci (`web:ci`) asked me to tell you:\n\n> hi"},
		{"slack:U1", "Alex", "slack:C1/5", "slack:C1/5", "hi", "hi"},
	} {
		r := message.Request{Person: c.person, Called: c.name, From: c.from, Content: c.content}
		out := outboundFor(r, "id", at(c.to), false)
		if out.Text != c.want {
			t.Errorf("%s in %s: %q, want %q", c.person, c.from, out.Text, c.want)
		}
		if told := out.Told; (told == nil) != (c.from == c.to) || told != nil && (told.For.ID != c.person || told.At.String() != c.from || told.Words != c.content) {
			t.Errorf("%s in %s: %+v", c.person, c.from, told)
		}
	}
}

func TestDestinations(t *testing.T) {
	ci := []bus.Address{{Channel: "tg", Chat: "1"}, {Channel: "slack", Chat: "C1"}}
	known := New(Config{
		Channels:   []string{"tg", "slack"},
		Targets:    func() map[string][]bus.Address { return map[string][]bus.Address{"ci": ci, "secret": ci} },
		MayMessage: func(string) []string { return []string{"ci", "tg:5"} },
	})
	for _, c := range []struct {
		channel, chat string
		want          []bus.Address
		says          string
	}{
		{"ci", "", ci, ""},
		{"ci", "7", ci, ""},
		{"tg", "7", []bus.Address{{Channel: "tg", Chat: "7"}}, ""},
		{"tg:7/8", "", []bus.Address{{Channel: "tg", Chat: "7", Thread: "8"}}, ""},
		{"tg", "", nil, "chat_id is missing: name the chat on tg."},
		{"tg", "7\n", nil, "isn't an address"},
		{"irc", "7", nil, `there is no channel or target "irc". There are: ci, slack, tg.`},
		{"cy", "", nil, `there is no channel or target "cy". There are: ci, slack, tg.`},
	} {
		got, failed := known.addresses(message.Request{Session: "main:tg:1", Channel: c.channel, Chat: c.chat})
		if !slices.Equal(got, c.want) || (failed == nil) != (c.says == "") || failed != nil && !strings.Contains(failed.Error(), c.says) {
			t.Errorf("%q, %q: %v, %v; want %v, %q", c.channel, c.chat, got, failed, c.want, c.says)
		}
	}
}

// A call is retried during an outage, and not after a refusal.
func TestRetryUntilDone(t *testing.T) {
	t.Parallel()
	away := errors.New("nobody answers")
	for _, c := range []struct {
		name  string
		fails int
		err   error
		want  error
		asked int
	}{
		{"at once", 0, nil, nil, 1},
		{"after an outage", 20, away, nil, 21},
		{"refused", 1, fmt.Errorf("publish: %w", bus.ErrFull), bus.ErrFull, 1},
		{"never", 1000, away, away, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				asked := 0
				err := retryUntilDone(ctx, func() error {
					if asked++; asked <= c.fails {
						return c.err
					}
					return nil
				})
				if !errors.Is(err, c.want) || asked != c.asked {
					t.Errorf("it gives %v after %d times, want %v after %d", err, asked, c.want, c.asked)
				}
			})
		})
	}
}
