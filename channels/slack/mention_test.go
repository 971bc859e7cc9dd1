package slack_test

import (
	"slices"
	"strings"
	"testing"

	"parley/channels"
)

// Each chat has a rule of its own. What is not meant for the bot is looked up nowhere.
func TestWhatIsMeantForTheBotInAChannel(t *testing.T) {
	r := newRig(t)
	r.mention = func(chat string) channels.Mention {
		return map[string]channels.Mention{
			"CA": channels.MentionAlways, "CT": channels.MentionThreads, "CN": channels.MentionNever, "CX": channels.MentionNowhere, "D1": channels.MentionNowhere,
		}[chat]
	}
	r.Channel = r.channel(t)
	m := newMailbox(r)
	connected(t, r, m.publish)
	for _, chat := range []string{"CA", "CT", "CN", "CX"} {
		r.server.Say(chat, "U1", chat+" talk")
		root := r.server.Say(chat, "U1", called+" "+chat+" call")
		if chat != "CX" {
			until(t, chat+"'s call", func() bool { return strings.Contains(texts(m.all()), chat+" call") })
		}
		r.server.Reply(chat, root, "U2", chat+" more")
		r.server.Reply(chat, root, "U2", "!stop")
	}
	r.server.Say("D1", "U1", "last")
	until(t, "acks", acked(r))
	until(t, "the last", func() bool { return strings.Contains(texts(m.all()), "last") })
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
