package sessionstest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions"
)

// A SharingStore is a store that shares its database with the bus that publishes messages.
type SharingStore struct {
	Store
	// WaitingMessages returns the ids of the messages that wait in a mailbox, in their order.
	WaitingMessages func(t testing.TB, topic, key string) []string
	// Cap is how many messages may wait in a mailbox.
	Cap int
	// FailCommit makes the next commit of the database fail, and with it all writes that share it.
	FailCommit func(t testing.TB)
	// Block keeps the database from writing until release is called.
	Block func(t testing.TB) (release func())
	// FailWrite runs a write in the database that fails.
	FailWrite func(t testing.TB)
}

// The mailbox to which most tests publish.
const (
	mailTopic = "outbound/telegram"
	mailKey   = "telegram:42"
)

// RunPublishing runs the suite of [sessions.Publisher]. Each test runs in a bubble of
// testing/synctest and has a place of its own, at which it opens the store.
func RunPublishing(t *testing.T, newPlace func(testing.TB) string, open func(t testing.TB, place string) SharingStore) {
	for _, tt := range []struct {
		promise string
		run     func(*testing.T, sharedStore)
	}{
		{"entries and messages are both there after a restart", testPublished},
		{"the same append again publishes no second message", testPublishedAgain},
		{"an append after one that only appended the same publishes", testPublishedLater},
		{"a message that was published before is dropped", testPublishedBefore},
		{"under a former fence nothing is published", testPublishFenced},
		{"at another place nothing is published", testPublishConflict},
		{"with a cause that is known nothing is published", testPublishSeen},
		{"a message that is refused keeps the entries out", testPublishRefused},
		{"a commit that fails leaves neither entries nor messages", testPublishCommitFails},
		{"a write of the same group that fails changes nothing", testPublishBesideFailure},
		{"an append that is lost with an earlier one publishes nothing", testPublishAfterLoss},
	} {
		t.Run(tt.promise, func(t *testing.T) {
			place := newPlace(t)
			synctest.Test(t, func(t *testing.T) {
				p := sharedStore{T: t, open: func() SharingStore { return open(t, place) }}
				p.SharingStore = p.open()
				defer func() {
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				}()
				tt.run(t, p)
			})
		})
	}
}

// A sharedStore is one test's store.
type sharedStore struct {
	*testing.T
	SharingStore
	open func() SharingStore
}

// with returns a log whose appends publish messages with these ids.
func (p *sharedStore) with(l sessions.Log, ids ...string) sessions.Log {
	p.Helper()
	publisher, ok := l.(sessions.Publisher)
	if !ok {
		p.Fatalf("%T is no Publisher", l)
	}
	var mail []sessions.Mail
	for _, id := range ids {
		mail = append(mail, sessions.Mail{Topic: mailTopic, Key: mailKey, ID: id, Body: []byte("body of " + id)})
	}
	l, ok = publisher.Publishing(mail...)
	if !ok {
		p.Fatal("the log does not publish")
	}
	return l
}

// wantMail fails the test unless exactly these messages wait.
func (p *sharedStore) wantMail(ids ...string) {
	p.Helper()
	if got := p.WaitingMessages(p, mailTopic, mailKey); !slices.Equal(got, ids) {
		p.Errorf("the messages %q wait, want %q", got, ids)
	}
}

func testPublished(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	first := wholeTurn(anna, "t1", "hello")
	mustAppend(t, p.with(l, "o1", "o2"), first...)
	if want := int64(len(first)) + 1; l.Next() != want {
		t.Errorf("the next entry is %d, want %d", l.Next(), want)
	}
	second := wholeTurn(anna, "t2", "more")
	mustAppend(t, l, second...)
	p.wantMail("o1", "o2")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	again := p.open()
	defer again.Close()
	wantLog(t, again, key, slices.Concat(first, second))
	if got := again.WaitingMessages(t, mailTopic, mailKey); !slices.Equal(got, []string{"o1", "o2"}) {
		t.Errorf("the messages %q wait after a restart", got)
	}
}

func testPublishedAgain(t *testing.T, p sharedStore) {
	l := p.with(openLog(t, p, key, 1), "o1")
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, l, entries...)
	if err := l.Append(t.Context(), 1, withoutNumbers(entries)...); err != nil {
		t.Fatal(err)
	}
	p.wantMail("o1")
	wantLog(t, p, key, entries)
}

func testPublishedLater(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, l, entries...)
	if err := p.with(l, "o1").Append(t.Context(), 1, withoutNumbers(entries)...); err != nil {
		t.Fatal(err)
	}
	p.wantMail("o1")
	wantLog(t, p, key, entries)
}

func testPublishedBefore(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	mustAppend(t, p.with(l, "o1"), wholeTurn(anna, "t1", "hello")...)
	mustAppend(t, p.with(l, "o1", "o2", "o2"), wholeTurn(anna, "t2", "more")...)
	p.wantMail("o1", "o2")
}

func testPublishFenced(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	openLog(t, p, key, 2)
	wantFenced(t, "append", p.with(l, "o1").Append(t.Context(), 1, replied("t1", "late")))
	p.wantMail()
	wantLog(t, p, key, nil)
}

func testPublishConflict(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, l, entries...)
	for _, at := range []int64{1, 9} {
		if err := p.with(l, "o1").Append(t.Context(), at, replied("t1", "other")); !errors.Is(err, sessions.ErrConflict) {
			t.Errorf("append at %d: %v", at, err)
		}
	}
	p.wantMail()
	wantLog(t, p, key, entries)
}

func testPublishSeen(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, l, entries...)
	wantSeen(t, p.with(l, "o1").Append(t.Context(), l.Next(), said("t2", "t1", "hello")), "t1", "t1")
	p.wantMail()
	wantLog(t, p, key, entries)
}

func testPublishRefused(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	var want []string
	for n := range p.Cap {
		want = append(want, fmt.Sprint("o", n))
	}
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, p.with(l, want...), entries...)
	refused := wholeTurn(anna, "t2", "more")
	for _, id := range []string{"one too many", ""} {
		if err := p.with(l, "o0", id).Append(t.Context(), l.Next(), refused...); !errors.Is(err, sessions.ErrUnpublished) {
			t.Errorf("append with the message %q: %v", id, err)
		}
	}
	p.wantMail(want...)
	wantLog(t, p, key, entries)
	mustAppend(t, p.with(l, "o0"), refused...) // this message is already in the full mailbox
	p.wantMail(want...)
	wantLog(t, p, key, slices.Concat(entries, refused))
}

func testPublishCommitFails(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	p.FailCommit(t)
	entries := wholeTurn(anna, "t1", "hello")
	if err := p.with(l, "o1").Append(t.Context(), 1, entries...); err == nil || errors.Is(err, sessions.ErrUnpublished) {
		t.Errorf("append: %v", err)
	}
	p.wantMail()
	wantLog(t, p, key, nil)
	mustAppend(t, p.with(l, "o2", "o1"), entries...)
	p.wantMail("o2", "o1")
	wantLog(t, p, key, entries)
}

// testPublishBesideFailure lets several logs publish in one group with a failing write, so that every write of
// the group is undone and runs again.
func testPublishBesideFailure(t *testing.T, p sharedStore) {
	keys := []string{key, otherKey}
	var logs []sessions.Log
	for _, k := range keys {
		logs = append(logs, openLog(t, p, k, 1))
	}
	appended := make(chan error)
	release := p.Block(t)
	for i, l := range logs {
		go func() {
			appended <- p.with(l, fmt.Sprint("o", i)).Append(t.Context(), 1, wholeTurn(anna, "t1", "hello")...)
		}()
		synctest.Wait() // the write is queued
		go p.FailWrite(t)
		synctest.Wait()
	}
	release()
	for range logs {
		if err := <-appended; err != nil {
			t.Error(err)
		}
	}
	p.wantMail("o0", "o1")
	for _, k := range keys {
		if got, want := len(readLog(t, p, k)), len(wholeTurn(anna, "t1", "")); got != want {
			t.Errorf("the log of %s has %d entries, want %d", k, got, want)
		}
	}
}

// testPublishAfterLoss appends to a log whose last entries were lost before anybody waited for them.
func testPublishAfterLoss(t *testing.T, p sharedStore) {
	l := openLog(t, p, key, 1)
	mustAppend(t, l, turnStarted("t1"))
	soon, ok := l.(sessions.SoonLog)
	if !ok {
		t.Skip("the store waits for each append")
	}
	mustAppend(t, soon.Soon(time.Hour), said("t1", "m1", "hello"))
	p.FailCommit(t)
	if err := p.with(l, "o1").Append(t.Context(), l.Next(), turnDone("t1", "o1")); err == nil {
		t.Error("the commit has not failed")
	}
	if err := p.with(l, "o1").Append(t.Context(), l.Next(), turnDone("t1", "o1")); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("append after the loss: %v", err)
	}
	p.wantMail()
	if n := len(readLog(t, p, key)); n != 1 {
		t.Errorf("the log has %d entries, want 1", n)
	}
}
