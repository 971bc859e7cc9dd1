package slack_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/slacktest"
)

// publishWithWelcome returns a publish function that behaves like a Gateway: when a person opens a place, it
// calls Welcome, with the given admission.
func publishWithWelcome(t *testing.T, r *rig, m *messageRecorder, admitted bool) func(context.Context, bus.Inbound) error {
	return func(ctx context.Context, in bus.Inbound) error {
		if in.Kind != channels.Opened {
			return m.publish(ctx, in)
		}
		if !in.Mentioned || in.Group || in.From.ID != "slack:U7" || in.At.Chat != "D7" || in.ID == "" {
			t.Errorf("handed on %+v", in)
		}
		return r.Welcome(ctx, in, channels.Welcome{Admitted: admitted, Text: "**Hello** " + in.At.Thread + " there"})
	}
}

func TestTheHomeShowsWhatTheBotCanDo(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, publishWithWelcome(t, r, m, false))
	r.server.OpenHome("U7", "messages")
	waitUntil(t, "acks", allAcknowledged(r))
	r.server.OpenHome("U7", "home")
	waitUntil(t, "the home", func() bool { return r.server.Home("U7") != "" })
	if got := r.server.Home("U7"); got != "*Hello*  there" {
		t.Errorf("the home shows %q", got)
	}
	if n := r.server.Calls("views.publish"); n != 1 {
		t.Errorf("it was shown %d times", n)
	}
	if err := r.Welcome(t.Context(), bus.Inbound{From: bus.Person{ID: "slack:U8"}, At: address("D8")}, channels.Welcome{Text: strings.Repeat("many words\n\n", 50_000)}); err != nil {
		t.Errorf("a long text: %v", err)
	}
}

func TestThePaneSuggestsPrompts(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, publishWithWelcome(t, r, m, true))
	r.server.Say("C1", "U1", "just talking")
	r.server.RemoveBot("C2")
	thread := r.server.OpenPane("U7", "C1")
	titles := func() string {
		var all []string
		for _, p := range r.server.Pane("D7", thread).Prompts {
			all = append(all, p.Title)
		}
		return strings.Join(all, "|")
	}
	waitUntil(t, "the prompts", func() bool { return strings.HasSuffix(titles(), "|Write to #name-of-c1") })
	r.server.SwitchChannel("U7", thread, "C2") // a channel that the bot is not in
	waitUntil(t, "the other prompts", func() bool { return titles() != "" && !strings.Contains(titles(), "#") })
	if p := r.server.Pane("D7", thread); p.Above == "" || len(p.Prompts) != 3 || p.Prompts[0].Message == "" {
		t.Errorf("the pane shows %+v", p)
	}
	waitUntil(t, "acks", allAcknowledged(r))
}

func TestAPaneShowsNothingToStrangers(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, publishWithWelcome(t, r, m, false))
	thread := r.server.OpenPane("U7", "")
	waitUntil(t, "acks", allAcknowledged(r))
	r.server.OpenHome("U7", "home")
	waitUntil(t, "the home", func() bool { return r.server.Home("U7") != "" })
	if p := r.server.Pane("D7", thread); len(p.Prompts) > 0 || r.server.Calls("assistant.threads.setSuggestedPrompts") > 0 {
		t.Errorf("the pane shows %+v", p)
	}
}

func TestAPaneIsNamedAfterItsFirstMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, publishWithWelcome(t, r, m, true))
	thread := r.server.OpenPane("U7", "")
	r.server.Reply("D7", thread, "U7", "What is\nour *plan* for "+strings.Repeat("next ", 50)+"year?")
	waitUntil(t, "the title", func() bool { return r.server.Pane("D7", thread).Title != "" })
	r.server.Reply("D7", thread, "U7", "And then?")
	in := m.wait(t, 2)
	if got := r.server.Pane("D7", thread).Title; !strings.HasPrefix(got, "What is our *plan* for next") || len(got) > 60 {
		t.Errorf("it is named %q", got)
	}
	if in[0].At.Thread != thread || in[1].At != in[0].At || in[0].Group {
		t.Errorf("said at %v and %v", in[0].At, in[1].At)
	}
	r.server.Say("D7", "U7", "outside")
	r.server.Say("C1", "U7", botMention+" in a channel")
	m.wait(t, 4)
	if n := r.server.Calls("assistant.threads.setTitle"); n != 1 {
		t.Errorf("%d names were given", n)
	}
}

// The first message of a person who may not talk to the bot gives the pane no title.
func TestAPaneOfAStrangerIsNotNamed(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, func(ctx context.Context, in bus.Inbound) error {
		if in.From.ID == "slack:U7" || in.Kind == channels.Opened {
			return nil // the gate drops the message
		}
		return m.publish(ctx, in)
	})
	thread := r.server.OpenPane("U7", "")
	r.server.Reply("D7", thread, "U7", "hello")
	other := r.server.OpenPane("U8", "")
	r.server.Reply("D8", other, "U8", "hello")
	waitUntil(t, "the other's title", func() bool { return r.server.Pane("D8", other).Title == "hello" })
	if got := r.server.Pane("D7", thread).Title; got != "" {
		t.Errorf("it is named %q", got)
	}
}

func TestAThreadShowsTyping(t *testing.T) {
	r := newRig(t)
	root := r.server.Say("C1", "U1", botMention+" work")
	to := bus.Address{Channel: "slack", Chat: "C1", Thread: root}
	status := func() string { return r.server.Pane("C1", root).Status }
	show := func() {
		t.Helper()
		if fades, err := r.Typing(t.Context(), to); err != nil || fades < time.Minute || status() != "is thinking…" {
			t.Fatalf("shown is %q for %v, %v", status(), fades, err)
		}
	}
	show()
	id, err := r.Send(t.Context(), to, textPart("hello"))
	if err != nil || status() != "" {
		t.Errorf("after a message %q is shown, %v", status(), err)
	}
	if err := r.Edit(t.Context(), to, id, textPart("hello you")); err != nil || r.server.Calls("assistant.threads.setStatus") != 1 {
		t.Errorf("an edit took away what was gone, %v", err)
	}
	show()
	if err := r.Edit(t.Context(), to, id, textPart("done")); err != nil || status() != "" {
		t.Errorf("after an edit %q is shown, %v", status(), err)
	}
	if fades, err := r.Typing(t.Context(), address("D7")); err != nil || fades < time.Minute || r.server.Calls("assistant.threads.setStatus") != 3 {
		t.Errorf("outside of a thread: %v, %v", fades, err)
	}
}

// If an app was made with an older manifest, the refused call is not repeated for every answer.
func TestPlacesThatTheAppMayNotShowAreSkipped(t *testing.T) {
	r := newRig(t)
	root := r.server.Say("C1", "U1", botMention+" work")
	to := bus.Address{Channel: "slack", Chat: "C1", Thread: root}
	r.server.Fail("assistant.threads.setStatus", "", 0, slacktest.Refuse("missing_scope"))
	for range 3 {
		if fades, err := r.Typing(t.Context(), to); err != nil || fades < time.Minute {
			t.Fatalf("Typing = %v, %v", fades, err)
		}
	}
	if n := r.server.Calls("assistant.threads.setStatus"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	r.server.Fail("views.publish", "", 2, slacktest.Refuse("internal_error")) // a temporary error
	user := bus.Inbound{From: bus.Person{ID: "slack:U7"}, At: address("D7")}
	var faults []channels.Fault
	for range 2 {
		faults = append(faults, requireSendError(t, r.Welcome(t.Context(), user, channels.Welcome{Text: "hello"})).Fault)
	}
	if err := r.Welcome(t.Context(), user, channels.Welcome{Text: "hello"}); err != nil || r.server.Home("U7") != "hello" {
		t.Errorf("the home shows %q, %v", r.server.Home("U7"), err)
	}
	if !slices.Equal(faults, []channels.Fault{channels.Retry, channels.Retry}) {
		t.Errorf("faults are %v", faults)
	}
}
