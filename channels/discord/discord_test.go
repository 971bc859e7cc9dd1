package discord_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

const (
	secret = "SECRETsecretSECRET"
	token  = "NDI0Mg." + secret + ".x"
)

// testTimeout limits how long a test waits for anything.
const testTimeout = 2 * time.Minute

type rig struct {
	*discord.Channel
	server *discordtest.Server
	url    string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	server := discordtest.New(token)
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // the test may have closed it already
	return &rig{Channel: newChannel(t, discord.Config{Token: token, APIURL: url + "/"}), server: server, url: url}
}

func newChannel(t testing.TB, c discord.Config) *discord.Channel {
	t.Helper()
	c.Name = "dc"
	ch, err := discord.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func address(chat string) bus.Address { return bus.Address{Channel: "dc", Chat: chat} }

func textPart(text string) channels.Part { return channels.Part{Key: "k/0", Text: text} }

// requireSendError returns err as a *channels.SendError, and checks that it contains no secrets.
func requireSendError(t testing.TB, err error) *channels.SendError {
	t.Helper()
	e, ok := errors.AsType[*channels.SendError](err)
	if !ok {
		t.Fatalf("got %v, want a *channels.SendError", err)
	}
	if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "somebody") {
		t.Errorf("the error holds the token or a text: %v", err)
	}
	return e
}

func TestSend(t *testing.T) {
	r := newRig(t)
	id, err := r.Send(t.Context(), address("11"), textPart("**hi** @everyone"))
	if err != nil {
		t.Fatal(err)
	}
	got := r.server.Sent("11")[0]
	if got.ID != id || got.Text != "**hi** @everyone" || got.NotifiesPeople || got.Flags != 4 || got.Nonce == "" || got.ReplyTo != "" {
		t.Errorf("sent %+v", got)
	}
	// A part under a message becomes a reply to it. If that message is gone, the part is sent nevertheless.
	for _, p := range []channels.Part{{Key: "k/1", Text: "a", Under: id}, {Key: "k/2", Text: "b", ReplyTo: "999"}} {
		if _, err := r.Send(t.Context(), address("11"), p); err != nil {
			t.Fatal(err)
		}
	}
	if all := r.server.Sent("11"); all[1].ReplyTo != id || all[2].ReplyTo != "999" {
		t.Errorf("sent %+v", all)
	}
	// A thread is a channel of its own.
	if _, err := r.Send(t.Context(), bus.Address{Channel: "dc", Chat: "11", Thread: "12"}, textPart("there")); err != nil {
		t.Fatal(err)
	}
	if n := len(r.server.Sent("12")); n != 1 {
		t.Errorf("%d messages in the thread", n)
	}
}

func TestSendingAPartAgainSendsItOnce(t *testing.T) {
	r := newRig(t)
	r.server.Fail("POST messages", "", 1, discordtest.Cut(true))
	_, err := r.Send(t.Context(), address("11"), textPart("hi"))
	if e := requireSendError(t, err); e.Fault != channels.Unknown {
		t.Fatalf("got %v, want unknown", e)
	}
	id, err := r.Send(t.Context(), address("11"), textPart("hi"))
	if err != nil || r.server.Sends() != 1 || r.server.Sent("11")[0].ID != id {
		t.Errorf("Send = %q, %v after %d sends", id, err, r.server.Sends())
	}
	if _, err := r.Send(t.Context(), address("11"), channels.Part{Key: "k/1", Text: "hi"}); err != nil || r.server.Sends() != 2 {
		t.Errorf("another part with the same text: %v after %d sends", err, r.server.Sends())
	}
}

// Discord does not promise to show nonces, so a message without the nonce proves nothing.
func TestWithoutANonceFindSentDoesNotKnow(t *testing.T) {
	r := newRig(t)
	if _, err := r.Send(t.Context(), address("11"), textPart("hi")); err != nil {
		t.Fatal(err)
	}
	_, _, err := r.FindSent(t.Context(), address("11"), textPart("hi"))
	if e := requireSendError(t, err); e.Fault != channels.Unknown {
		t.Errorf("got %v, want unknown", e)
	}
	r.server.Fail("GET messages", "", 1, discordtest.Answer(503, "<html>"))
	_, _, err = r.FindSent(t.Context(), address("11"), textPart("hi"))
	if e := requireSendError(t, err); e.Fault != channels.Retry {
		t.Errorf("got %v, want retry: looking may be done again", e)
	}
}

func TestEdit(t *testing.T) {
	r := newRig(t)
	id, err := r.Send(t.Context(), address("11"), textPart("draft"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Edit(t.Context(), address("11"), id, textPart("final @everyone")); err != nil {
		t.Fatal(err)
	}
	if got := r.server.Sent("11"); len(got) != 1 || got[0].Text != "final @everyone" || got[0].NotifiesPeople || got[0].Flags != 4 {
		t.Errorf("sent %+v", got)
	}
	for _, gone := range []string{"999", "../../x"} {
		err := r.Edit(t.Context(), address("11"), gone, textPart("x"))
		if e := requireSendError(t, err); e.Fault != channels.Rejected {
			t.Errorf("%s: got %v, want rejected", gone, e)
		}
	}
	r.server.Fail("PATCH messages", "", 1, discordtest.Cut(false))
	if e := requireSendError(t, r.Edit(t.Context(), address("11"), id, textPart("x"))); e.Fault != channels.Retry {
		t.Errorf("got %v, want retry: the same may be written again", e)
	}
}

func TestSendFile(t *testing.T) {
	r := newRig(t)
	id, err := r.SendFile(t.Context(), address("11"), bus.File{Name: "log.txt", Data: []byte("lines")}, textPart("see"))
	if err != nil {
		t.Fatal(err)
	}
	got := r.server.Sent("11")[0]
	if got.ID != id || got.File != "log.txt" || string(got.Data) != "lines" || got.Text != "see" || got.Nonce == "" || got.NotifiesPeople {
		t.Errorf("sent %+v", got)
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	for what, c := range map[string]struct {
		act  discordtest.Act
		want channels.SendError
	}{
		"a limit of the channel's": {
			discordtest.Answer(429, `{"message": "You are being rate limited.", "retry_after": 1.5, "global": false}`),
			channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 1500 * time.Millisecond, Code: "429"},
		},
		"a limit of the account's": {
			discordtest.Answer(429, `{"message": "somebody", "retry_after": 3, "global": true}`, "X-RateLimit-Global", "true", "X-RateLimit-Reset-After", "3"),
			channels.SendError{Fault: channels.Retry, RateLimited: true, AccountWide: true, RetryAfter: 3 * time.Second, Code: "429"},
		},
		"a limit of what stands before": {
			discordtest.Answer(429, `<html>somebody</html>`, "Retry-After", "60"),
			channels.SendError{Fault: channels.Retry, RateLimited: true, AccountWide: true, RetryAfter: time.Minute, Code: "429"},
		},
		"overload":            {discordtest.Answer(503, `{"message": "overloaded", "code": 130000}`), channels.SendError{Fault: channels.Retry, Code: "130000"}},
		"no such channel":     {discordtest.Answer(404, `{"message": "Unknown Channel somebody", "code": 10003}`), channels.SendError{Fault: channels.Rejected, Code: "10003"}},
		"no access":           {discordtest.Answer(403, `{"message": "Missing Access", "code": 50001}`), channels.SendError{Fault: channels.Rejected, Code: "50001"}},
		"no such path":        {discordtest.Answer(404, `{"message": "404: Not Found", "code": 0}`), channels.SendError{Fault: channels.Rejected, Code: "404"}},
		"the token":           {discordtest.Answer(401, `{"message": "401: Unauthorized", "code": 0}`), channels.SendError{Fault: channels.Stop, Code: "401"}},
		"somebody on the way": {discordtest.Answer(403, `<html>somebody</html>`), channels.SendError{Fault: channels.Retry, Code: "http_403"}},
		"a redirect":          {discordtest.Answer(307, ``, "Location", "http://127.0.0.1:1/"), channels.SendError{Fault: channels.Retry, Code: "http_307"}},
		"a bad gateway":       {discordtest.Answer(502, `somebody`), channels.SendError{Fault: channels.Unknown, Code: "http_502"}},
		"an inner error":      {discordtest.Answer(500, `{"message": "somebody", "code": 0}`), channels.SendError{Fault: channels.Unknown, Code: "http_500"}},
		"a strange answer":    {discordtest.Answer(200, `<html>somebody</html>`), channels.SendError{Fault: channels.Unknown, Code: "unreadable"}},
	} {
		r.server.Fail("POST messages", "11", 1, c.act)
		_, err := r.Send(t.Context(), address("11"), textPart("hi"))
		got := *requireSendError(t, err)
		got.Err = nil
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", what, got, c.want)
		}
	}
	if n := r.server.Sends(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

func TestInvalidPartsAreRejected(t *testing.T) {
	r := newRig(t)
	for _, text := range []string{" ", strings.Repeat("x", 2001)} {
		_, err := r.Send(t.Context(), address("11"), textPart(text))
		if e := requireSendError(t, err); e.Fault != channels.Rejected {
			t.Errorf("got %v, want rejected", e)
		}
	}
	for _, to := range []bus.Address{address("general"), address("../users/@me"), {Channel: "dc", Chat: "5", Thread: "x"}} {
		_, err := r.Send(t.Context(), to, textPart("hi"))
		if e := requireSendError(t, err); e.Fault != channels.Rejected || e.Code != "bad_address" {
			t.Errorf("%v: got %v, want rejected", to, e)
		}
	}
}

func TestChatsDoNotWaitForEachOther(t *testing.T) {
	r := newRig(t)
	r.server.Fail("POST messages", "11", 1, discordtest.Hang(false))
	ctx, cancel := context.WithCancel(t.Context())
	hung := make(chan error, 1)
	go func() {
		_, err := r.Send(ctx, address("11"), textPart("hi"))
		hung <- err
	}()
	// Neither the hanging call nor an announced rate limit makes another call wait, in any chat: only the Dispatcher
	// waits.
	r.server.Fail("POST messages", "12", 1, discordtest.Answer(429, `{"retry_after": 60, "global": true}`, "X-RateLimit-Global", "true", "X-RateLimit-Reset-After", "60"))
	if _, err := r.Send(t.Context(), address("12"), textPart("hi")); err == nil {
		t.Error("no limit")
	}
	tick, deadline := time.NewTicker(time.Millisecond), time.After(testTimeout)
	defer tick.Stop()
	for r.server.Calls("POST messages") < 2 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the first call does not arrive")
		}
	}
	for _, chat := range []string{"11", "12"} {
		if _, err := r.Send(t.Context(), address(chat), textPart("hi")); err != nil {
			t.Error(err)
		}
	}
	cancel()
	if e := requireSendError(t, <-hung); e.Fault != channels.Unknown {
		t.Errorf("got %v, want unknown", e)
	}
}

func TestCheck(t *testing.T) {
	r := newRig(t)
	if a, err := r.Check(t.Context()); err != nil || a.ID != "4242" || a.Username != "parley" {
		t.Errorf("Check = %+v, %v", a, err)
	}
	_, err := newChannel(t, discord.Config{Token: "a.wrong.one", APIURL: r.url}).Check(t.Context())
	if e := requireSendError(t, err); e.Fault != channels.Stop {
		t.Errorf("a refused token gives %v, want stop", e)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []discord.Config{
		{Token: ""}, {Token: secret}, {Token: token + " "}, {Token: token, RateLimit: "fast"},
		{Token: token, APIURL: "discord.com"}, {Token: token, APIURL: "ftp://x"},
	} {
		c.Name = "dc"
		if _, err := discord.New(c); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	if l := newChannel(t, discord.Config{Token: "Bot " + token, HTTP: &http.Client{}}).Limits(); l.Length != 2000 || l.Chat.Every == 0 || l.Account.Every == 0 {
		t.Errorf("Limits = %+v", l)
	}
	l := newChannel(t, discord.Config{Token: token, RateLimit: discord.NoPace}).Limits()
	if l.Chat != (channels.Pace{}) || l.Account != (channels.Pace{}) {
		t.Errorf("with rate_limit none: %+v", l)
	}
}

func BenchmarkSend(b *testing.B) {
	r := newRig(b)
	for b.Loop() {
		if _, err := r.Send(b.Context(), address("11"), channels.Part{Text: "**hello** world"}); err != nil {
			b.Fatal(err)
		}
	}
}
