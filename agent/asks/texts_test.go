package asks_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/agent/asks"
	"parley/bus"
)

// If a channel shows texts of any length, as a terminal does, the request contains the whole of a long call. A chat is
// shown its beginning and end, and a file. People who are only told that others are asked get neither.
func TestALongCallIsShownByTheMeansOfTheChannel(t *testing.T) {
	at := func(channel string) bus.Address { return bus.Address{Channel: channel, Chat: "1"} }
	args, err := json.Marshal(map[string]string{"command": "HEAD " + strings.Repeat("x", 5000) + " MIDDLE " + strings.Repeat("x", 5000) + " TAIL"})
	if err != nil {
		t.Fatal(err)
	}
	v := asks.View{
		Ask: bus.Ask{
			ID: "abcde23456", Kind: bus.AskApproval, Tool: "exec_shell", Arguments: args, Filed: true, Reason: "because **of** this",
			At: at("slack"), Asked: []bus.Address{at("discord"), at("terminal")}, Expires: time.Now(),
		},
		SubAgent: "helper",
		ShowsAll: func(channel string) bool { return channel == "terminal" },
	}
	clean := func(s string) string { return s }
	for channel, want := range map[string]struct{ filed, middle, ends bool }{"discord": {true, false, true}, "terminal": {false, true, true}, "slack": {}} {
		text, buttons := v.Message(at(channel), "/", clean)
		if v.GetsFileAt(at(channel)) != want.filed || strings.Contains(text, "MIDDLE") != want.middle || strings.Contains(text, "HEAD") != want.ends || strings.Contains(text, "TAIL") != want.ends {
			t.Errorf("%s is shown a file %t and %q", channel, v.GetsFileAt(at(channel)), text)
		}
		if strings.Contains(text, "**of**") || want.ends != strings.Contains(text, "`helper`") || want.ends != (len(buttons) == 3) {
			t.Errorf("%s is shown %d buttons and %q", channel, len(buttons), text)
		}
	}
	text, buttons := v.Unshown(at("discord"), "/")
	if len(buttons) != 1 || buttons[0].Says != "/deny abcde23456" || !strings.Contains(text, "can't approve it here") || !strings.Contains(text, "parley approvals approve abcde23456") {
		t.Errorf("without the file: %+v, %q", buttons, text)
	}
	if all, _ := v.Message(at("discord"), "/", clean); strings.Contains(all, "here or in any other chat") {
		t.Errorf("it promises other chats: %q", all)
	}
	if why := asks.RefusalText(bus.ErrNotShown, v.ID, v.Ask, "!"); !strings.Contains(why, "`discord:1`") || !strings.Contains(why, "parley approvals approve abcde23456") || !strings.Contains(why, "`!deny abcde23456`") {
		t.Errorf("who is in a chat that was not asked is told %q", why)
	}
	if file := v.File(); strings.Count(string(file.Data), "MIDDLE") != 2 || !strings.Contains(string(file.Data), "exec_shell") || !strings.HasPrefix(file.Name, "call-abcde23456") {
		t.Errorf("the file %s has %d bytes", file.Name, len(file.Data))
	}
}

// If people press buttons, no commands are shown below the call; otherwise they are.
func TestCommandsAreShownOnlyWithoutButtons(t *testing.T) {
	at := bus.Address{Channel: "slack", Chat: "1"}
	v := asks.View{
		Ask:     bus.Ask{ID: "abcde23456", Kind: bus.AskApproval, Tool: "exec_shell", Arguments: json.RawMessage(`{"command":"git push"}`), Shown: "git push", ShownOf: []string{"command"}, At: at, Expires: time.Now()},
		Presses: func(channel string) bool { return channel == "slack" },
	}
	clean := func(s string) string { return s }
	text, buttons := v.Message(at, "!", clean)
	if !strings.Contains(text, "```\ngit push\n```") || strings.Contains(text, "{") || strings.Contains(text, "!approve") || !strings.Contains(text, "Request `abcde23456`") || len(buttons) != 3 {
		t.Errorf("%d buttons below %q", len(buttons), text)
	}
	v.Reason = strings.Repeat("because ", 300) // so long that a message may be split, without buttons
	if text, _ := v.Message(at, "!", clean); !strings.Contains(text, "`!approve abcde23456`") {
		t.Errorf("below a long text: %q", text)
	}
	v.Reason, v.At.Channel = "", "console"
	if text, _ := v.Message(v.At, "/", clean); !strings.Contains(text, "`/approve abcde23456`") || !strings.Contains(text, "`/deny abcde23456 REASON`") {
		t.Errorf("without buttons: %q", text)
	}
}
