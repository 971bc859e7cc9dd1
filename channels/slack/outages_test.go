package slack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

// away sets the cursor back, as if nothing had been heard for so long.
func (r *rig) away(t testing.TB, d time.Duration) {
	t.Helper()
	if err := r.book.SetCursor(t.Context(), bus.Address{Channel: "slack"}, stamped(time.Now().Add(-d))); err != nil {
		t.Fatal(err)
	}
}

func stamped(at time.Time) string { return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000) }

// cursor is how far everything is handed on.
func (r *rig) cursor(t testing.TB) string {
	t.Helper()
	c, err := r.book.Cursor(t.Context(), bus.Address{Channel: "slack"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// However short it was: Slack may bring what it has in its own time.
func TestAfterARestartAChatGoesOnInOrder(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	r.away(t, 5*time.Second)
	r.server.Say("D1", "U1", "meanwhile")
	r.server.DropUnacked()
	r.server.Fail("users.conversations", "", 0, slacktest.Hang(false))
	connected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	if got := texts(m.wait(t, 2)); got != "meanwhile|now" {
		t.Errorf("published: %s", got)
	}
}

// What a limit lets through counts: nothing that was read is asked for again.
func TestHistoryIsReadOnWhereALimitHasStoppedIt(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	r.away(t, time.Hour)
	const threads, chats = 8, 250
	for i := range threads {
		root := r.server.Say("C1", "U1", "talk")
		r.server.Reply("C1", root, "U1", fmt.Sprint(called, " ", i))
	}
	for i := range chats {
		r.server.Say(fmt.Sprintf("D%03d", i), "U1", "hello")
	}
	r.server.DropUnacked()
	calls := 0 // one at a time
	r.server.Fail("conversations.replies", "", 0, func(w http.ResponseWriter, q *http.Request, do http.Handler) {
		if calls++; calls%3 == 0 {
			slacktest.Limit("0")(w, q, do)
			return
		}
		do.ServeHTTP(w, q)
	})
	pages := 0
	r.server.Fail("users.conversations", "", 0, func(w http.ResponseWriter, q *http.Request, do http.Handler) {
		if pages++; pages == 2 {
			slacktest.Limit("0")(w, q, do)
			return
		}
		do.ServeHTTP(w, q)
	})
	connected(t, r, m.publish)
	m.wait(t, threads+chats)
	if n := r.server.Calls("conversations.replies"); n > 2*threads {
		t.Errorf("%d threads were read by %d calls", threads, n)
	}
	if n := r.server.Calls("users.conversations"); n != 3 {
		t.Errorf("two pages of chats were read by %d calls", n)
	}
}

func TestHistoryThatCannotBeReadNowIsReadLater(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	r.Hurry()
	r.Quicken(time.Second, time.Minute, 10*time.Millisecond)
	r.away(t, time.Hour)
	before := r.cursor(t)
	r.server.Say("D1", "U1", "meanwhile")
	r.server.Say("D2", "U2", "in another chat")
	r.server.DropUnacked()
	r.server.Fail("users.conversations", "", 2, slacktest.Status(503, "somebody"))
	r.server.Fail("conversations.history", "D1", 0, slacktest.Status(503, "somebody"))
	connected(t, r, m.publish)
	m.wait(t, 1)
	r.server.Say("D1", "U1", "now") // does not wait for ever
	if got := texts(m.wait(t, 2)); got != "in another chat|now" {
		t.Errorf("published: %s", got)
	}
	if now := r.cursor(t); now != before {
		t.Errorf("the cursor has moved from %s to %s, though not all is read", before, now)
	}
	r.server.ClearFaults()
	if got := m.wait(t, 3)[2].Text; got != "meanwhile" {
		t.Errorf("published: %s", got)
	}
	until(t, "a cursor", func() bool { return r.cursor(t) > before })
}

func TestTheFirstCursorIsSavedAtOnce(t *testing.T) {
	r := newRig(t)
	r.Quicken(time.Second, time.Minute, time.Hour)
	began := stamped(time.Now())
	connected(t, r, newMailbox(r).publish)
	until(t, "a cursor", func() bool { return r.cursor(t) > began })
}

// What is said while the first process of all does not reach Slack is heard by the next one.
func TestTheFirstStartIsRememberedBeforeSlackIsReached(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	r.server.Fail("apps.connections.open", "", 0, slacktest.Status(503, "somebody"))
	stop := receive(t, r.Channel, m.publish)
	until(t, "a cursor", func() bool { return r.cursor(t) != "" })
	r.server.Say("D1", "U1", "meanwhile")
	r.server.DropUnacked()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.server.ClearFaults()
	r.Channel = r.channel(t)
	connected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	if got := texts(m.wait(t, 2)); got != "meanwhile|now" && got != "now|meanwhile" { // the gap is short
		t.Errorf("published: %s", got)
	}
}

// A process that was stopped, or whose machine has slept, finds old signs of life
// in its sockets when it goes on.
func TestASignOfLifeAfterASleepIsAnOldOne(t *testing.T) {
	r := newRig(t)
	for silence, want := range map[time.Duration]bool{20 * time.Second: false, 40 * time.Second: true, time.Hour: true} {
		if got := r.HeardAfter(silence); got != want {
			t.Errorf("after %v something is missing: %t", silence, got)
		}
	}
}

// Who ends while history is read has not read it: what waits behind it is left to
// whoever comes next.
func TestWhatWaitsForHistoryIsNotHandedOnAtTheEnd(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r)
	r.away(t, time.Hour)
	r.server.Say("D1", "U1", "meanwhile")
	r.server.DropUnacked()
	r.server.Fail("users.conversations", "", 0, slacktest.Hang(false))
	r.server.Fail("conversations.history", "D1", 0, slacktest.Hang(false))
	stop := connected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	until(t, "history being read", func() bool { return r.server.Calls("conversations.history") > 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := texts(m.all()); got != "" {
		t.Errorf("published: %s", got)
	}
	r.server.ClearFaults()
	r.Channel = r.channel(t)
	connected(t, r, m.publish)
	if got := texts(m.wait(t, 2)); got != "meanwhile|now" {
		t.Errorf("published: %s", got)
	}
}

// Many chats to be read take their time; those in which something is said find
// room meanwhile.
func TestASweepLeavesRoom(t *testing.T) {
	c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		sweep, live := c.Rooms()
		read := 0
		for began := time.Now(); time.Since(began) < time.Minute && sweep(t.Context()); {
			read++
		}
		if read < 50 || read > 65 {
			t.Errorf("%d chats were read in a minute", read)
		}
		for i := range 9 {
			if !live() {
				t.Fatalf("there is no room for the chat %d in which something is said", i+1)
			}
		}
	})
}

// Reading what was missed takes minutes where there are many channels: those who
// talk to the bot alone come first, then where it was spoken to lately.
func TestDirectMessagesAreReadFirstAfterAnOutage(t *testing.T) {
	r := newRig(t)
	for i := range 150 {
		r.server.Say(fmt.Sprintf("C%03d", i), "U1", "among people")
	}
	r.server.Say("D9", "U9", "before")
	r.server.DropUnacked()
	paced, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, AppToken: appToken, APIURL: r.url, Joins: r.book, Cursors: r.book})
	if err != nil {
		t.Fatal(err)
	}
	r.Channel = paced
	m := newMailbox(r)
	connected(t, r, m.publish)
	r.server.Say("C149", "U1", called+" lately")
	m.wait(t, 1)
	r.server.Freeze(true)
	r.server.CutSockets()
	r.server.Say("D9", "U9", "missed alone")
	r.server.Say("C149", "U1", called+" missed there")
	r.server.DropUnacked() // Slack could not deliver them
	r.server.Freeze(false)
	// Within the patience of this test only a few of the channels can be read.
	for n := 2; ; n++ {
		got := texts(m.wait(t, n))
		if strings.Contains(got, "missed alone") && strings.Contains(got, "missed there") {
			return
		}
	}
}
