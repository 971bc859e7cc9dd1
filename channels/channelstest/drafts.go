package channelstest

import (
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
)

func testDrafts(t *testing.T, s suite) {
	b := s.open(t)
	draft := func(id, channel string) channels.Send {
		return channels.Send{ID: id, To: bus.Address{Channel: channel, Chat: "1", Thread: "2"}, Parts: []channels.SentPart{{State: channels.Drafted}}}
	}
	begin(t, b, letter("m", "no draft"))
	for _, d := range []channels.Send{draft("first", "c"), draft("second\x00", "c"), draft("replaced", "c"), draft("elsewhere", "d")} {
		if known, fresh := begin(t, b, d); !fresh || known.Parts[0].State != channels.Drafted {
			t.Errorf("begun: %+v, fresh %v", known, fresh)
		}
	}
	must(t, b.Mark(t.Context(), "second\x00", 0, channels.SentPart{State: channels.Drafted, PlatformID: "p2"}))
	must(t, b.Mark(t.Context(), "replaced", 0, channels.SentPart{State: channels.Sent, PlatformID: "p3"}))
	b = s.reopen(t, b)
	if _, fresh := begin(t, b, draft("first", "c")); fresh {
		t.Error("a draft is begun twice")
	}
	drafts, err := b.Drafts(t.Context(), "c")
	must(t, err)
	var got []string
	for _, d := range drafts {
		if d.To != (bus.Address{Channel: "c", Chat: "1", Thread: "2"}) || len(d.Parts) != 1 || d.State() != channels.Sent {
			t.Errorf("listed %+v", d)
			continue
		}
		got = append(got, d.ID+" "+d.Parts[0].State+" "+d.Parts[0].PlatformID)
	}
	if want := "first draft |second\x00 draft p2"; strings.Join(got, "|") != want {
		t.Errorf("drafts %q, want %q", got, want)
	}
	if drafts, err := b.Drafts(t.Context(), "none"); err != nil || len(drafts) != 0 {
		t.Errorf("of a channel without any: %+v, %v", drafts, err)
	}
}
