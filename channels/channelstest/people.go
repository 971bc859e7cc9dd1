package channelstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

// recordAnswer records a turn's answer whose parts have these ids on the platform.
func recordAnswer(t *testing.T, b Book, session, turn string, ids ...string) {
	t.Helper()
	send := newSend(bus.ReplyID(turn), ids...)
	send.Session = session
	if known, _ := mustBegin(t, b, send); known.Session != session {
		t.Fatalf("begun as %+v", known)
	}
	for i, id := range ids {
		requireNoError(t, b.Mark(t.Context(), send.ID, i, channels.SentPart{State: channels.Sent, PlatformID: id}))
	}
}

// ratedSession is the session whose answer is rated in these tests. The answer belongs to the turn c:t:1; its parts
// are the messages p1 and p2.
const ratedSession = "main:c:1:2"

func ratedAt() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// newRating returns a person's rating of a message.
func newRating(person, message string, good bool) channels.Rating {
	return channels.Rating{Person: person, At: bus.Address{Channel: "c", Chat: "1"}, Message: message, Good: good, Rated: ratedAt()}
}

// mustRate records a rating, and checks that Rate reports a change if want is true, and none otherwise.
func mustRate(t *testing.T, b Book, r channels.Rating, want bool) channels.Rating {
	t.Helper()
	kept, changed, err := b.Rate(t.Context(), r)
	if err != nil || changed != want {
		t.Fatalf("rated %+v: changed %v, %v", r, changed, err)
	}
	return kept
}

// wantRatings checks the ratings of ratedSession.
func wantRatings(t *testing.T, b Book, want ...string) {
	t.Helper()
	all, err := b.Ratings(t.Context(), ratedSession)
	requireNoError(t, err)
	var got []string
	for _, r := range all {
		verdict := " bad"
		if r.Good {
			verdict = " good"
		}
		if !r.Rated.Equal(ratedAt()) || r.Turn != "c:t:1" || r.At != (bus.Address{Channel: "c", Chat: "1", Thread: "2"}) {
			t.Errorf("kept as %+v", r)
		}
		got = append(got, r.Person+" "+r.Message+verdict)
	}
	if !slices.Equal(got, want) {
		t.Errorf("ratings are %q, want %q", got, want)
	}
}

// testRatings has subtests that build on each other: each continues with the book as the previous one left it.
func testRatings(t *testing.T, s suite) {
	b := s.open(t)
	recordAnswer(t, b, ratedSession, "c:t:1", "p1", "p2")
	mustBegin(t, b, channels.Send{ID: "c:t:1#draft", To: bus.Address{Channel: "c", Chat: "1", Thread: "2"}, Session: ratedSession, Parts: []channels.SentPart{{State: channels.Drafted}}})
	requireNoError(t, b.Mark(t.Context(), "c:t:1#draft", 0, channels.SentPart{State: channels.Sent, PlatformID: "p1"}))
	recordAnswer(t, b, "", "c:t:9", "p9") // recorded by a release that does not store the session

	t.Run("a rating knows its answer", func(t *testing.T) { testRatedAnswer(t, b) })
	t.Run("only another rating changes one", func(t *testing.T) { testRatingAgain(t, b) })
	t.Run("what is no answer cannot be rated", func(t *testing.T) { testRatingOfNoAnswer(t, b) })
	b = s.reopen(t, b)
	t.Run("ratings outlive the process", func(t *testing.T) { wantRatings(t, b, "c:7 p1 good", "c:8 p2 bad") })
	t.Run("a rating can be taken back", func(t *testing.T) {
		requireNoError(t, b.DeleteRating(t.Context(), newRating("c:8", "p2", true))) // a rating that has been replaced already
		requireNoError(t, b.DeleteRating(t.Context(), newRating("c:7", "p1", true)))
		wantRatings(t, b, "c:8 p2 bad")
	})
	t.Run("a person's ratings are listed", func(t *testing.T) { testRatingsBy(t, b) })
}

func testRatedAnswer(t *testing.T, b Book) {
	kept := mustRate(t, b, newRating("c:7", "p1", true), true)
	if kept.Turn != "c:t:1" || kept.Session != ratedSession || kept.At.Thread != "2" {
		t.Errorf("kept as %+v", kept)
	}
	for message, want := range map[string]string{"p2": "c:t:1", "p9": "", "p3": ""} {
		found, ok, err := b.FindRatedAnswer(t.Context(), newRating("c:7", message, false))
		requireNoError(t, err)
		if ok != (want != "") || ok && (found.Turn != want || found.Session != ratedSession || found.At.Thread != "2") {
			t.Errorf("%s is found to be %+v, %t", message, found, ok)
		}
	}
}

func testRatingAgain(t *testing.T, b Book) {
	mustRate(t, b, newRating("c:7", "p1", true), false)
	mustRate(t, b, newRating("c:8", "p2", true), true)
	mustRate(t, b, newRating("c:8", "p2", false), true)
}

func testRatingOfNoAnswer(t *testing.T, b Book) {
	for _, message := range []string{"p9", "p3", ""} {
		mustRate(t, b, newRating("c:7", message, true), false)
	}
	elsewhere := newRating("c:7", "p1", true)
	elsewhere.At.Chat = "another"
	mustRate(t, b, elsewhere, false)
}

func testRatingsBy(t *testing.T, b Book) {
	recordAnswer(t, b, "main:c:3", "c:t:3", "p7")
	there := newRating("c:8", "p7", true)
	there.Rated = ratedAt().Add(time.Hour)
	mustRate(t, b, there, true)
	for person, want := range map[string]string{"c:8": "[main:c:1:2 p2 false main:c:3 p7 true]", "c:7": "[]", "": "[]"} {
		by, err := b.RatingsBy(t.Context(), person)
		requireNoError(t, err)
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

// linkedPeople returns the ids of everybody who is linked with a person.
func linkedPeople(t *testing.T, b Book, person string) string {
	t.Helper()
	all, err := b.LinkedWith(t.Context(), person)
	requireNoError(t, err)
	var ids []string
	for _, l := range all {
		ids = append(ids, l.Person)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// wantAllLinked checks who is linked with whom.
func wantAllLinked(t *testing.T, b Book, want string) {
	t.Helper()
	if all, err := b.AllLinks(t.Context()); err != nil || fmt.Sprint(all) != want {
		t.Errorf("linked are %v, %v; want %s", all, err, want)
	}
}

// mustLink links person with the person `with`, who makes the code; cause is the id of the command.
func mustLink(t *testing.T, b Book, with, person, cause string) []channels.Link {
	t.Helper()
	code, err := b.OfferLink(t.Context(), channels.LinkRequest{Person: with, Chat: "chat of " + with, Cause: cause})
	requireNoError(t, err)
	all, err := b.Link(t.Context(), channels.Linking{Code: code, Person: person, Chat: "chat of " + person, Cause: cause})
	requireNoError(t, err)
	return all
}

// wantMemory checks the memory of a person.
func wantMemory(t *testing.T, b Book, person, want string) {
	t.Helper()
	if got, _, err := b.Memory(t.Context(), channels.ScopePerson, person); err != nil || got != want {
		t.Errorf("of %s is remembered %q, %v; want %q", person, got, err, want)
	}
}

// remember appends a text to a memory.
func remember(t *testing.T, b Book, scope, owner, call, text string) {
	t.Helper()
	requireNoError(t, b.Remember(t.Context(), scope, owner, call, false, false, func(old string) (string, error) { return strings.TrimPrefix(old+"\n\n"+text, "\n\n"), nil }))
}

// testLinks tests that two accounts of one person are linked, and share their memory. Its subtests run in order:
// each continues with the book as the previous one left it.
func testLinks(t *testing.T, s suite) {
	b := s.open(t)
	remember(t, b, channels.ScopePerson, "c:1", "k1", "likes tea")
	remember(t, b, channels.ScopePerson, "d:1", "k2", "lives in Ulm")
	remember(t, b, channels.ScopePerson, "c:2", "k3", "another's")
	t.Run("a code links two people once", func(t *testing.T) { testLinkByCode(t, b) })
	b = s.reopen(t, b)
	t.Run("links and shared memories outlive the process", func(t *testing.T) {
		if got := linkedPeople(t, b, "d:1"); got != "c:1 d:1" || linkedPeople(t, b, "c:1") != got || linkedPeople(t, b, "c:2") != "" {
			t.Errorf("linked: %s", got)
		}
		wantMemory(t, b, "c:1", "likes tea\n\nlives in Ulm")
		wantMemory(t, b, "d:1", "likes tea\n\nlives in Ulm")
		wantMemory(t, b, "c:2", "another's")
	})
	t.Run("linked people are counted as one", func(t *testing.T) {
		for person, want := range map[string]string{"c:1": "c:1", "d:1": "c:1", "c:2": "c:2"} {
			if p, paired, err := b.FindPairing(t.Context(), person); p.Account != want || paired || err != nil {
				t.Errorf("%s is counted as %q, want %q; paired: %v, %v", person, p.Account, want, paired, err)
			}
		}
	})
	t.Run("a third person joins", func(t *testing.T) {
		mustLink(t, b, "d:1", "e:1", "m3")
		if got := linkedPeople(t, b, "c:1"); got != "c:1 d:1 e:1" {
			t.Errorf("three are %s", got)
		}
		wantAllLinked(t, b, "map[c:1:[d:1 e:1] d:1:[c:1 e:1] e:1:[c:1 d:1]]")
	})
	t.Run("who leaves and who stays keep the memories", func(t *testing.T) { testUnlink(t, b) })
}

func testLinkByCode(t *testing.T, b Book) {
	if got := linkedPeople(t, b, "c:1"); got != "" {
		t.Errorf("linked before: %s", got)
	}
	wantAllLinked(t, b, "map[]")
	void, err := b.OfferLink(t.Context(), channels.LinkRequest{Person: "c:1", Chat: "x", Cause: "o1"})
	requireNoError(t, err)
	code, err := b.OfferLink(t.Context(), channels.LinkRequest{Person: "c:1", Chat: "c:chat", Cause: "o2"})
	requireNoError(t, err)
	if again, err := b.OfferLink(t.Context(), channels.LinkRequest{Person: "c:1", Chat: "c:chat", Cause: "o2"}); err != nil || again != code {
		t.Errorf("the code is %q and %q, %v", code, again, err)
	}
	refused := func(l channels.Linking) {
		t.Helper()
		if all, err := b.Link(t.Context(), l); !errors.Is(err, channels.ErrNoCode) {
			t.Errorf("%+v links %v, %v", l, all, err)
		}
	}
	refused(channels.Linking{Code: void, Person: "d:1", Cause: "m0"})
	refused(channels.Linking{Code: code, Person: "c:1", Cause: "m0"}) // their own
	for range 2 {                                                     // the second time, as if after a crash
		all, err := b.Link(t.Context(), channels.Linking{Code: code, Person: "d:1", Chat: "d:chat", Cause: "m1"})
		requireNoError(t, err)
		if len(all) != 2 || all[0].Account != all[1].Account || all[0].Chat == all[1].Chat {
			t.Errorf("linked: %+v", all)
		}
	}
	refused(channels.Linking{Code: code, Person: "c:2", Cause: "m2"}) // used
}

// testUnlink separates c:1, after whom the account is named, from d:1 and e:1, and then separates these two from
// each other.
func testUnlink(t *testing.T, b Book) {
	others, err := b.Unlink(t.Context(), "c:1")
	requireNoError(t, err)
	if len(others) != 2 || linkedPeople(t, b, "d:1") != "d:1 e:1" || linkedPeople(t, b, "c:1") != "" {
		t.Errorf("after one has gone: %+v, %s", others, linkedPeople(t, b, "d:1"))
	}
	remember(t, b, channels.ScopePerson, "e:1", "k4", "new")
	wantMemory(t, b, "d:1", "likes tea\n\nlives in Ulm\n\nnew")
	wantMemory(t, b, "c:1", "likes tea\n\nlives in Ulm")
	_, err = b.Unlink(t.Context(), "e:1")
	requireNoError(t, err)
	if linkedPeople(t, b, "d:1") != "" || linkedPeople(t, b, "e:1") != "" {
		t.Error("two who are parted are one each")
	}
	wantMemory(t, b, "e:1", "likes tea\n\nlives in Ulm\n\nnew")
	if others, err := b.Unlink(t.Context(), "e:1"); err != nil || len(others) != 0 {
		t.Errorf("parted again: %v, %v", others, err)
	}
}

// testLinkRace checks that a code works once, even if several people use it at the same time.
func testLinkRace(t *testing.T, s suite) {
	b := s.open(t)
	code, err := b.OfferLink(t.Context(), channels.LinkRequest{Person: "c:1", Chat: "chat"})
	requireNoError(t, err)
	var mu sync.Mutex
	var linked []string
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			person := fmt.Sprintf("d:%d", i)
			_, err := b.Link(t.Context(), channels.Linking{Code: code, Person: person, Cause: person})
			if err != nil && !errors.Is(err, channels.ErrNoCode) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				linked = append(linked, person)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(linked) != 1 || linkedPeople(t, b, "c:1") != "c:1 "+linked[0] {
		t.Errorf("linked were %v: %s", linked, linkedPeople(t, b, "c:1"))
	}
}

func testMemories(t *testing.T, s suite) {
	b := s.open(t)
	for range 2 { // the same call again, as if after a crash
		remember(t, b, channels.ScopePerson, "c:1", "k1", "one\x00")
	}
	remember(t, b, channels.ScopeAgent, "c:1", "k1", "the agent's")
	b = s.reopen(t, b)
	wantMemory(t, b, "c:1", "one\x00")
	wantMemory(t, b, "c:2", "")
	if got, _, err := b.Memory(t.Context(), channels.ScopeAgent, "c:1"); err != nil || got != "the agent's" {
		t.Errorf("of the agent is remembered %q, %v", got, err)
	}
	no := errors.New("no")
	if err := b.Remember(t.Context(), channels.ScopePerson, "c:1", "k2", false, false, func(string) (string, error) { return "", no }); !errors.Is(err, no) {
		t.Errorf("refused with %v", err)
	}
	wantMemory(t, b, "c:1", "one\x00")
	flag := func(call string, overwrite, untrusted, want bool) {
		t.Helper()
		requireNoError(t, b.Remember(t.Context(), channels.ScopePerson, "c:1", call, overwrite, untrusted, func(string) (string, error) { return call, nil }))
		if _, got, err := b.Memory(t.Context(), channels.ScopePerson, "c:1"); err != nil || got != want {
			t.Errorf("after %s untrusted is %v, %v", call, got, err)
		}
	}
	flag("k3", false, true, true)
	flag("k4", false, false, true)
	flag("k5", true, false, false)
	testKeptMemories(t, b)
	requireNoError(t, b.Forget(t.Context(), channels.ScopePerson, "c:1"))
	wantMemory(t, b, "c:1", "")
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() { remember(t, b, channels.ScopePerson, "c:3", fmt.Sprint(i), "x") })
	}
	wg.Wait()
	wantMemory(t, b, "c:3", strings.TrimSuffix(strings.Repeat("x\n\n", 10), "\n\n"))
}

// testKeptMemories tests listing all memories and erasing one of them.
func testKeptMemories(t *testing.T, b Book) {
	t.Helper()
	remember(t, b, channels.ScopePerson, "c:9", "k6", "ä")
	requireNoError(t, b.Remember(t.Context(), channels.ScopePerson, "c:8", "k7", true, true, func(string) (string, error) { return "", nil }))
	want := func(scope, owner string, limit int, want string) {
		t.Helper()
		found, err := b.ListMemories(t.Context(), scope, owner, limit)
		requireNoError(t, err)
		var got []string
		for _, k := range found {
			if got = append(got, fmt.Sprint(k.Scope, " ", k.Owner, " ", k.Bytes, " ", k.Untrusted)); time.Since(k.Changed) > time.Hour {
				t.Errorf("%s was changed %v", k.Owner, k.Changed)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("after %s %s there are %v, want %s", scope, owner, got, want)
		}
	}
	want("", "", 9, "[agent c:1 11 false person c:1 2 false person c:9 2 false]")
	want("agent", "c:1", 1, "[person c:1 2 false]")
	want("person", "c:9", 9, "[]")
	no := errors.New("no")
	if err := b.ForgetIf(t.Context(), channels.ScopePerson, "c:9", func(string) error { return no }); !errors.Is(err, no) {
		t.Errorf("refused with %v", err)
	}
	wantMemory(t, b, "c:9", "ä")
	seen := ""
	requireNoError(t, b.ForgetIf(t.Context(), channels.ScopePerson, "c:9", func(content string) error { seen = content; return nil }))
	wantMemory(t, b, "c:9", "")
	if seen != "ä" {
		t.Errorf("erased %q", seen)
	}
}
