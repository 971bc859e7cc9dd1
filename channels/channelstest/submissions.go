package channelstest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

// newSubmission returns a submission as an API would create it.
func newSubmission(id, origin, key, digest string) channels.Submission {
	return channels.Submission{
		ID: id, Origin: origin, Key: key, Digest: digest, At: time.Now().Truncate(time.Microsecond),
		Expires:      time.Now().Add(time.Hour).Truncate(time.Microsecond),
		Destinations: []bus.Address{{Channel: "c", Chat: "1", Thread: "2"}, {Channel: "d", Chat: "2"}},
	}
}

// mustAccept calls Accept and fails the test on an error.
func mustAccept(t *testing.T, b Book, p channels.Submission) (channels.Submission, bool) {
	t.Helper()
	known, fresh, err := b.Accept(t.Context(), p)
	requireNoError(t, err)
	return known, fresh
}

// sameSubmission reports whether two submissions are equal; times may come back in another time zone.
func sameSubmission(a, b channels.Submission) bool {
	if !a.At.Equal(b.At) || !a.Expires.Equal(b.Expires) {
		return false
	}
	a.At, a.Expires = b.At, b.Expires
	return reflect.DeepEqual(a, b)
}

func testSubmissions(t *testing.T, s suite) {
	b := s.open(t)
	first := newSubmission("m_1", "ci", "key", "digest")
	if known, fresh := mustAccept(t, b, first); !fresh || !sameSubmission(known, first) {
		t.Errorf("first: %+v, fresh %v", known, fresh)
	}
	b = s.reopen(t, b)
	if known, fresh := mustAccept(t, b, newSubmission("m_2", "ci", "key", "digest")); fresh || !sameSubmission(known, first) {
		t.Errorf("again: %+v, fresh %v; want the first one", known, fresh)
	}
	if _, _, err := b.Accept(t.Context(), newSubmission("m_3", "ci", "key", "another")); !errors.Is(err, channels.ErrKeyReused) {
		t.Errorf("another body: %v", err)
	}
	for id, p := range map[string]channels.Submission{
		"m_4": newSubmission("m_4", "cd", "key", "another"), // keys belong to their origin
		"m_5": newSubmission("m_5", "ci", "", "digest"),
		"m_6": newSubmission("m_6", "ci", "", "digest"), // an empty key is none
	} {
		if _, fresh := mustAccept(t, b, p); !fresh {
			t.Errorf("%s is taken for an earlier one", id)
		}
	}
	if known, fresh := mustAccept(t, b, newSubmission("m_5", "ci", "", "digest")); fresh || known.ID != "m_5" {
		t.Errorf("the same post again: %+v, fresh %v", known, fresh)
	}
	if known, err := b.Submission(t.Context(), "m_1"); err != nil || !sameSubmission(known, first) {
		t.Errorf("looked up: %+v, %v", known, err)
	}
	for _, id := range []string{"m_2", "m_3", "none"} {
		if _, err := b.Submission(t.Context(), id); !errors.Is(err, channels.ErrNoSend) {
			t.Errorf("post %s: %v", id, err)
		}
	}
}

// testSubmissionsWithoutABus tests a book that shares its writes with no bus: it publishes nothing, and records the
// same as Accept.
func testSubmissionsWithoutABus(t *testing.T, s suite) {
	b := s.open(t)
	accept := func(sub channels.Submission) (channels.Submission, error) {
		t.Helper()
		known, published, err := b.AcceptAndPublish(t.Context(), sub, bus.OutboundTopic("c"), bus.Message{ID: sub.ID + "/0", Key: "c:1", Body: []byte("{}")})
		if published {
			t.Errorf("%s was published", sub.ID)
		}
		return known, err
	}
	first := newSubmission("m_1", "ci", "key", "digest")
	if known, err := accept(first); err != nil || !sameSubmission(known, first) {
		t.Errorf("first: %+v, %v", known, err)
	}
	b = s.reopen(t, b)
	if known, err := accept(newSubmission("m_2", "ci", "key", "digest")); err != nil || !sameSubmission(known, first) {
		t.Errorf("again: %+v, %v; want the first one", known, err)
	}
	if _, err := accept(newSubmission("m_3", "ci", "key", "another")); !errors.Is(err, channels.ErrKeyReused) {
		t.Errorf("another body: %v", err)
	}
	if known, err := b.Submission(t.Context(), "m_1"); err != nil || !sameSubmission(known, first) {
		t.Errorf("looked up: %+v, %v", known, err)
	}
}

// testSubmissionsExpireAtAnyTime uses extreme times: an expiry at or before 1970 has passed, and the zero time
// means no expiry.
func testSubmissionsExpireAtAnyTime(t *testing.T, s suite) {
	b := s.open(t)
	for i, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
		p := newSubmission(fmt.Sprint("m_", i), "ci", "", "digest")
		p.Expires = at
		accepted, _ := mustAccept(t, b, p)
		known, err := b.Submission(t.Context(), p.ID)
		requireNoError(t, err)
		for _, got := range []time.Time{accepted.Expires, known.Expires} {
			if got.IsZero() != at.IsZero() || got.Sub(at).Abs() > time.Microsecond {
				t.Errorf("what expires at %v is kept as %v", at, got)
			}
		}
	}
}

func testSubmissionKeysLiveADay(t *testing.T, s suite) {
	b := s.open(t)
	old := newSubmission("m_1", "ci", "key", "digest")
	old.At = time.Now().Add(-23 * time.Hour)
	mustAccept(t, b, old)
	if known, fresh := mustAccept(t, b, newSubmission("m_2", "ci", "key", "digest")); fresh || known.ID != "m_1" {
		t.Errorf("after 23 hours: %+v, fresh %v", known, fresh)
	}
	later := newSubmission("m_3", "ci", "key", "another")
	later.At = old.At.Add(25 * time.Hour)
	if known, fresh := mustAccept(t, b, later); !fresh || known.ID != "m_3" {
		t.Errorf("after 25 hours: %+v, fresh %v", known, fresh)
	}
	if known, fresh := mustAccept(t, b, newSubmission("m_4", "ci", "key", "another")); fresh || known.ID != "m_3" {
		t.Errorf("the key stands for %+v, fresh %v", known, fresh)
	}
	if _, err := b.Submission(t.Context(), "m_1"); err != nil {
		t.Errorf("the first use's post: %v", err)
	}
	ancient := newSubmission("m_5", "ci", "", "")
	ancient.At = time.Now().Add(-31 * 24 * time.Hour)
	mustAccept(t, b, ancient)
	b = s.reopen(t, b)
	if _, err := b.Submission(t.Context(), "m_5"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("a post of last month: %v", err)
	}
}

func testPostRace(t *testing.T, s suite) {
	books := []Book{s.open(t), s.open(t)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh, ids := map[string]int{}, map[string]map[string]bool{}
	for i := range 40 {
		wg.Go(func() {
			key := fmt.Sprint("key", i%5)
			known, first, err := books[i%2].Accept(t.Context(), newSubmission(fmt.Sprint("m_", i), "ci", key, key))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			if first {
				fresh[key]++
			}
			if ids[key] == nil {
				ids[key] = map[string]bool{}
			}
			ids[key][known.ID] = true
		})
	}
	wg.Wait()
	for key, seen := range ids {
		if fresh[key] != 1 || len(seen) != 1 {
			t.Errorf("%s was accepted %d times, as %v", key, fresh[key], seen)
		}
	}
}

func testSubjects(t *testing.T, s suite) {
	b := s.open(t)
	at := bus.Address{Channel: "c", Chat: "1", Thread: "2"}
	if id, err := b.BoundMessage(t.Context(), "ci", "build 7", at); id != "" || err != nil {
		t.Errorf("bound to %q before anything, %v", id, err)
	}
	requireNoError(t, b.BindMessage(t.Context(), "ci", "build 7", at, "p1"))
	requireNoError(t, b.BindMessage(t.Context(), "cd", "build 7", at, "p2"))
	requireNoError(t, b.BindMessage(t.Context(), "ci", "build 7", bus.Address{Channel: "c", Chat: "1"}, "p3"))
	requireNoError(t, b.BindMessage(t.Context(), "ci", "build 8\x00", at, "p4"))
	requireNoError(t, b.BindMessage(t.Context(), "ci", "build 7", at, "p5"))
	b = s.reopen(t, b)
	for _, c := range []struct {
		origin, subject string
		at              bus.Address
		want            string
	}{
		{"ci", "build 7", at, "p5"},
		{"cd", "build 7", at, "p2"},
		{"ci", "build 7", bus.Address{Channel: "c", Chat: "1"}, "p3"},
		{"ci", "build 8\x00", at, "p4"},
		{"ci", "build 9", at, ""},
		{"ci", "build 7", bus.Address{Channel: "c", Chat: "2"}, ""},
	} {
		if id, err := b.BoundMessage(t.Context(), c.origin, c.subject, c.at); id != c.want || err != nil {
			t.Errorf("%s: %s at %s is bound to %q, %v; want %q", c.origin, c.subject, c.at, id, err, c.want)
		}
	}
}

// testPartKinds uses parts that edit, go under other messages, contain a file, or are recorded as failed.
func testPartKinds(t *testing.T, s suite) {
	b := s.open(t)
	begun := newSend("m", "edits", "under", "file")
	begun.Parts[0].Edits, begun.Parts[1].Under, begun.Parts[2].File = "p1", "p2\x00", true
	mustBegin(t, b, begun)
	b = s.reopen(t, b)
	want := []channels.SentPart{
		{State: channels.Sending, Edits: "p1", Text: "<b>edits</b>", Plain: "edits"},
		{State: channels.Queued, Under: "p2\x00", Text: "<b>under</b>", Plain: "under"},
		{State: channels.Queued, File: true, Text: "<b>file</b>", Plain: "file"},
	}
	wantParts(t, b, "m", want)
	requireNoError(t, b.Mark(t.Context(), "m", 0, channels.SentPart{State: channels.Queued, Under: "p1"}))
	requireNoError(t, b.Mark(t.Context(), "m", 1, channels.SentPart{State: channels.Queued}))
	requireNoError(t, b.Mark(t.Context(), "m", 2, channels.SentPart{State: channels.Sent, PlatformID: "p4"}))
	want[0].State, want[0].Edits, want[0].Under = channels.Queued, "", "p1"
	want[1].Under = ""
	want[2] = channels.SentPart{State: channels.Sent, PlatformID: "p4", File: true}
	wantParts(t, b, "m", want)

	failed := newSend("f", "one", "two")
	for i := range failed.Parts {
		failed.Parts[i].State, failed.Parts[i].Code = channels.Failed, "expired"
	}
	known, fresh := mustBegin(t, b, failed)
	if !fresh || known.State() != channels.Failed {
		t.Errorf("begun as failed: %+v, fresh %v", known, fresh)
	}
	wantParts(t, b, "f", []channels.SentPart{{State: channels.Failed, Code: "expired"}, {State: channels.Failed, Code: "expired"}})
}

// wantParts fails the test unless a send has exactly these parts.
func wantParts(t *testing.T, b Book, id string, want []channels.SentPart) {
	t.Helper()
	seen, err := b.Lookup(t.Context(), id)
	requireNoError(t, err)
	if !reflect.DeepEqual(seen.Parts, want) {
		t.Errorf("%s has the parts %+v, want %+v", id, seen.Parts, want)
	}
}
