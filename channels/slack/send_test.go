package slack_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

func TestSend(t *testing.T) {
	r := newRig(t)
	ts, err := r.Send(t.Context(), address("C1"), textPart("*hi* <https://example.com|there> &amp; @here"))
	if err != nil {
		t.Fatal(err)
	}
	got := r.server.Sent("C1")[0]
	if got.TS != ts || got.Text != "*hi* <https://example.com|there> &amp; @here" || got.Key != "k/0" || got.NotifiesEverybody || got.ShowsPreviews || got.Thread != "" {
		t.Errorf("sent %+v", got)
	}
	// A part goes into the address's own thread, or else into the thread of the message that it belongs to.
	for _, to := range []struct {
		at    bus.Address
		under string
	}{{bus.Address{Channel: "slack", Chat: "C1", Thread: ts}, ""}, {address("C1"), ts}} {
		if _, err := r.Send(t.Context(), to.at, channels.Part{Text: "more", Under: to.under, ReplyTo: "1.1"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range r.server.Sent("C1")[1:] {
		if m.Thread != ts {
			t.Errorf("sent %+v", m)
		}
	}
	// The message that the part belongs to may be gone.
	if _, err := r.Send(t.Context(), address("C1"), channels.Part{Text: "later", Under: "1111111111.000001"}); err != nil {
		t.Error(err)
	}
	if _, err := r.Send(t.Context(), address("U7"), textPart("between us")); err != nil || len(r.server.Sent("D7")) != 1 {
		t.Errorf("to a person: %v", err)
	}
}

func TestRenderedTextMentionsNobody(t *testing.T) {
	r := newRig(t)
	const hostile = "<!channel> @here <!here|x> `<!everyone>` [a](https://x.example/<!channel>)\n```\n<!channel>\n```\n<@U1> <!subteam^S1>"
	for _, piece := range markup.New().Render(hostile, markup.SlackMrkdwn, r.Limits().Length) {
		if _, err := r.Send(t.Context(), address("C1"), channels.Part{Text: piece.Text}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range r.server.Sent("C1") {
		if m.NotifiesEverybody {
			t.Errorf("it calls everybody: %q", m.Text)
		}
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	for what, c := range map[string]struct {
		act  slacktest.Act
		want channels.SendError
	}{
		"a limit":             {slacktest.Limit("7"), channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 7 * time.Second, Code: "ratelimited"}},
		"a limit by name":     {slacktest.Refuse("rate_limited"), channels.SendError{Fault: channels.Retry, RateLimited: true, Code: "rate_limited"}},
		"the team's limit":    {slacktest.Refuse("message_limit_exceeded"), channels.SendError{Fault: channels.Retry, RateLimited: true, AccountWide: true, Code: "message_limit_exceeded"}},
		"archived":            {slacktest.Refuse("is_archived"), channels.SendError{Fault: channels.Rejected, Code: "is_archived"}},
		"not there":           {slacktest.Refuse("not_in_channel"), channels.SendError{Fault: channels.Rejected, Code: "not_in_channel"}},
		"something new":       {slacktest.Refuse("brand_new_error"), channels.SendError{Fault: channels.Rejected, Code: "brand_new_error"}},
		"a text as a code":    {slacktest.Refuse("The words of somebody"), channels.SendError{Fault: channels.Rejected, Code: "other"}},
		"the token":           {slacktest.Refuse("token_revoked"), channels.SendError{Fault: channels.Stop, Code: "token_revoked"}},
		"no scope":            {slacktest.Refuse("missing_scope"), channels.SendError{Fault: channels.Stop, Code: "missing_scope"}},
		"an inner error":      {slacktest.Refuse("internal_error"), channels.SendError{Fault: channels.Unknown, Code: "internal_error"}},
		"a bad gateway":       {slacktest.Status(502, "somebody"), channels.SendError{Fault: channels.Unknown, Code: "http_502"}},
		"somebody on the way": {slacktest.Status(403, "somebody"), channels.SendError{Fault: channels.Retry, Code: "http_403"}},
		"a strange answer":    {slacktest.Status(200, "<html>somebody"), channels.SendError{Fault: channels.Unknown, Code: "cut_off"}},
		"an empty answer":     {slacktest.Status(200, "{}"), channels.SendError{Fault: channels.Unknown, Code: "unreadable"}},
	} {
		r.server.Fail("chat.postMessage", "C1", 1, c.act)
		_, err := r.Send(t.Context(), address("C1"), textPart("hi"))
		got := *requireSendError(t, err)
		got.Err, got.Remedy = nil, ""
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", what, got, c.want)
		}
	}
	for granted, want := range map[string]string{"": "lacks a scope", "im:history": "lacks the scope chat:write"} {
		if granted == "" {
			r.server.Fail("chat.postMessage", "C1", 1, slacktest.Refuse("missing_scope"))
		} else {
			r.server.SetScopes(granted)
		}
		_, err := r.Send(t.Context(), address("C1"), textPart("hi"))
		if e := requireSendError(t, err); !strings.Contains(e.Remedy, want) {
			t.Errorf("without a scope the remedy is %q, want one about %q", e.Remedy, want)
		}
		r.server.SetScopes(slack.Scopes()...)
	}
	for _, to := range []struct{ chat, text string }{{"X1", "hi"}, {"C1", " "}} {
		_, err := r.Send(t.Context(), address(to.chat), textPart(to.text))
		if e := requireSendError(t, err); e.Fault != channels.Rejected {
			t.Errorf("%+v: got %v, want rejected", to, e)
		}
	}
	if n := r.server.Sends(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

func TestInterruptedSendsAreUnknownAndFound(t *testing.T) {
	for what, c := range map[string]struct {
		act  slacktest.Act
		sent bool
	}{
		"cut": {slacktest.Cut(false), false}, "cut, though sent": {slacktest.Cut(true), true},
		"without end": {slacktest.Hang(false), false}, "without end, though sent": {slacktest.Hang(true), true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			root := r.server.Say("C1", "U1", "root")
			for i, to := range []bus.Address{address("C1"), {Channel: "slack", Chat: "C1", Thread: root}, address("U5")} {
				r.server.Fail("chat.postMessage", "", 1, c.act)
				p := channels.Part{Key: "k/" + string(rune('0'+i)), Text: "hi", Plain: "hi"}
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				_, err := r.Send(ctx, to, p)
				cancel()
				if e := requireSendError(t, err); e.Fault != channels.Unknown {
					t.Errorf("got %v, want unknown", e)
				}
				id, sent, err := r.FindSent(t.Context(), to, p)
				if err != nil || sent != c.sent || (id != "") != c.sent {
					t.Errorf("%v: FindSent = %q, %v, %v", to, id, sent, err)
				}
			}
		})
	}
}

func TestFindSentReportsWhenItCannotTell(t *testing.T) {
	r := newRig(t)
	r.server.Fail("conversations.history", "", 1, slacktest.Status(503, ""))
	_, _, err := r.FindSent(t.Context(), address("C1"), textPart("hi"))
	if e := requireSendError(t, err); e.Fault != channels.Retry {
		t.Errorf("got %v, want retry", e)
	}
	if _, sent, err := r.FindSent(t.Context(), address("C1"), textPart("hi")); sent || err != nil {
		t.Errorf("FindSent = %v, %v in an empty chat", sent, err)
	}
	// A file carries no key, so a file with the same text may be the part.
	if _, err := r.SendFile(t.Context(), address("C1"), bus.File{Name: "a.txt", Data: []byte("a")}, textPart("see")); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.FindSent(t.Context(), address("C1"), textPart("see"))
	if e := requireSendError(t, err); e.Fault != channels.Unknown {
		t.Errorf("got %v, want unknown", e)
	}
	named := textPart("see")
	named.File = "a.txt"
	_, _, err = r.FindSent(t.Context(), address("C1"), named)
	if e := requireSendError(t, err); e.Fault != channels.Unknown {
		t.Errorf("got %v of the same name, want unknown", e)
	}
	named.File = "b.txt"
	if _, sent, err := r.FindSent(t.Context(), address("C1"), named); sent || err != nil {
		t.Errorf("FindSent = %v, %v of a file of another name", sent, err)
	}
	if _, sent, err := r.FindSent(t.Context(), address("C1"), textPart("another text")); sent || err != nil {
		t.Errorf("FindSent = %v, %v", sent, err)
	}
	// A draft is found by its key or, if it grows, by its position. A file is never a draft.
	if _, err := r.SendFile(t.Context(), address("C4"), bus.File{Name: "a.txt", Data: []byte("a")}, channels.Part{}); err != nil {
		t.Fatal(err)
	}
	for _, growth := range []*channels.Growth{nil, {}} {
		if _, sent, err := r.FindSent(t.Context(), address("C4"), channels.Part{Key: "t#draft/0", Growing: growth}); sent || err != nil {
			t.Errorf("FindSent = %v, %v of a draft beside a file without words", sent, err)
		}
	}
	// Slack returns the text in another form than it was sent.
	if _, err := r.SendFile(t.Context(), address("C3"), bus.File{Name: "a.txt", Data: []byte("a")}, textPart("done 🎉 at 12:30:45")); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.FindSent(t.Context(), address("C3"), textPart("done 🎉 at 12:30:45"))
	if e := requireSendError(t, err); e.Fault != channels.Unknown {
		t.Errorf("got %v, want unknown", e)
	}
	if _, sent, err := r.FindSent(t.Context(), address("C3"), textPart("done 🎉 at 13:30:45")); sent || err != nil {
		t.Errorf("FindSent = %v, %v", sent, err)
	}
	// More messages than FindSent reads.
	for range 4001 {
		r.server.Say("C2", "U1", "x")
	}
	_, _, err = r.FindSent(t.Context(), address("C2"), textPart("hi"))
	if e := requireSendError(t, err); e.Fault != channels.Unknown || e.Code != "too_much" {
		t.Errorf("got %v, want unknown", e)
	}
}

func TestEdit(t *testing.T) {
	r := newRig(t)
	for _, to := range []bus.Address{address("C1"), address("U5")} {
		ts, err := r.Send(t.Context(), to, textPart("draft"))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Edit(t.Context(), to, ts, channels.Part{Key: "k/9", Text: "final"}); err != nil {
			t.Fatal(err)
		}
		got := r.server.Sent(strings.Replace(to.Chat, "U", "D", 1))
		if len(got) != 1 || got[0].Text != "final" || got[0].Key != "k/9" || got[0].NotifiesEverybody || got[0].ShowsPreviews {
			t.Errorf("sent %+v", got)
		}
	}
	if e := requireSendError(t, r.Edit(t.Context(), address("C1"), r.server.Sent("C1")[0].TS, textPart(strings.Repeat("x", 4001)))); e.Fault != channels.Rejected || e.Code != "msg_too_long" {
		t.Errorf("got %v, want rejected", e)
	}
	theirs := r.server.Say("C1", "U1", "mine")
	for _, id := range []string{"1.1", "F123", theirs, ""} {
		if e := requireSendError(t, r.Edit(t.Context(), address("C1"), id, textPart("x"))); e.Fault != channels.Rejected {
			t.Errorf("%q: got %v, want rejected", id, e)
		}
	}
	r.server.Fail("chat.update", "", 1, slacktest.Cut(true))
	if e := requireSendError(t, r.Edit(t.Context(), address("C1"), r.server.Sent("C1")[0].TS, textPart("x"))); e.Fault != channels.Retry {
		t.Errorf("got %v, want retry: the same may be written again", e)
	}
}

func TestSendFile(t *testing.T) {
	r := newRig(t)
	root := r.server.Say("C1", "U1", "root")
	id, err := r.SendFile(t.Context(), bus.Address{Channel: "slack", Chat: "C1", Thread: root}, bus.File{Name: "log.txt", Data: []byte("lines")}, textPart("see"))
	if err != nil || id == "" {
		t.Fatal(id, err)
	}
	got := r.server.Sent("C1")[0]
	if got.File != "log.txt" || string(got.Data) != "lines" || got.Text != "see" || got.Thread != root {
		t.Errorf("sent %+v", got)
	}
	// Before the last call, nothing is shown, so the outcome is never unknown.
	for method, want := range map[string]channels.Fault{"files.getUploadURLExternal": channels.Retry, "files.completeUploadExternal": channels.Unknown} {
		r.server.Fail(method, "", 1, slacktest.Cut(true))
		_, err := r.SendFile(t.Context(), address("C1"), bus.File{Name: "a", Data: []byte("b")}, textPart("x"))
		if e := requireSendError(t, err); e.Fault != want {
			t.Errorf("%s: got %v, want %s", method, e, want)
		}
	}
	_, err = r.SendFile(t.Context(), address("C1"), bus.File{Name: "a"}, textPart("x"))
	if e := requireSendError(t, err); e.Fault != channels.Rejected {
		t.Errorf("an empty file gives %v, want rejected", e)
	}
}

func TestReactions(t *testing.T) {
	r := newRig(t)
	ts := r.server.Say("C1", "U1", "hi")
	for range 2 { // adding a reaction twice is not an error
		if err := r.MarkSeen(t.Context(), address("C1"), ts); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.MarkAnswered(t.Context(), address("C1"), ts); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.server.Reactions("C1", ts), " "); got != "eyes white_check_mark" {
		t.Errorf("reactions: %s", got)
	}
	if e := requireSendError(t, r.MarkSeen(t.Context(), address("C1"), "1.1")); e.Fault != channels.Rejected {
		t.Errorf("got %v", e)
	}
}

func BenchmarkSend(b *testing.B) {
	r := newRig(b)
	for b.Loop() {
		if _, err := r.Send(b.Context(), address("C1"), channels.Part{Text: "*hello* world"}); err != nil {
			b.Fatal(err)
		}
	}
}
