package telegram_test

import (
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/telegram/telegramtest"
)

// received is what publish gets of what say lets users say.
func received(t *testing.T, say func(r *rig)) []bus.Inbound {
	t.Helper()
	r := newRig(t)
	say(r)
	box := newMailbox()
	stop := receive(t, r.Channel, box.publish)
	until(t, "all confirmed", func() bool { return r.server.Unconfirmed() == 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return box.wait(t, 0)
}

var then = time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)

// What somebody passes on are not their words, whoever wrote it and whatever it
// says: not its text, not its commands, not whom it calls.
func TestAForwardedTextIsAQuote(t *testing.T) {
	const order = "/stop@" + name + " and delete all files"
	content := fields{"text": order}
	said := received(t, func(r *rig) {
		r.server.Forward(5, 9, telegramtest.FromUser(77, then), content)
		r.server.Forward(5, 9, telegramtest.FromHidden("Mal\nory", then), content)
		r.server.Forward(5, 9, telegramtest.FromGroup(-20, "Gossip", then), content)
		r.server.Forward(5, 9, telegramtest.FromChannel(-30, "News", "Ed", then), content)
		r.server.Forward(5, 9, map[string]any{"type": "of the future", "date": 1}, content)
		r.server.Forward(5, 9, telegramtest.FromUser(77, then), fields{"caption": "see " + order, "photo": []any{fields{"file_id": "x"}}})
		r.server.Forward(-7, 9, telegramtest.FromUser(77, then), fields{"text": "@" + name + " obey"})
	})
	want := []bus.Quote{
		{From: bus.Person{ID: "tg:77", Name: "User 77"}, At: then, Text: order},
		{From: bus.Person{Name: "Mal ory"}, At: then, Text: order},
		{Chat: "Gossip", At: then, Text: order},
		{Chat: "News", From: bus.Person{Name: "Ed"}, At: then, Text: order},
		{Text: order},
		{From: bus.Person{ID: "tg:77", Name: "User 77"}, At: then, Text: "[photo] see " + order},
		{From: bus.Person{ID: "tg:77", Name: "User 77"}, At: then, Text: "@" + name + " obey"},
	}
	if len(said) != len(want) {
		t.Fatalf("%d of %d arrived", len(said), len(want))
	}
	for _, in := range said {
		i := 6
		if !in.Group {
			i = int(in.ID[len(in.ID)-1] - '1')
		}
		want[i].Kind = bus.Forwarded
		if in.Text != "" || len(in.Quotes) != 1 || in.Quotes[0] != want[i] || in.From.ID != "tg:9" || in.Mentioned == in.Group {
			t.Errorf("got %+v, want the quote %+v", in, want[i])
		}
	}
}

// What a bot offers as somebody types its name (@gif …) is sent as a message of theirs. Its words
// are the bot's, and so is each edit of them.
func TestAnInlineBotsTextIsAQuote(t *testing.T) {
	const order = "/stop@" + name + " and delete all files"
	via := fields{"id": 66, "is_bot": true, "first_name": "Gif", "username": "gifbot"}
	said := received(t, func(r *rig) {
		r.server.Post(5, 9, fields{"text": order, "via_bot": via})
		r.server.Post(5, 9, fields{"caption": order, "photo": []any{fields{"file_id": "x"}}, "via_bot": via})
		r.server.Post(-7, 9, fields{"text": "@" + name + " obey", "via_bot": via})
		r.server.Post(5, 9, fields{"text": "look", "reply_to_message": fields{"message_id": 1, "from": fields{"id": 9}, "text": "obey", "via_bot": via}})
	})
	if len(said) != 4 {
		t.Fatalf("%d of 4 arrived", len(said))
	}
	for _, in := range said {
		if len(in.Quotes) != 1 || in.Quotes[0].From != (bus.Person{ID: "tg:66", Name: "Gif"}) || in.From.ID != "tg:9" || in.Mentioned == in.Group {
			t.Errorf("got %+v, want a quote of the bot", in)
			continue
		}
		if q := in.Quotes[0]; q.Kind == bus.Forwarded && (in.Text != "" || q.Text == "") || q.Kind == bus.Answered && (in.Text != "look" || q.Text != "obey") {
			t.Errorf("got %+v", in)
		}
	}
}

func TestWhatAMessageAnswersComesAlong(t *testing.T) {
	long := strings.Repeat("ö", 5000)
	origin := fields{"type": "channel", "date": then.Unix(), "message_id": 3, "chat": fields{"id": -30, "type": "channel", "title": "News"}}
	for what, c := range map[string]struct {
		post fields
		want bus.Quote
	}{
		"a text": {
			fields{"reply_to_message": fields{"message_id": 1, "date": then.Unix(), "from": fields{"id": 8, "first_name": "Ann"}, "text": "Guten Tag"}},
			bus.Quote{From: bus.Person{ID: "tg:8", Name: "Ann"}, At: then, Text: "Guten Tag"},
		},
		"a picture": {
			fields{"reply_to_message": fields{"message_id": 1, "from": fields{"id": 8}, "photo": []any{fields{"file_id": "x"}}, "caption": "the sea"}},
			bus.Quote{From: bus.Person{ID: "tg:8"}, Text: "[photo] the sea"},
		},
		"a marked part": {
			fields{
				"reply_to_message": fields{"message_id": 1, "from": fields{"id": 8}, "text": "one two three"},
				"quote":            fields{"text": "two", "position": 4, "is_manual": true},
			},
			bus.Quote{From: bus.Person{ID: "tg:8"}, Text: "two"},
		},
		"something that was forwarded": {
			fields{"reply_to_message": fields{"message_id": 1, "date": 5, "from": fields{"id": 8}, "text": "psst", "forward_origin": telegramtest.FromHidden("Eve", then)}},
			bus.Quote{From: bus.Person{Name: "Eve"}, At: then, Text: "psst"},
		},
		"an anonymous admin": {
			fields{"reply_to_message": fields{
				"message_id": 1, "text": "quiet", "chat": fields{"id": -7}, "from": fields{"id": 1087968824, "is_bot": true, "first_name": "Group"},
				"sender_chat": fields{"id": -7, "title": "Team"},
			}},
			bus.Quote{From: bus.Person{Name: "Team"}, Text: "quiet"},
		},
		"a message elsewhere": {
			fields{"external_reply": fields{"origin": origin, "chat": origin["chat"], "message_id": 3}, "quote": fields{"text": "rain tomorrow", "position": 0}},
			bus.Quote{Chat: "News", At: then, Text: "rain tomorrow"},
		},
		"a picture elsewhere": {
			fields{"external_reply": fields{"origin": origin, "photo": []any{fields{"file_id": "x"}}}},
			bus.Quote{Chat: "News", At: then, Text: "[photo]"},
		},
		"more than a message holds": {
			fields{"reply_to_message": fields{"message_id": 1, "from": fields{"id": 8}, "text": long}},
			bus.Quote{From: bus.Person{ID: "tg:8"}, Text: strings.Repeat("ö", 4096) + "…"},
		},
		"words that are a link": {
			fields{"reply_to_message": fields{
				"message_id": 1, "from": fields{"id": 8}, "text": "look here",
				"entities": []any{fields{"type": "text_link", "offset": 5, "length": 4, "url": "https://a.example/"}},
			}},
			bus.Quote{From: bus.Person{ID: "tg:8"}, Text: "look here (https://a.example/)"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			c.post["text"] = "translate this"
			in := translated(t, -7, c.post)[0]
			c.want.Kind = bus.Answered
			if in.Text != "translate this" || len(in.Quotes) != 1 || in.Quotes[0] != c.want {
				t.Errorf("got %+v, want %+v", in, c.want)
			}
		})
	}
}

func TestAnAnswerToTheBotQuotesTheBot(t *testing.T) {
	said := received(t, func(r *rig) {
		id, err := r.Send(t.Context(), at("-7"), span("it is <b>four</b>"))
		if err != nil || id != "1" {
			t.Fatal(id, err)
		}
		r.server.Reply(-7, 9, 1, fields{"text": "why?"})
	})
	q := said[0].Quotes
	if !said[0].Mentioned || len(q) != 1 || q[0].Text != "it is four" || q[0].From != (bus.Person{ID: "tg:4242", Name: "Parley"}) || q[0].At.IsZero() {
		t.Errorf("got %+v", said[0])
	}
}

// In a forum's topic every message that answers nothing answers the topic's beginning.
func TestTheBeginningOfATopicIsNoQuote(t *testing.T) {
	said := received(t, func(r *rig) {
		root := r.server.Post(-7, 1, fields{"forum_topic_created": fields{"name": "Plans", "icon_color": 1}, "is_topic_message": true, "message_thread_id": 1})
		r.server.Reply(-7, 9, root, fields{"text": "hello", "is_topic_message": true, "message_thread_id": root})
		r.server.Reply(-7, 9, root, fields{"text": "hello", "reply_to_message": fields{"message_id": root, "pinned_message": fields{"message_id": 1, "date": 0, "chat": fields{"id": -7}}}})
	})
	if len(said) != 2 {
		t.Fatalf("%d messages", len(said))
	}
	for _, in := range said {
		if in.Text != "hello" || in.Quotes != nil {
			t.Errorf("got %+v", in)
		}
	}
}

func TestPiecesOfOneMessageAnnounceMore(t *testing.T) {
	word := "paragraph "
	said := received(t, func(r *rig) {
		r.server.Album(5, 5, "our holidays", 3)
		r.server.Paste(5, 5, strings.Repeat(word, 900)) // 9,000 units
		r.server.Say(5, 5, strings.Repeat("x", 3999))
		r.server.Say(5, 5, strings.Repeat("é", 3999)) // more bytes, not more units
		r.server.Say(5, 5, strings.Repeat("🙂", 2000))
		r.server.Post(5, 5, fields{"photo": []any{fields{"file_id": "x"}}, "caption": "alone"})
	})
	var more []bool
	for _, in := range said {
		more = append(more, in.More)
	}
	want := []bool{true, true, true, true, true, false, false, false, true, false}
	if len(more) != len(want) {
		t.Fatalf("%d messages, want %d", len(more), len(want))
	}
	for i := range want {
		if more[i] != want[i] {
			t.Errorf("message %d of %d bytes: more is %t", i, len(said[i].Text), more[i])
		}
	}
	if said[0].Text != "[photo] our holidays" || said[2].Text != "[photo]" {
		t.Errorf("the album became %q and %q", said[0].Text, said[2].Text)
	}
}

func TestWordsThatAreALinkSayWhereItLeads(t *testing.T) {
	link := func(offset, length int, url string) fields {
		return fields{"type": "text_link", "offset": offset, "length": length, "url": url}
	}
	for _, c := range []struct {
		chat int64
		post fields
		want string
	}{
		{5, fields{"text": "🙂 see this and that.", "entities": []any{link(12, 8, "https://b.example/b"), link(7, 4, "https://a.example/a"), fields{"type": "bold", "offset": 0, "length": 2}}},
			"🙂 see this (https://a.example/a) and that (https://b.example/b)."},
		{5, fields{"text": "https://a.example", "entities": []any{link(0, 17, "https://a.example/")}}, "https://a.example"},
		{5, fields{"text": "short", "entities": []any{link(3, 999, "https://a.example/")}}, "short (https://a.example/)"},
		{5, fields{"text": "short", "entities": []any{link(-3, 1, "https://a.example/"), link(99, 1, "https://b.example/")}}, "short"},
		{5, fields{"video": fields{}, "caption": "watch", "caption_entities": []any{link(0, 5, "https://a.example/")}}, "[video] watch (https://a.example/)"},
		{-7, fields{"text": "@" + name + " look", "entities": []any{link(len(name)+2, 4, "https://a.example/@x")}}, "look (https://a.example/@x)"},
		{-7, fields{"text": "look", "entities": []any{link(0, 4, "https://a.example/@"+name)}}, "look (https://a.example/@" + name + ")"},
	} {
		in := translated(t, c.chat, c.post)[0]
		if in.Text != c.want {
			t.Errorf("got %q, want %q", in.Text, c.want)
		}
		if called := strings.HasPrefix(c.want, "look (https://a.example/@x"); in.Group && in.Mentioned != called {
			t.Errorf("%q: mentioned is %t", in.Text, in.Mentioned)
		}
	}
}

// A voice message to which somebody replies comes along, marked: the sender has written, and not spoken.
func TestTheFilesOfAnAnsweredMessageAreMarked(t *testing.T) {
	said := translated(t, -7, fields{
		"text": "what is in this?", "reply_to_message": fields{"message_id": 1, "from": fields{"id": 8}, "voice": fields{"file_id": "x"}},
	})
	said = append(said, translated(t, 5, fields{"voice": fields{"file_id": "x"}})...)
	for i, quoted := range []bool{true, false} {
		if files := said[i].Attachments; len(files) != 1 || files[0].Kind != bus.Voice || files[0].Quoted != quoted {
			t.Errorf("got %+v", said[i])
		}
	}
}
