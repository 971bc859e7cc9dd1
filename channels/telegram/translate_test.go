package telegram_test

import (
	"strings"
	"testing"

	"parley/bus"
)

type messageFields = map[string]any

var botUser = messageFields{"id": 4242, "is_bot": true, "first_name": "Parley", "username": botName}

// translateMessages posts messages to a chat, and returns what is published for them.
func translateMessages(t *testing.T, chat int64, posts ...messageFields) []bus.Inbound {
	t.Helper()
	r := newRig(t)
	for _, p := range posts {
		r.server.Post(chat, 9, p)
	}
	box := newMessageRecorder()
	stop := startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "all confirmed", func() bool { return r.server.Unconfirmed() == 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return box.wait(t, 0)
}

func TestAPrivateMessage(t *testing.T) {
	in := translateMessages(t, 5, messageFields{
		"text": "hello",
		"date": 1700000000,
		"from": messageFields{"id": 9, "first_name": "An\x1b[31mna\n", "last_name": strings.Repeat("é", 100), "username": "root"},
	})[0]
	if in.ID != "tg:4242:5:1" || in.Kind != bus.Said || in.At != (bus.Address{Channel: "tg", Chat: "5"}) ||
		in.Group || !in.Mentioned || in.Text != "hello" || in.ReplyTo != "" || in.SentAt.Unix() != 1700000000 {
		t.Errorf("got %+v", in)
	}
	if in.From.ID != "tg:9" || in.From.Owner {
		t.Errorf("from %+v", in.From)
	}
	if n := []rune(in.From.Name); len(n) != 64 || strings.ContainsAny(in.From.Name, "\x1b\n") {
		t.Errorf("name %q", in.From.Name)
	}
}

func TestMentionsInAGroup(t *testing.T) {
	for _, c := range []struct {
		post      messageFields
		mentioned bool
		text      string
	}{
		{messageFields{"text": "hello"}, false, "hello"},
		{messageFields{"text": "@" + botName + ", hello"}, true, "hello"},
		{messageFields{"text": "@PARLEY_test_BOT hello"}, true, "hello"},
		{messageFields{"text": "hello @" + botName + "!"}, true, "hello @" + botName + "!"},
		{messageFields{"text": "@" + botName}, true, "@" + botName},
		{messageFields{"text": "@" + botName + "2 hello"}, false, "@" + botName + "2 hello"},
		{messageFields{"text": "@other @" + botName}, true, "@other @" + botName},
		{messageFields{"text": "mail me@" + botName}, false, "mail me@" + botName},
		{messageFields{"text": "é@" + botName}, true, "é@" + botName},
		{messageFields{"text": "/status@" + botName + " now"}, true, "/status now"},
		{messageFields{"text": "/status@other_bot @" + botName}, false, "/status@other_bot @" + botName},
		{messageFields{"text": "/status@other_bot", "reply_to_message": messageFields{"message_id": 1, "from": botUser}}, false, "/status@other_bot"},
		{messageFields{"text": "/status"}, false, "/status"},
		{messageFields{"text": "and?", "reply_to_message": messageFields{"message_id": 1, "from": botUser}}, true, "and?"},
		{messageFields{"text": "and?", "reply_to_message": messageFields{"message_id": 1, "from": messageFields{"id": 8}}}, false, "and?"},
		{messageFields{"text": "new", "reply_to_message": messageFields{"message_id": 1, "from": botUser, "forum_topic_created": messageFields{"name": "x"}}}, false, "new"},
		{messageFields{"text": "Parley!", "entities": []any{messageFields{"type": "text_mention", "offset": 0, "length": 6, "user": botUser}}}, true, "Parley!"},
		{messageFields{"photo": []any{messageFields{"file_id": "x"}}, "caption": "@" + botName + " what is it?"}, true, "[photo] what is it?"},
	} {
		in := translateMessages(t, -7, c.post)[0]
		if in.Mentioned != c.mentioned || in.Text != c.text || !in.Group || in.ReplyTo != "1" {
			t.Errorf("%v: mentioned %t, text %q, group %t, reply to %q", c.post, in.Mentioned, in.Text, in.Group, in.ReplyTo)
		}
	}
}

func TestACommandInAPrivateChat(t *testing.T) {
	said := translateMessages(t, 5, messageFields{"text": "/start@" + botName + " CODE"}, messageFields{"text": "mail a@b.c"})
	if said[0].Text != "/start CODE" || said[1].Text != "mail a@b.c" || !said[1].Mentioned {
		t.Errorf("got %+v", said)
	}
}

func TestThreads(t *testing.T) {
	said := translateMessages(t, -7,
		messageFields{"text": "topic", "message_thread_id": 33, "is_topic_message": true},
		messageFields{"text": "general", "message_thread_id": 1, "is_topic_message": true},
		messageFields{"text": "a chain of replies", "message_thread_id": 44},
	)
	for i, want := range []string{"33", "", ""} {
		if said[i].At.Thread != want {
			t.Errorf("%s: thread %q, want %q", said[i].Text, said[i].At.Thread, want)
		}
	}
}

func TestMessagesWithoutText(t *testing.T) {
	kinds := []struct {
		post messageFields
		text string
	}{
		{messageFields{"photo": []any{messageFields{"file_id": "x"}}}, "[photo]"},
		{messageFields{"sticker": messageFields{"emoji": "🙂"}}, "[sticker 🙂]"},
		{messageFields{"voice": messageFields{}}, "[voice message]"},
		{messageFields{"document": messageFields{"file_name": "a\nb.pdf"}, "caption": "read it"}, "[file: a b.pdf] read it"},
		{messageFields{"animation": messageFields{}, "document": messageFields{"file_name": "x.mp4"}}, "[animation]"},
		{messageFields{"location": messageFields{"latitude": 1.5, "longitude": 2}, "venue": messageFields{"title": "Café", "address": "1 Main St", "location": messageFields{"latitude": 1.5, "longitude": 2}}}, "[venue: Café, 1 Main St, 1.50000, 2.00000]"},
		{messageFields{"location": messageFields{"latitude": 1.5, "longitude": 2}}, "[location 1.50000, 2.00000]"},
		{messageFields{"contact": messageFields{}}, "[contact]"},
		{messageFields{"contact": messageFields{"first_name": "Ann", "last_name": "Lee\n", "phone_number": "+43 1 234"}}, "[contact: Ann Lee, +43 1 234]"},
		{messageFields{"dice": messageFields{"value": 4}}, "[dice: 4]"},
	}
	posts := make([]messageFields, 0, len(kinds))
	for _, k := range kinds {
		posts = append(posts, k.post)
	}
	said := translateMessages(t, 5, posts...)
	if len(said) != len(kinds) {
		t.Fatalf("%d of %d arrived", len(said), len(kinds))
	}
	for i, k := range kinds {
		if said[i].Text != k.text {
			t.Errorf("got %q, want %q", said[i].Text, k.text)
		}
	}
}

func TestServiceMessagesAndBotsAreSkipped(t *testing.T) {
	said := translateMessages(t, -7,
		messageFields{"new_chat_members": []any{botUser}},
		messageFields{"left_chat_member": messageFields{"id": 3}},
		messageFields{"pinned_message": messageFields{"message_id": 1, "date": 5, "chat": messageFields{"id": -7}}},
		messageFields{"text": "from a bot", "from": messageFields{"id": 8, "is_bot": true}},
		messageFields{"text": "from nobody", "from": nil},
		messageFields{"text": "from the channel", "is_automatic_forward": true},
		messageFields{"text": "from a person"},
	)
	if len(said) != 1 || said[0].Text != "from a person" {
		t.Errorf("got %+v", said)
	}
}
