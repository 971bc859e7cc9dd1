package channelstest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

// answered records an answer of a turn whose parts were sent under these ids of the
// platform's.
func answered(t *testing.T, b Book, session, turn string, ids ...string) {
	t.Helper()
	send := letter(bus.ReplyID(turn), ids...)
	send.Session = session
	if known, _ := begin(t, b, send); known.Session != session {
		t.Fatalf("begun as %+v", known)
	}
	for i, id := range ids {
		must(t, b.Mark(t.Context(), send.ID, i, channels.SentPart{State: channels.Sent, PlatformID: id}))
	}
}

func testRatings(t *testing.T, s suite) {
	b := s.open(t)
	answered(t, b, "main:c:1:2", "c:t:1", "p1", "p2")
	begin(t, b, channels.Send{ID: "c:t:1#draft", To: bus.Address{Channel: "c", Chat: "1", Thread: "2"}, Session: "main:c:1:2", Parts: []channels.SentPart{{State: channels.Drafted}}})
	must(t, b.Mark(t.Context(), "c:t:1#draft", 0, channels.SentPart{State: channels.Sent, PlatformID: "p1"}))
	answered(t, b, "", "c:t:9", "p9") // of a release that does not note the session
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rating := func(person, message string, good bool) channels.Rating {
		return channels.Rating{Person: person, At: bus.Address{Channel: "c", Chat: "1"}, Message: message, Good: good, Rated: day}
	}
	rate := func(r channels.Rating, want bool) channels.Rating {
		t.Helper()
		kept, changed, err := b.Rate(t.Context(), r)
		if err != nil || changed != want {
			t.Fatalf("rated %+v: changed %v, %v", r, changed, err)
		}
		return kept
	}
	kept := rate(rating("c:7", "p1", true), true)
	if kept.Turn != "c:t:1" || kept.Session != "main:c:1:2" || kept.At.Thread != "2" {
		t.Errorf("kept as %+v", kept)
	}
	rate(rating("c:7", "p1", true), false) // the same
	rate(rating("c:8", "p2", true), true)
	rate(rating("c:8", "p2", false), true) // in place of that
	for _, none := range []channels.Rating{rating("c:7", "p9", true), rating("c:7", "p3", true), rating("c:7", "", true)} {
		rate(none, false)
	}
	elsewhere := rating("c:7", "p1", true)
	elsewhere.At.Chat = "another"
	rate(elsewhere, false)

	want := func(what string, want ...string) {
		t.Helper()
		all, err := b.Ratings(t.Context(), "main:c:1:2")
		must(t, err)
		var got []string
		for _, r := range all {
			verdict := " bad"
			if r.Good {
				verdict = " good"
			}
			if !r.Rated.Equal(day) || r.Turn != "c:t:1" || r.At != (bus.Address{Channel: "c", Chat: "1", Thread: "2"}) {
				t.Errorf("kept as %+v", r)
			}
			got = append(got, r.Person+" "+r.Message+verdict)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s, ratings are %q, want %q", what, got, want)
		}
	}
	b = s.reopen(t, b)
	want("opened again", "c:7 p1 good", "c:8 p2 bad")
	must(t, b.Unrate(t.Context(), rating("c:8", "p2", true))) // which it is not any more
	must(t, b.Unrate(t.Context(), rating("c:7", "p1", true)))
	want("taken back", "c:8 p2 bad")
	answered(t, b, "main:c:3", "c:t:3", "p7")
	there := rating("c:8", "p7", true)
	there.At.Chat, there.Rated = "1", day.Add(time.Hour)
	rate(there, true)
	for person, want := range map[string]string{"c:8": "[main:c:1:2 p2 false main:c:3 p7 true]", "c:7": "[]", "": "[]"} {
		by, err := b.RatingsBy(t.Context(), person)
		must(t, err)
		got := []any{}
		for _, r := range by {
			got = append(got, r.Session, r.Message, r.Good)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("those of %q are %v, want %s", person, got, want)
		}
	}
	if all, err := b.Ratings(t.Context(), ""); err != nil || len(all) > 0 {
		t.Errorf("of no session: %+v, %v", all, err)
	}
}
