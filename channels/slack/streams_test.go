package slack_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack/slacktest"
)

// growingPart returns a part that shows an unfinished answer: the text so far, and what the agent is doing.
func growingPart(answer int, said, doing string) channels.Part {
	p := textPart(said + " …")
	p.Key, p.Growing = "t#draft/0", &channels.Growth{Answer: answer, Text: said, Title: doing}
	if doing != "" {
		p.Growing.Doing = markup.Verbatim(doing)
	}
	return p
}

// openPane opens an assistant pane, in whose thread answers may grow, and returns the thread's address.
func openPane(r *rig) bus.Address {
	to := address("D7")
	to.Thread = r.server.OpenPane("U7", "")
	return to
}

// botMessages returns the bot's messages in a thread.
func botMessages(r *rig, to bus.Address) (all []slacktest.Message) {
	for _, m := range r.server.Sent(to.Chat) {
		if m.Thread == to.Thread {
			all = append(all, m)
		}
	}
	return all
}

// onlyBotMessage returns the bot's only message in a thread.
func onlyBotMessage(t *testing.T, r *rig, to bus.Address) slacktest.Message {
	t.Helper()
	all := botMessages(r, to)
	if len(all) != 1 {
		t.Fatalf("said %+v", all)
	}
	return all[0]
}

// replaceByAnswer replaces a growing message by the answer, and checks that the thread then contains only the
// whole answer.
func replaceByAnswer(t *testing.T, r *rig, c channels.Channel, to bus.Address, id string) {
	t.Helper()
	e, _ := channels.AsEditor(c)
	answer := channels.Part{Key: "t#reply/0", Text: "*The answer*", Plain: "The answer", Markdown: "**The answer**"}
	for range 2 { // an edit may be repeated
		if err := e.Edit(t.Context(), to, id, answer); err != nil {
			t.Fatal(err)
		}
	}
	if m := onlyBotMessage(t, r, to); m.TS != id || m.Streaming || m.Text != answer.Text || m.Markdown != answer.Markdown || m.Key != answer.Key {
		t.Errorf("in the end: %+v", m)
	}
}

func TestAGrowingMessageEndsAsTheAnswer(t *testing.T) {
	r := newRig(t)
	to := openPane(r)
	id, err := r.Send(t.Context(), to, growingPart(0, "Let me **look** <!channel> @here", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []channels.Part{
		growingPart(0, "Let me **look** <!channel> @here <", ""),
		growingPart(0, "Let me **look** <!channel> @here <!everyone>", ""),
		growingPart(0, "Let me **look** <!channel> @here <!everyone>", "exec_shell make"),
		growingPart(0, "Let me **look** <!channel> @here <!everyone>", "exec_shell make"), // the same as before
		growingPart(1, "It is", ""),
		growingPart(1, "It is done", ""),
	} {
		if err := r.Edit(t.Context(), to, id, step); err != nil {
			t.Fatal(err)
		}
	}
	m := onlyBotMessage(t, r, to)
	if got := strings.ReplaceAll(m.Text, "\u200b", ""); m.TS != id || !m.Streaming || m.NotifiesEverybody || m.Edits > 0 ||
		got != "Let me **look** <!channel> @here <!everyone>\n\nIt is done" || !reflect.DeepEqual(m.Cards, []slacktest.Card{{ID: "step-0", Title: "exec_shell make", Status: "complete"}}) {
		t.Errorf("it grew to %+v", m)
	}
	if n := r.server.Calls("chat.appendStream"); n != 5 {
		t.Errorf("appended %d times", n)
	}
	replaceByAnswer(t, r, r.Channel, to, id)
	if n := r.server.Calls("chat.stopStream"); n != 1 {
		t.Errorf("ended %d times", n)
	}
}

// Cards show what tools do: one card for each tool call. It changes with the call, and is complete once another
// call begins or the answer goes on.
func TestCardsShowWhatToolsDo(t *testing.T) {
	r := newRig(t)
	to := openPane(r)
	step := func(n int, said, doing string) channels.Part {
		p := growingPart(0, said, doing)
		p.Growing.Step = n
		return p
	}
	id, err := r.Send(t.Context(), to, step(1, "", "read_file a_b.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		part channels.Part
		want string
	}{
		{step(2, "", "exec_shell make"), "[{step-1 read_file a_b.md complete} {step-2 exec_shell make in_progress}]"},
		{step(2, "", "exec_shell 3 of 7"), "[{step-1 read_file a_b.md complete} {step-2 exec_shell 3 of 7 in_progress}]"},
		{step(3, "", "exec_shell 3 of 7"), "[{step-1 read_file a_b.md complete} {step-2 exec_shell 3 of 7 complete} {step-3 exec_shell 3 of 7 in_progress}]"},
		{step(3, "Done", ""), "[{step-1 read_file a_b.md complete} {step-2 exec_shell 3 of 7 complete} {step-3 exec_shell 3 of 7 complete}]"},
	} {
		if err := r.Edit(t.Context(), to, id, s.part); err != nil {
			t.Fatal(err)
		}
		if m := onlyBotMessage(t, r, to); fmt.Sprint(m.Cards) != s.want || m.Text != s.part.Growing.Text {
			t.Errorf("it shows %v and %q, want %s", m.Cards, m.Text, s.want)
		}
	}
	if n := r.server.Calls("chat.appendStream"); n != 4 {
		t.Errorf("appended %d times", n)
	}
	replaceByAnswer(t, r, r.Channel, to, id)
}

// In a workspace without cards, the text says what tools do.
func TestWithoutCardsToolsAreShownInTheText(t *testing.T) {
	for _, code := range []string{"invalid_chunks", "invalid_arguments", "no_text"} {
		r := newRig(t)
		r.server.Fail("chat.startStream", "", 1, slacktest.Refuse(code))
		for n := range 2 { // after the first refusal, cards are not tried again
			to := openPane(r)
			id, err := r.Send(t.Context(), to, growingPart(0, "Let me look", ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Edit(t.Context(), to, id, growingPart(0, "Let me look", "read_file a_b.md")); err != nil {
				t.Fatal(err)
			}
			if m := onlyBotMessage(t, r, to); !m.Streaming || m.Text != "Let me look\n\n· `read_file a_b.md`\n" || len(m.Cards) > 0 {
				t.Errorf("%s: it shows %+v", code, m)
			}
			if calls := r.server.Calls("chat.startStream"); calls != 2+n {
				t.Errorf("%s: begun %d times", code, calls)
			}
			replaceByAnswer(t, r, r.Channel, to, id)
		}
	}
}

// In a channel, Slack requires a growing answer to be for one person: the one who spoke last in its thread.
func TestInAChannelAnAnswerGrowsForTheLastSpeaker(t *testing.T) {
	r := newRig(t)
	root := openChannel(r, "C1", "U5", "hello all")
	to := address("C1")
	to.Thread = root
	// This process has received no message there.
	id, err := r.Send(t.Context(), to, growingPart(0, "One", ""))
	if m := onlyBotMessage(t, r, to); err != nil || m.TS != id || m.Streaming || m.Text != "One …" {
		t.Errorf("sent %+v, %v", m, err)
	}
	heard := newMessageRecorder(r)
	startConnected(t, r, heard.publish)
	to.Thread = r.server.Say("C1", "U7", botMention+" what is it?")
	heard.wait(t, 1)
	id, err = r.Send(t.Context(), to, growingPart(0, "Two", ""))
	if m := onlyBotMessage(t, r, to); err != nil || m.TS != id || !m.Streaming || m.To != "U7" {
		t.Errorf("sent %+v, %v", m, err)
	}
	replaceByAnswer(t, r, r.Channel, to, id)
	// Outside of threads, no message grows.
	if _, err := r.Send(t.Context(), address("C1"), growingPart(0, "Three", "")); err != nil || r.server.Calls("chat.startStream") != 1 {
		t.Errorf("%d were begun, %v", r.server.Calls("chat.startStream"), err)
	}
}

// The process that sends may not be the one that receives. It then asks Slack who wrote the message that
// started the turn.
func TestTheSpeakerThatAnotherProcessHeardIsLookedUp(t *testing.T) {
	r := newRig(t)
	root := openChannel(r, "C1", "U5", "hello all")
	reply := r.server.Reply("C1", root, "U6", botMention+" and this?")
	r.server.Reply("C1", root, "U7", "said later, by another")
	to := address("C1")
	to.Thread = root
	grow := func(turn string) slacktest.Message {
		t.Helper()
		p := growingPart(0, "One", "")
		p.Growing.Turn = turn
		id, err := r.Send(t.Context(), to, p)
		if err != nil {
			t.Fatal(err)
		}
		all := botMessages(r, to)
		if all[len(all)-1].TS != id {
			t.Fatalf("said %+v", all)
		}
		return all[len(all)-1]
	}
	id := func(ts string) string { return "slack:" + slacktest.Team + ":C1:" + ts }
	r.server.Fail("conversations.replies", "", 1, slacktest.Refuse("missing_scope"))
	for _, turn := range []string{id(reply), "", "schedule-7", id("Cmd123"), id("1700000000.000001"), "slack:" + slacktest.Team + ":C2:" + reply} {
		if m := grow(turn); m.Streaming {
			t.Errorf("of the turn %q nobody knows who began it: %+v", turn, m)
		}
	}
	asked := r.server.Calls("conversations.replies")
	if m := grow(id(reply)); !m.Streaming || m.To != "U6" {
		t.Errorf("it grows for %q: %+v", m.To, m)
	}
	grow(id(reply)) // the speaker is remembered by now
	if n := r.server.Calls("conversations.replies") - asked; n != 1 {
		t.Errorf("asked %d times", n)
	}
	r.Channel = r.newChannel(t)
	if m := grow(id(root)); !m.Streaming || m.To != "U5" {
		t.Errorf("it grows for %q: %+v", m.To, m)
	}
}

// If Slack refuses to start a growing message, an ordinary one is sent. A workspace that supports none isn't
// asked again for a while.
func TestARefusedGrowingMessageIsSentWhole(t *testing.T) {
	for _, step := range []struct {
		act    slacktest.Act
		spared bool
	}{
		{slacktest.Refuse("missing_scope"), true},
		{slacktest.Refuse("unknown_method"), true},
		{slacktest.Refuse("not_allowed"), true},
		{slacktest.Refuse("channel_type_not_supported"), false},
		{slacktest.Refuse("missing_recipient_user_id"), false},
		{slacktest.Limit("60"), true},
	} {
		r := newRig(t)
		first, second := openPane(r), openPane(r)
		r.server.Fail("chat.startStream", "", 1, step.act)
		id, err := r.Send(t.Context(), first, growingPart(0, "One", ""))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Edit(t.Context(), first, id, growingPart(0, "One two", "")); err != nil {
			t.Fatal(err)
		}
		if m := onlyBotMessage(t, r, first); m.Streaming || m.Text != "One two …" || m.Key != "t#draft/0" {
			t.Errorf("instead: %+v", m)
		}
		replaceByAnswer(t, r, r.Channel, first, id)
		if _, err := r.Send(t.Context(), second, growingPart(0, "Two", "")); err != nil || onlyBotMessage(t, r, second).Streaming == step.spared {
			t.Errorf("the next: %+v, %v; want it spared: %t", onlyBotMessage(t, r, second), err, step.spared)
		}
	}
}

// Slack allows few starts of growing messages per minute.
func TestFewGrowingMessagesStartAtOnce(t *testing.T) {
	r := newRig(t)
	for range 10 {
		if _, err := r.Send(t.Context(), openPane(r), growingPart(0, "One", "")); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.server.Calls("chat.startStream"); n < 4 || n > 8 || r.server.Calls("chat.postMessage") != 10-n {
		t.Errorf("%d of 10 grow", n)
	}
}

// If a growing message can't show something, it stops growing, and edits show the whole text.
func TestAMessageThatCannotGrowFurtherIsEdited(t *testing.T) {
	long := strings.Repeat("long ", 2500)
	for name, step := range map[string]struct {
		act  slacktest.Act
		next channels.Part
	}{
		"ended by Slack":  {slacktest.Refuse("message_not_in_streaming_state"), growingPart(0, "One two", "")},
		"too long":        {slacktest.Refuse("msg_too_long"), growingPart(0, "One two", "")},
		"cut off":         {slacktest.Cut(false), growingPart(0, "One two", "")},
		"cut off, done":   {slacktest.Cut(true), growingPart(0, "One two", "")},
		"server error":    {slacktest.Status(http.StatusBadGateway, ""), growingPart(0, "One two", "")},
		"said anew":       {nil, growingPart(0, "Another", "")},
		"longer than may": {nil, growingPart(0, "One "+long, "")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			to := openPane(r)
			id, err := r.Send(t.Context(), to, growingPart(0, "One", ""))
			if err != nil {
				t.Fatal(err)
			}
			if step.act != nil {
				r.server.Fail("chat.appendStream", "", 1, step.act)
			}
			step.next.Text = "all of it"
			if err := r.Edit(t.Context(), to, id, step.next); err != nil {
				t.Fatal(err)
			}
			if m := onlyBotMessage(t, r, to); m.TS != id || m.Streaming || m.Text != "all of it" {
				t.Errorf("it shows %+v", m)
			}
			if err := r.Edit(t.Context(), to, id, growingPart(0, "One two three", "")); err != nil || onlyBotMessage(t, r, to).Text != "One two three …" {
				t.Errorf("it goes on as %+v, %v", onlyBotMessage(t, r, to), err)
			}
			replaceByAnswer(t, r, r.Channel, to, id)
		})
	}
}

func TestGrowingWaitsForTheRateLimit(t *testing.T) {
	r := newRig(t)
	to := openPane(r)
	id, err := r.Send(t.Context(), to, growingPart(0, "One", ""))
	if err != nil {
		t.Fatal(err)
	}
	r.server.Fail("chat.appendStream", "", 1, slacktest.Limit("7"))
	if e := requireSendError(t, r.Edit(t.Context(), to, id, growingPart(0, "One two", ""))); e.Fault != channels.Retry || !e.RateLimited || e.RetryAfter.Seconds() != 7 {
		t.Errorf("the error is %+v", e)
	}
	if err := r.Edit(t.Context(), to, id, growingPart(0, "One two", "")); err != nil || onlyBotMessage(t, r, to).Text != "One two" {
		t.Errorf("it grew to %+v, %v", onlyBotMessage(t, r, to), err)
	}
	r.server.Fail("chat.stopStream", "", 1, slacktest.Limit("7"))
	if e := requireSendError(t, r.Edit(t.Context(), to, id, textPart("The answer"))); e.Fault != channels.Retry || !e.RateLimited {
		t.Errorf("the error is %+v", e)
	}
	replaceByAnswer(t, r, r.Channel, to, id)
}

// A process may die, or get no answer, around each call. The next process finds and ends the growing message it
// left, and the answer is the only message.
func TestACrashWhileAnAnswerGrows(t *testing.T) {
	find := func(t *testing.T, r *rig, to bus.Address) (string, bool) {
		id, sent, err := r.FindSent(t.Context(), to, channels.Part{Key: "t#draft/0", Growing: new(channels.Growth)})
		if err != nil {
			t.Fatal(err)
		}
		return id, sent
	}
	for name, act := range map[string]slacktest.Act{"start": slacktest.Cut(false), "start, done": slacktest.Cut(true)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			to := openPane(r)
			earlier := channels.Part{Key: "s#reply/0", Text: "Earlier", Plain: "Earlier"}
			r.server.Fail("chat.startStream", "", 1, act)
			if e := requireSendError(t, func() error { _, err := r.Send(t.Context(), to, growingPart(0, "One", "")); return err }()); e.Fault != channels.Unknown {
				t.Fatalf("the error is %+v", e)
			}
			r.Channel = r.newChannel(t)
			id, sent := find(t, r, to)
			if sent != strings.HasSuffix(name, "done") {
				t.Fatalf("found %q, %t", id, sent)
			}
			if !sent {
				return
			}
			if _, found, err := r.FindSent(t.Context(), to, channels.Part{Key: "t#reply/0"}); found || err != nil {
				t.Errorf("another part is found in it, %v", err)
			}
			replaceByAnswer(t, r, r.Channel, to, id)
			// A message that is followed by another one is not the growing one.
			if _, err := r.Send(t.Context(), to, earlier); err != nil {
				t.Fatal(err)
			}
			if id, sent := find(t, r, to); sent {
				t.Errorf("found %s", id)
			}
		})
	}
	for name, before := range map[string]func(context.Context, *rig, bus.Address, string){
		"after the start": func(context.Context, *rig, bus.Address, string) {},
		"after an append": func(ctx context.Context, r *rig, to bus.Address, id string) {
			_ = r.Edit(ctx, to, id, growingPart(0, "One two", "")) // FindSent must find it
		},
		"before the end": func(ctx context.Context, r *rig, to bus.Address, id string) {
			r.server.Fail("chat.stopStream", "", 1, slacktest.Cut(false))
			_ = r.Edit(ctx, to, id, textPart("The answer"))
		},
		"after the end": func(ctx context.Context, r *rig, to bus.Address, id string) {
			r.server.Fail("chat.update", "", 1, slacktest.Cut(false))
			_ = r.Edit(ctx, to, id, textPart("The answer"))
		},
		"after Slack has ended it": func(_ context.Context, r *rig, _ bus.Address, _ string) { r.server.EndStreams() },
	} {
		for _, dies := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				to := openPane(r)
				id, err := r.Send(t.Context(), to, growingPart(0, "One", ""))
				if err != nil {
					t.Fatal(err)
				}
				before(t.Context(), r, to, id)
				if dies {
					r.Channel = r.newChannel(t)
				}
				if err := r.Edit(t.Context(), to, id, growingPart(0, "One two three", "")); err != nil {
					t.Fatal(err)
				}
				if m := onlyBotMessage(t, r, to); m.TS != id || !strings.HasPrefix(m.Text, "One two three") {
					t.Errorf("it goes on as %+v", m)
				}
				replaceByAnswer(t, r, r.Channel, to, id)
			})
		}
	}
}
