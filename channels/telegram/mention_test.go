package telegram_test

import (
	"strings"
	"testing"

	"parley/channels"
)

func TestMentionRulesOfGroups(t *testing.T) {
	r := newRig(t)
	r.mention = func(chat string) channels.Mention {
		return map[string]channels.Mention{
			"-1": channels.MentionAlways, "-2": channels.MentionThreads, "-3": channels.MentionNever, "-4": channels.MentionNowhere,
		}[chat]
	}
	r.Channel = r.newChannel(t, token)
	for chat := int64(-4); chat < 0; chat++ {
		r.server.Post(chat, 9, messageFields{"text": "talk"})
		r.server.Post(chat, 9, messageFields{"text": "@" + botName + " call"})
		r.server.Post(chat, 9, messageFields{"text": "answer", "reply_to_message": messageFields{"message_id": 1, "from": botUser}})
		r.server.Post(chat, 9, messageFields{"text": "/other@other_bot"})
		r.server.Post(chat, 9, messageFields{"text": "passed on", "forward_origin": messageFields{"type": "hidden_user", "sender_user_name": "X", "date": 1}})
	}
	box := newMessageRecorder()
	stop := startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "all confirmed", func() bool { return r.server.Unconfirmed() == 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	meant := map[string]string{}
	for _, in := range box.wait(t, 0) {
		if in.Mentioned {
			said := in.Text
			if said == "" {
				said = in.Quotes[0].Text
			}
			meant[in.At.Chat] = strings.TrimPrefix(meant[in.At.Chat]+"|"+said, "|")
		}
		if in.At.Chat == "-4" {
			t.Errorf("of a chat in which the bot does not listen there is %+v", in)
		}
	}
	for chat, want := range map[string]string{"-1": "call|answer", "-2": "call|answer", "-3": "talk|call|answer|passed on"} {
		if meant[chat] != want {
			t.Errorf("in %s %q is meant, want %q", chat, meant[chat], want)
		}
	}
}
