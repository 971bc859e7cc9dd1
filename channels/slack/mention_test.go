package slack_test

import (
	"slices"
	"strings"
	"testing"

	"parley/channels"
)

// Each channel has its own rule for mentions. For a message that is not meant for the bot, nothing is looked
// up.
func TestMentionRulesOfChannels(t *testing.T) {
	r := newRig(t)
	r.mention = func(chat string) channels.Mention {
		return map[string]channels.Mention{
			"CA": channels.MentionAlways, "CT": channels.MentionThreads, "CN": channels.MentionNever, "CX": channels.MentionNowhere, "D1": channels.MentionNowhere,
		}[chat]
	}
	r.Channel = r.newChannel(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	for _, chat := range []string{"CA", "CT", "CN", "CX"} {
		r.server.Say(chat, "U1", chat+" talk")
		root := r.server.Say(chat, "U1", botMention+" "+chat+" call")
		if chat != "CX" {
			waitUntil(t, chat+"'s call", func() bool { return strings.Contains(joinTexts(m.all()), chat+" call") })
		}
		r.server.Reply(chat, root, "U2", chat+" more")
		r.server.Reply(chat, root, "U2", "!stop")
	}
	r.server.Say("D1", "U1", "last")
	waitUntil(t, "acks", allAcknowledged(r))
	waitUntil(t, "the last", func() bool { return strings.Contains(joinTexts(m.all()), "last") })
	var got []string
	for _, in := range m.all() {
		if strings.HasPrefix(in.Text, "/stop") {
			in.Text = in.At.Chat + " stop"
		}
		if !in.Mentioned {
			in.Text += " (overheard)"
		}
		got = append(got, in.Text)
	}
	slices.Sort(got)
	want := []string{
		"CA call", "CA stop (overheard)",
		"CN call", "CN more", "CN stop", "CN talk",
		"CT call", "CT more", "CT stop", "last",
	}
	if !slices.Equal(got, want) {
		t.Errorf("published %q, want %q", got, want)
	}
}
