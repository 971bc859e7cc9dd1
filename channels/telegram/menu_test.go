package telegram_test

import (
	"slices"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/telegram/telegramtest"
)

func listCommands(all []telegramtest.Command) string {
	var names []string
	for _, one := range all {
		names = append(names, one.Command)
	}
	return strings.Join(names, " ")
}

func TestTheMenuListsTheCommands(t *testing.T) {
	r := newRig(t)
	r.server.Fail(telegramtest.Fault{Method: "setMyCommands", Times: 1, Act: telegramtest.Drop})
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "the menus", func() bool {
		return listCommands(r.server.Menu("default")) == "new stop status usage undo context compact recall help" && listCommands(r.server.Menu("all_private_chats")) == "new stop status usage undo context compact recall help export memory link forget"
	})
	for _, one := range r.server.Menu("all_private_chats") {
		if in, _ := channels.AsCommand(bus.Inbound{Text: "/" + one.Command}); in.Kind != bus.Command || one.Description == "" {
			t.Errorf("the menu has %+v, which is no command", one)
		}
	}
	calls := r.server.Calls("setMyCommands")
	again := r.newChannel(t, token)
	asked := r.server.Calls("getMyCommands")
	startReceiving(t, again, box.publish)
	waitUntil(t, "the question what is listed", func() bool { return r.server.Calls("getMyCommands") == asked+2 })
	if n := r.server.Calls("setMyCommands"); n != calls {
		t.Errorf("what was listed is set %d times more", n-calls)
	}
}

// If the bot's owner has set a list of commands with BotFather, it stays.
func TestTheOwnersMenuIsNotReplaced(t *testing.T) {
	r := newRig(t)
	own := []telegramtest.Command{{Command: "lunch", Description: "What is there to eat"}}
	r.server.SetMenu("default", own...)
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	waitUntil(t, "the other menu", func() bool { return len(r.server.Menu("all_private_chats")) > 0 })
	if got := r.server.Menu("default"); !slices.Equal(got, own) {
		t.Errorf("the menu is %+v", got)
	}
}

func TestReactions(t *testing.T) {
	r := newRig(t)
	box := newMessageRecorder()
	startReceiving(t, r.Channel, box.publish)
	r.server.Say(5, 5, "hello") // once it has arrived, updates have been requested
	box.wait(t, 1)
	r.server.React(-7, 5, 33, nil, []string{"👍"})
	r.server.React(-7, 5, 33, []string{"👍"}, []string{"👎", "🎉"})
	said := box.wait(t, 5)[1:]
	var got []string
	for _, in := range said {
		if in.Kind != bus.Reacted || in.From.ID != "tg:5" || in.From.Name != "User 5" || !in.Group || in.At != address("-7") || !strings.HasSuffix(in.Of, ":-7:33") || in.SentAt.IsZero() {
			t.Errorf("got %+v", in)
		}
		one := in.Reaction
		if in.Removed {
			one = "no " + one
		}
		got = append(got, one)
	}
	if want := []string{"👍", "no 👍", "👎", "🎉"}; !slices.Equal(got, want) {
		t.Errorf("reactions are %q, want %q", got, want)
	}
	if said[0].ID == said[1].ID {
		t.Error("two reactions have one id")
	}
}
