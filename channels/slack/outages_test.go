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

// pretendOutage sets the saved cursor back, as if Slack had not been heard for that long.
func (r *rig) pretendOutage(t testing.TB, d time.Duration) {
	t.Helper()
	if err := r.book.SetCursor(t.Context(), bus.Address{Channel: "slack"}, slackTS(time.Now().Add(-d))); err != nil {
		t.Fatal(err)
	}
}

func slackTS(at time.Time) string { return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000) }

// savedCursor returns the time up to which everything has been published.
func (r *rig) savedCursor(t testing.TB) string {
	t.Helper()
	c, err := r.book.Cursor(t.Context(), bus.Address{Channel: "slack"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Even after a short outage messages keep their order, because Slack may take its time to deliver the missed
// ones.
func TestMessagesKeepTheirOrderAfterARestart(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.pretendOutage(t, 5*time.Second)
	r.server.Say("D1", "U1", "meanwhile")
	r.server.DropUnacked()
	r.server.Fail("users.conversations", "", 0, slacktest.Hang(false))
	startConnected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	if got := joinTexts(m.wait(t, 2)); got != "meanwhile|now" {
		t.Errorf("published: %s", got)
	}
}

// After a rate limit, reading continues at the same page: no page is requested twice.
func TestReadingContinuesAfterARateLimit(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.pretendOutage(t, time.Hour)
	const threads, chats = 8, 250
	for i := range threads {
		root := r.server.Say("C1", "U1", "talk")
		r.server.Reply("C1", root, "U1", fmt.Sprint(botMention, " ", i))
	}
	for i := range chats {
		r.server.Say(fmt.Sprintf("D%03d", i), "U1", "hello")
	}
	r.server.DropUnacked()
	calls := 0 // counts the calls; there is only one at a time
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
	startConnected(t, r, m.publish)
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
	m := newMessageRecorder(r)
	r.PostponeFailedReads()
	r.ShortenTimeouts(time.Second, time.Minute, 10*time.Millisecond)
	r.pretendOutage(t, time.Hour)
	before := r.savedCursor(t)
	r.server.Say("D1", "U1", "meanwhile")
	r.server.Say("D2", "U2", "in another chat")
	r.server.DropUnacked()
	r.server.Fail("users.conversations", "", 2, slacktest.Status(503, "somebody"))
	r.server.Fail("conversations.history", "D1", 0, slacktest.Status(503, "somebody"))
	startConnected(t, r, m.publish)
	m.wait(t, 1)
	r.server.Say("D1", "U1", "now") // its sender doesn't wait forever for the history
	if got := joinTexts(m.wait(t, 2)); got != "in another chat|now" {
		t.Errorf("published: %s", got)
	}
	if now := r.savedCursor(t); now != before {
		t.Errorf("the cursor has moved from %s to %s, though not all is read", before, now)
	}
	r.server.ClearFaults()
	if got := m.wait(t, 3)[2].Text; got != "meanwhile" {
		t.Errorf("published: %s", got)
	}
	waitUntil(t, "a cursor", func() bool { return r.savedCursor(t) > before })
}

func TestTheFirstCursorIsSavedAtOnce(t *testing.T) {
	r := newRig(t)
	r.ShortenTimeouts(time.Second, time.Minute, time.Hour)
	began := slackTS(time.Now())
	startConnected(t, r, newMessageRecorder(r).publish)
	waitUntil(t, "a cursor", func() bool { return r.savedCursor(t) > began })
}

// If the very first process can't reach Slack, the next one reads what was said in the meantime.
func TestTheFirstStartIsRememberedBeforeSlackIsReached(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.server.Fail("apps.connections.open", "", 0, slacktest.Status(503, "somebody"))
	stop := startReceiving(t, r.Channel, m.publish)
	waitUntil(t, "a cursor", func() bool { return r.savedCursor(t) != "" })
	r.server.Say("D1", "U1", "meanwhile")
	r.server.DropUnacked()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.server.ClearFaults()
	r.Channel = r.newChannel(t)
	startConnected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	if got := joinTexts(m.wait(t, 2)); got != "meanwhile|now" && got != "now|meanwhile" { // the gap is short, so the order doesn't matter
		t.Errorf("published: %s", got)
	}
}

// If a process was stopped, or its machine was asleep, it finds old signs of life in its sockets when it
// continues.
func TestASignOfLifeAfterSleepRecordsAGap(t *testing.T) {
	r := newRig(t)
	for silence, want := range map[time.Duration]bool{20 * time.Second: false, 40 * time.Second: true, time.Hour: true} {
		if got := r.DetectsGapAfter(silence); got != want {
			t.Errorf("after %v something is missing: %t", silence, got)
		}
	}
}

// If Receive ends while history is being read, the messages that wait for it are not published: the next
// process reads them.
func TestMessagesWaitingForHistoryAreNotPublishedAtShutdown(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	r.pretendOutage(t, time.Hour)
	r.server.Say("D1", "U1", "meanwhile")
	r.server.DropUnacked()
	r.server.Fail("users.conversations", "", 0, slacktest.Hang(false))
	r.server.Fail("conversations.history", "D1", 0, slacktest.Hang(false))
	stop := startConnected(t, r, m.publish)
	r.server.Say("D1", "U1", "now")
	waitUntil(t, "history being read", func() bool { return r.server.Calls("conversations.history") > 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := joinTexts(m.all()); got != "" {
		t.Errorf("published: %s", got)
	}
	r.server.ClearFaults()
	r.Channel = r.newChannel(t)
	startConnected(t, r, m.publish)
	if got := joinTexts(m.wait(t, 2)); got != "meanwhile|now" {
		t.Errorf("published: %s", got)
	}
}

// Reading the missed messages of many chats takes a while. In the meantime, chats with new messages can still
// be read.
func TestASweepLeavesReadsForActiveChats(t *testing.T) {
	c, err := slack.New(slack.Config{Name: "slack", BotToken: botToken})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		sweep, live := c.HistoryReadChecks()
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

// With many channels, reading the missed messages takes minutes. Private chats with the bot come first, then
// the channels in which people recently talked to it.
func TestDirectMessagesAreReadFirstAfterAnOutage(t *testing.T) {
	r := newRig(t)
	for i := range 150 {
		r.server.Say(fmt.Sprintf("C%03d", i), "U1", "among people")
	}
	r.server.Say("D9", "U9", "before")
	r.server.DropUnacked()
	paced, err := slack.New(slack.Config{Name: "slack", BotToken: botToken, AppToken: appToken, APIURL: r.url, JoinedThreads: r.book, Cursors: r.book})
	if err != nil {
		t.Fatal(err)
	}
	r.Channel = paced
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	r.server.Say("C149", "U1", botMention+" lately")
	m.wait(t, 1)
	r.server.Freeze(true)
	r.server.CutSockets()
	r.server.Say("D9", "U9", "missed alone")
	r.server.Say("C149", "U1", botMention+" missed there")
	r.server.DropUnacked() // Slack has stopped trying to deliver them
	r.server.Freeze(false)
	// Only a few of the channels can be read within this test's timeout.
	for n := 2; ; n++ {
		got := joinTexts(m.wait(t, n))
		if strings.Contains(got, "missed alone") && strings.Contains(got, "missed there") {
			return
		}
	}
}
