package discord_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/channelstest"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

// Discord does not list the chat with a person who has not talked to the bot yet. Messages that such a person
// sent while the bot was away are read once they write again. Messages that were received before are not
// published again.
func TestMissedMessagesOfAnUnknownPersonAreReadOnceTheyWriteAgain(t *testing.T) {
	l := newListener(t)
	l.overlap = 0
	stop := l.receiveUntilStopped()
	l.server.Say("77", "507", "there") // not admitted, because the book has no chat with this person
	l.waitFor(1)
	l.server.Say("100", "501", botMention+"hello")
	l.waitFor(2)
	channelstest.Until(t, "the cursor", func() bool { return l.server.CountSince(l.book.savedCursor()) == 0 })
	for _, text := range []string{"away", "away again"} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		l.server.ExpireSessions()
		l.server.Say("77", "507", text)
		stop = l.receiveUntilStopped()
		l.server.Say("100", "501", botMention+"somebody else "+text)
		channelstest.Until(t, "somebody else", func() bool {
			return slices.ContainsFunc(l.textsAt(address("100")), func(heard string) bool { return strings.HasSuffix(heard, text) })
		})
		channelstest.Until(t, "the cursor", func() bool { return l.server.CountSince(l.book.savedCursor()) == 0 })
	}
	l.mu.Lock()
	clear(l.publishedIDs) // forget what was published, as if nothing dropped repetitions
	l.mu.Unlock()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l.server.ExpireSessions()
	l.receiveUntilStopped()
	l.server.Say("77", "507", "at last")
	channelstest.Until(t, "the last", func() bool { return slices.Contains(l.textsAt(address("77")), "at last") })
	if got := l.textsAt(address("77")); !slices.Equal(got, []string{"there", "away", "away again", "at last"}) {
		t.Errorf("heard %q", got)
	}
}

// The cursor does not pass an unpublished message, no matter how many messages arrive in other channels.
func TestTheCursorStaysBehindUnpublishedMessages(t *testing.T) {
	l := newListener(t)
	l.overlap = 0
	tried := make(chan struct{}, 100)
	stop := l.startReceiving(func(ctx context.Context, in bus.Inbound) error {
		if in.At == address("11") {
			tried <- struct{}{}
			return errors.New("the bus is away")
		}
		return l.publish(ctx, in)
	})
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
	stuck := idNumber(t, l.server.Say("11", "501", "stuck"))
	<-tried
	for i := range 5 {
		l.server.Say("100", "501", botMention+"heard")
		l.waitFor(i + 1)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := l.book.savedCursor(); got == 0 || got >= stuck {
		t.Errorf("the cursor is at %d, and %d is not published", got, stuck)
	}
	l.server.ExpireSessions()
	l.receiveUntilStopped()
	if got := l.waitFor(6)[5]; got.Text != "stuck" {
		t.Errorf("then it hears %+v", got)
	}
}

// A message that was read from history may be newer than what the gateway has delivered. If the cursor followed
// it, undelivered messages from other channels would never be read, or be published after later ones.
func TestTheCursorStaysBehindUndeliveredMessages(t *testing.T) {
	l := newListener(t)
	l.overlap = 0
	l.server.SetHeartbeatInterval(time.Minute) // so that nobody notices the missing events
	away := l.server.Say("100", "501", botMention+"while it is away")
	reading, readOn := make(chan struct{}), make(chan struct{})
	l.server.Fail("GET messages", "100", 1, func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		close(reading)
		select {
		case <-readOn:
			do.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	stop := l.receiveUntilStopped()
	<-reading
	l.server.ExpireSessions() // from now on the gateway delivers nothing
	first := l.server.Say("200", "501", botMention+"first")
	l.server.Say("100", "501", botMention+"while nothing is delivered")
	close(readOn)
	l.waitFor(2)
	channelstest.Until(t, "the cursor", func() bool { return l.book.savedCursor() >= idNumber(t, away) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := l.book.savedCursor(); got >= idNumber(t, first) {
		t.Errorf("the cursor is at %d, and %s is not published", got, first)
	}
	l.checkSecondAfterFirst(t)
}

// If the connection breaks several times before history is read, history is still read from the same place.
// Everything before it was read already, or is older than the bot.
func TestHistoryIsReadFromTheSamePlaceAfterEachBreak(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	l.overlap = time.Hour
	l.server.Fail("GET messages", "12", 1<<20, discordtest.Answer(500, `{"message": "not now", "code": 0}`)) // history can't be read, so the cursor does not move
	var mu sync.Mutex
	var after []uint64
	l.server.Fail("GET messages", "11", 1<<20, func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		n, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		after = append(after, n)
		mu.Unlock()
		do.ServeHTTP(w, r)
	})
	reads := func() []uint64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(after)
	}
	l.receiveUntilStopped()
	channelstest.Until(t, "history to be read", func() bool { return len(reads()) >= 1 })
	l.server.ExpireSessions()
	l.server.CutGateway()
	channelstest.Until(t, "history to be read by another session", func() bool { return len(reads()) >= 2 })
	for _, from := range reads() {
		if first := reads()[0]; from < first {
			t.Errorf("history is read from %d on, and first it was from %d on", from, first)
		}
	}
}

// After an outage, only those channels of a server are read that, according to the server, have newer messages.
// The newest message may have been deleted.
func TestOnlyChannelsWithNewMessagesAreRead(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	l.overlap = 0
	var mu sync.Mutex
	read := map[string]int{}
	for _, id := range []string{"100", "101", "102", "103", "200"} {
		if id != "100" && id != "200" {
			l.server.AddChannel(id, "channel "+id)
		}
		l.server.Fail("GET messages", id, 1<<20, func(w http.ResponseWriter, r *http.Request, do http.Handler) {
			mu.Lock()
			read[id]++
			mu.Unlock()
			do.ServeHTTP(w, r)
		})
	}
	stop := l.receiveUntilStopped()
	newest := ""
	for _, id := range []string{"100", "101", "200"} {
		newest = l.server.Say(id, "501", botMention+"before")
	}
	l.waitFor(3)
	channelstest.Until(t, "the cursor to be saved", func() bool {
		cursor, err := l.book.Cursor(t.Context(), bus.Address{Channel: "dc"})
		return err == nil && cursor == newest
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l.server.ExpireSessions()
	mu.Lock()
	clear(read)
	mu.Unlock()
	l.server.Say("101", "501", botMention+"meanwhile")
	l.server.Remove("103", l.server.Say("103", "501", botMention+"and gone again"))
	l.receiveUntilStopped()
	l.server.Say("102", "501", botMention+"now")
	l.waitFor(5)
	if got := l.textsAt(address("101")); !slices.Equal(got, []string{"before", "meanwhile"}) {
		t.Errorf("heard %q", got)
	}
	channelstest.Until(t, "the channel with a deleted message to be read", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return read["103"] > 0
	})
	mu.Lock()
	defer mu.Unlock()
	if len(read) != 2 || read["101"] != 1 || read["103"] != 1 {
		t.Errorf("history was read so often: %v", read)
	}
}

// idNumber returns a Discord id as a number.
func idNumber(t *testing.T, id string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Messages for which the queue has no room are read from history, in order.
func TestMessagesBeyondTheQueueLimitAreReadFromHistory(t *testing.T) {
	l := newListener(t)
	c := newChannel(t, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: l.book})
	c.SetMaxQueued(5)
	open := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Receive(ctx, func(ctx context.Context, in bus.Inbound) error {
			<-open
			return l.publish(ctx, in)
		})
	}()
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
	l.sayAll(0, 150) // more than a page of history
	close(open)
	l.waitFor(3 * 150)
	for _, where := range []bus.Address{address("11"), address("100"), threadAddress("100", "200")} {
		if got := l.textsAt(where); !slices.Equal(got, numberTexts(0, 150)) {
			t.Errorf("at %v was heard %q", where, got)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A channel whose history can't be read delays no other messages. While Discord limits the reads of a channel,
// only that channel waits.
func TestUnreadableHistoryDelaysNobody(t *testing.T) {
	l := newListener(t)
	l.server.AddChannel("101", "hidden")
	l.server.HideHistory("101")
	l.server.Fail("GET messages", "100", 2, discordtest.Answer(429, `{"retry_after": 0.3, "global": false}`))
	l.server.Fail("GET messages", "11", 2, discordtest.Answer(500, `{"message": "somebody", "code": 0}`))
	for _, chat := range []string{"101", "100", "11", "12"} {
		l.server.Say(chat, "501", botMention+"while you were away")
	}
	l.receiveUntilStopped()
	for _, chat := range []string{"101", "100", "11", "12"} {
		l.server.Say(chat, "501", botMention+"now")
	}
	l.waitFor(7)
	for chat, want := range map[string][]string{"101": {"now"}, "100": {"while you were away", "now"}, "11": {"while you were away", "now"}, "12": {"while you were away", "now"}} {
		if got := l.textsAt(address(chat)); !slices.Equal(got, want) {
			t.Errorf("of %s was heard %q, want %q", chat, got, want)
		}
	}
}

// A bot that starts for the first time does not answer messages from before.
func TestTheFirstStartIgnoresOlderMessages(t *testing.T) {
	l := newListener(t)
	l.book = &book{cursors: map[string]string{}}
	l.overlap = 0
	l.server.Say("11", "501", "long ago")
	l.server.Say("100", "501", botMention+"long ago")
	last := l.server.Say("99", "509", "long ago, too")
	channelstest.Until(t, "a later moment", func() bool { return idAtTime(time.Now()) > last })
	l.receiveUntilStopped()
	l.server.Say("11", "501", "now")
	l.waitFor(1)
	if got := l.publishedSoFar(); len(got) != 1 || got[0].Text != "now" {
		t.Errorf("heard %+v", got)
	}
}

// checkSecondAfterFirst starts another process, posts "second" in the thread 200, and fails the test unless it
// is published after "first", which was posted before.
func (l *listener) checkSecondAfterFirst(t *testing.T) {
	t.Helper()
	l.receiveUntilStopped()
	l.server.Say("200", "501", botMention+"second")
	where := threadAddress("100", "200")
	channelstest.Until(t, "the second", func() bool { return slices.Contains(l.textsAt(where), "second") })
	if got := l.textsAt(where); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("in the thread was heard %q", got)
	}
}

// If the very first process dies before it has published anything, the next one reads what was said since its
// start, in order.
func TestTheFirstStartIsRemembered(t *testing.T) {
	l := newListener(t)
	l.book = &book{cursors: map[string]string{}}
	l.overlap = 0
	tried := make(chan struct{}, 100)
	stop := l.startReceiving(func(context.Context, bus.Inbound) error {
		tried <- struct{}{}
		return errors.New("the bus is away")
	})
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
	l.book.setWritesFail(true) // as if the process was killed: nothing is written from here on
	last := l.server.Say("200", "501", botMention+"first")
	<-tried
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l.book.setWritesFail(false)
	l.server.ExpireSessions()
	channelstest.Until(t, "a later moment", func() bool { return idAtTime(time.Now()) > last })
	l.checkSecondAfterFirst(t)
}
