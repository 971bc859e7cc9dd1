package telegram_test

import (
	"strings"
	"testing"

	"parley/bus"
)

type fields = map[string]any

var bot = fields{"id": 4242, "is_bot": true, "first_name": "Parley", "username": name}

// translated is what publish gets of messages that are posted to a chat.
func translated(t *testing.T, chat int64, posts ...fields) []bus.Inbound {
	t.Helper()
	r := newRig(t)
	for _, p := range posts {
		r.server.Post(chat, 9, p)
	}
	box := newMailbox()
	stop := receive(t, r.Channel, box.publish)
	until(t, "all confirmed", func() bool { return r.server.Unconfirmed() == 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return box.wait(t, 0)
}

func TestAPrivateMessage(t *testing.T) {
	in := translated(t, 5, fields{
		"text": "hello",
		"date": 1700000000,
		"from": fields{"id": 9, "first_name": "An\x1b[31mna\n", "last_name": strings.Repeat("é", 100), "username": "root"},
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

func TestWhoIsMeantInAGroup(t *testing.T) {
	for _, c := range []struct {
		post      fields
		mentioned bool
		text      string
	}{
		{fields{"text": "hello"}, false, "hello"},
		{fields{"text": "@" + name + ", hello"}, true, "hello"},
		{fields{"text": "@PARLEY_test_BOT hello"}, true, "hello"},
		{fields{"text": "hello @" + name + "!"}, true, "hello @" + name + "!"},
		{fields{"text": "@" + name}, true, "@" + name},
		{fields{"text": "@" + name + "2 hello"}, false, "@" + name + "2 hello"},
		{fields{"text": "@other @" + name}, true, "@other @" + name},
		{fields{"text": "mail me@" + name}, false, "mail me@" + name},
		{fields{"text": "é@" + name}, true, "é@" + name},
		{fields{"text": "/status@" + name + " now"}, true, "/status now"},
		{fields{"text": "/status@other_bot @" + name}, false, "/status@other_bot @" + name},
		{fields{"text": "/status@other_bot", "reply_to_message": fields{"message_id": 1, "from": bot}}, false, "/status@other_bot"},
		{fields{"text": "/status"}, false, "/status"},
		{fields{"text": "and?", "reply_to_message": fields{"message_id": 1, "from": bot}}, true, "and?"},
		{fields{"text": "and?", "reply_to_message": fields{"message_id": 1, "from": fields{"id": 8}}}, false, "and?"},
		{fields{"text": "new", "reply_to_message": fields{"message_id": 1, "from": bot, "forum_topic_created": fields{"name": "x"}}}, false, "new"},
		{fields{"text": "Parley!", "entities": []any{fields{"type": "text_mention", "offset": 0, "length": 6, "user": bot}}}, true, "Parley!"},
		{fields{"photo": []any{fields{"file_id": "x"}}, "caption": "@" + name + " what is it?"}, true, "[photo] what is it?"},
	} {
		in := translated(t, -7, c.post)[0]
		if in.Mentioned != c.mentioned || in.Text != c.text || !in.Group || in.ReplyTo != "1" {
			t.Errorf("%v: mentioned %t, text %q, group %t, reply to %q", c.post, in.Mentioned, in.Text, in.Group, in.ReplyTo)
		}
	}
}

func TestACommandOfAPrivateChat(t *testing.T) {
	said := translated(t, 5, fields{"text": "/start@" + name + " CODE"}, fields{"text": "mail a@b.c"})
	if said[0].Text != "/start CODE" || said[1].Text != "mail a@b.c" || !said[1].Mentioned {
		t.Errorf("got %+v", said)
	}
}

func TestThreads(t *testing.T) {
	said := translated(t, -7,
		fields{"text": "topic", "message_thread_id": 33, "is_topic_message": true},
		fields{"text": "general", "message_thread_id": 1, "is_topic_message": true},
		fields{"text": "a chain of replies", "message_thread_id": 44},
	)
	for i, want := range []string{"33", "", ""} {
		if said[i].At.Thread != want {
			t.Errorf("%s: thread %q, want %q", said[i].Text, said[i].At.Thread, want)
		}
	}
}

func TestMessagesWithoutText(t *testing.T) {
	kinds := []struct {
		post fields
		text string
	}{
		{fields{"photo": []any{fields{"file_id": "x"}}}, "[photo]"},
		{fields{"sticker": fields{"emoji": "🙂"}}, "[sticker 🙂]"},
		{fields{"voice": fields{}}, "[voice message]"},
		{fields{"document": fields{"file_name": "a\nb.pdf"}, "caption": "read it"}, "[file: a b.pdf] read it"},
		{fields{"animation": fields{}, "document": fields{"file_name": "x.mp4"}}, "[animation]"},
		{fields{"location": fields{"latitude": 1.5, "longitude": 2}, "venue": fields{"title": "Café", "address": "1 Main St", "location": fields{"latitude": 1.5, "longitude": 2}}}, "[venue: Café, 1 Main St, 1.50000, 2.00000]"},
		{fields{"location": fields{"latitude": 1.5, "longitude": 2}}, "[location 1.50000, 2.00000]"},
		{fields{"contact": fields{}}, "[contact]"},
		{fields{"contact": fields{"first_name": "Ann", "last_name": "Lee\n", "phone_number": "+43 1 234"}}, "[contact: Ann Lee, +43 1 234]"},
		{fields{"dice": fields{"value": 4}}, "[dice: 4]"},
	}
	posts := make([]fields, 0, len(kinds))
	for _, k := range kinds {
		posts = append(posts, k.post)
	}
	said := translated(t, 5, posts...)
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
	said := translated(t, -7,
		fields{"new_chat_members": []any{bot}},
		fields{"left_chat_member": fields{"id": 3}},
		fields{"pinned_message": fields{"message_id": 1, "date": 5, "chat": fields{"id": -7}}},
		fields{"text": "from a bot", "from": fields{"id": 8, "is_bot": true}},
		fields{"text": "from nobody", "from": nil},
		fields{"text": "from the channel", "is_automatic_forward": true},
		fields{"text": "from a person"},
	)
	if len(said) != 1 || said[0].Text != "from a person" {
		t.Errorf("got %+v", said)
	}
}
