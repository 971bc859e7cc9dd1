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

// Discord tells nobody of the chat with a person who has not talked to the bot yet. What
// they said while it was away is heard once they write again, however often it was away
// since; what they said while it was there is not heard again.
func TestAnUnknownPersonIsHeardOnceTheyWriteAgain(t *testing.T) {
	l := newListener(t)
	l.overlap = 0
	stop := l.receive()
	l.server.Say("77", "507", "there") // nobody who is admitted, as the book has no chat with them
	l.wait(1)
	l.server.Say("100", "501", called+"hello")
	l.wait(2)
	channelstest.Until(t, "the cursor", func() bool { return l.server.CountSince(l.book.cursor()) == 0 })
	for _, text := range []string{"away", "away again"} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		l.server.ExpireSessions()
		l.server.Say("77", "507", text)
		stop = l.receive()
		l.server.Say("100", "501", called+"somebody else "+text)
		channelstest.Until(t, "somebody else", func() bool {
			return slices.ContainsFunc(l.texts(at("100")), func(heard string) bool { return strings.HasSuffix(heard, text) })
		})
		channelstest.Until(t, "the cursor", func() bool { return l.server.CountSince(l.book.cursor()) == 0 })
	}
	l.mu.Lock()
	clear(l.known) // as if nobody dropped what comes twice
	l.mu.Unlock()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l.server.ExpireSessions()
	l.receive()
	l.server.Say("77", "507", "at last")
	channelstest.Until(t, "the last", func() bool { return slices.Contains(l.texts(at("77")), "at last") })
	if got := l.texts(at("77")); !slices.Equal(got, []string{"there", "away", "away again", "at last"}) {
		t.Errorf("heard %q", got)
	}
}

// The cursor does not pass what is not published, however much is heard elsewhere.
func TestTheCursorStaysBehindWhatIsNotPublished(t *testing.T) {
	l := newListener(t)
	l.overlap = 0
	tried := make(chan struct{}, 100)
	stop := l.start(func(ctx context.Context, in bus.Inbound) error {
		if in.At == at("11") {
			tried <- struct{}{}
			return errors.New("the bus is away")
		}
		return l.publish(ctx, in)
	})
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
	stuck := number(t, l.server.Say("11", "501", "stuck"))
	<-tried
	for i := range 5 {
		l.server.Say("100", "501", called+"heard")
		l.wait(i + 1)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := l.book.cursor(); got == 0 || got >= stuck {
		t.Errorf("the cursor is at %d, and %d is not published", got, stuck)
	}
	l.server.ExpireSessions()
	l.receive()
	if got := l.wait(6)[5]; got.Text != "stuck" {
		t.Errorf("then it hears %+v", got)
	}
}

// What is read from history may be newer than what the gateway has delivered. The cursor does not
// follow it: what was said elsewhere in between would never be heard, or after what was said later.
func TestTheCursorStaysBehindWhatTheGatewayHasNotDelivered(t *testing.T) {
	l := newListener(t)
	l.overlap = 0
	l.server.SetHeartbeatInterval(time.Minute) // nobody notices that nothing is delivered
	away := l.server.Say("100", "501", called+"while it is away")
	reading, readOn := make(chan struct{}), make(chan struct{})
	l.server.Fail("GET messages", "100", 1, func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		close(reading)
		select {
		case <-readOn:
			do.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	stop := l.receive()
	<-reading
	l.server.ExpireSessions() // from now on nothing is delivered
	first := l.server.Say("200", "501", called+"first")
	l.server.Say("100", "501", called+"while nothing is delivered")
	close(readOn)
	l.wait(2)
	channelstest.Until(t, "the cursor", func() bool { return l.book.cursor() >= number(t, away) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := l.book.cursor(); got >= number(t, first) {
		t.Errorf("the cursor is at %d, and %s is not published", got, first)
	}
	l.wantSecondBehindFirst(t)
}

// However often the connection breaks before history is read, history is read from the same place on:
// what is before that was read, or was there before the bot.
func TestHistoryIsNotReadFromFurtherBackEachTime(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	l.overlap = time.Hour
	l.server.Fail("GET messages", "12", 1<<20, discordtest.Answer(500, `{"message": "not now", "code": 0}`)) // so the cursor stays
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
	l.receive()
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

// Of a server's channels only those are read after an outage of which the server says that something
// was said since, though what was said last may be deleted.
func TestOnlyChannelsWithNewsAreRead(t *testing.T) {
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
	stop := l.receive()
	newest := ""
	for _, id := range []string{"100", "101", "200"} {
		newest = l.server.Say(id, "501", called+"before")
	}
	l.wait(3)
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
	l.server.Say("101", "501", called+"meanwhile")
	l.server.Remove("103", l.server.Say("103", "501", called+"and gone again"))
	l.receive()
	l.server.Say("102", "501", called+"now")
	l.wait(5)
	if got := l.texts(at("101")); !slices.Equal(got, []string{"before", "meanwhile"}) {
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

// number returns the number that an id of Discord's is.
func number(t *testing.T, id string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What there is no room for is read from history, in its order.
func TestMoreIsSaidThanThereIsRoomFor(t *testing.T) {
	l := newListener(t)
	c := channel(t, discord.Config{Token: token, APIURL: l.fake.URL, RateLimit: discord.NoPace, Book: l.book})
	c.SetRoom(5)
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
	l.wait(3 * 150)
	for _, where := range []bus.Address{at("11"), at("100"), thread("100", "200")} {
		if got := l.texts(where); !slices.Equal(got, numbers(0, 150)) {
			t.Errorf("at %v was heard %q", where, got)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A channel whose history may not be read keeps nobody waiting, and one for which
// Discord asks for patience waits alone.
func TestHistoryThatCannotBeRead(t *testing.T) {
	l := newListener(t)
	l.server.AddChannel("101", "hidden")
	l.server.HideHistory("101")
	l.server.Fail("GET messages", "100", 2, discordtest.Answer(429, `{"retry_after": 0.3, "global": false}`))
	l.server.Fail("GET messages", "11", 2, discordtest.Answer(500, `{"message": "somebody", "code": 0}`))
	for _, chat := range []string{"101", "100", "11", "12"} {
		l.server.Say(chat, "501", called+"while you were away")
	}
	l.receive()
	for _, chat := range []string{"101", "100", "11", "12"} {
		l.server.Say(chat, "501", called+"now")
	}
	l.wait(7)
	for chat, want := range map[string][]string{"101": {"now"}, "100": {"while you were away", "now"}, "11": {"while you were away", "now"}, "12": {"while you were away", "now"}} {
		if got := l.texts(at(chat)); !slices.Equal(got, want) {
			t.Errorf("of %s was heard %q, want %q", chat, got, want)
		}
	}
}

// A bot that is started for the first time does not answer what was said before.
func TestTheFirstStartAnswersNothingOld(t *testing.T) {
	l := newListener(t)
	l.book = &book{cursors: map[string]string{}}
	l.overlap = 0
	l.server.Say("11", "501", "long ago")
	l.server.Say("100", "501", called+"long ago")
	last := l.server.Say("99", "509", "long ago, too")
	channelstest.Until(t, "a later moment", func() bool { return flake(time.Now()) > last })
	l.receive()
	l.server.Say("11", "501", "now")
	l.wait(1)
	if got := l.last(); len(got) != 1 || got[0].Text != "now" {
		t.Errorf("heard %+v", got)
	}
}

// wantSecondBehindFirst has another process receive, says "second" in the thread 200, and fails the
// test unless that is heard behind "first", which was said before.
func (l *listener) wantSecondBehindFirst(t *testing.T) {
	t.Helper()
	l.receive()
	l.server.Say("200", "501", called+"second")
	where := thread("100", "200")
	channelstest.Until(t, "the second", func() bool { return slices.Contains(l.texts(where), "second") })
	if got := l.texts(where); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("in the thread was heard %q", got)
	}
}

// A process that is started for the first time, and dies before it has published anything, has
// promised to hear what was said since: the next one does, in order.
func TestTheFirstStartIsRemembered(t *testing.T) {
	l := newListener(t)
	l.book = &book{cursors: map[string]string{}}
	l.overlap = 0
	tried := make(chan struct{}, 100)
	stop := l.start(func(context.Context, bus.Inbound) error {
		tried <- struct{}{}
		return errors.New("the bus is away")
	})
	channelstest.Until(t, "a session", func() bool { return l.server.Connected() > 0 })
	l.book.fill(true) // as if it was killed: nothing of what follows is written
	last := l.server.Say("200", "501", called+"first")
	<-tried
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l.book.fill(false)
	l.server.ExpireSessions()
	channelstest.Until(t, "a later moment", func() bool { return flake(time.Now()) > last })
	l.wantSecondBehindFirst(t)
}
