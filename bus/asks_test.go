package bus_test

import (
	"encoding/json"
	"testing"

	"parley/bus"
)

// If an ask names approvers, only they and the owners may answer it.
func TestWhoMayAnswerAnAsk(t *testing.T) {
	people := map[string]bus.Person{
		"owner": {ID: "t:1", Owner: true}, "of the channel": {ID: "t:2", Approver: true}, "of all": {ID: "web:3", EveryApprover: true}, "anybody": {ID: "t:4"},
		"the person": {ID: "t:5"}, "nobody": {},
	}
	at := bus.Address{Channel: "t", Chat: "9"}
	for _, c := range []struct {
		ask bus.Ask
		may []string
	}{
		{bus.Ask{Kind: bus.AskApproval}, []string{"owner", "of the channel", "of all"}},
		{bus.Ask{Kind: bus.AskApproval, Approvers: []string{}}, []string{"owner"}},
		{bus.Ask{Kind: bus.AskApproval, Approvers: []string{"t:4", ""}}, []string{"owner", "anybody"}},
		{bus.Ask{Kind: bus.AskApproval, Approvers: []string{"t:2", "web:3"}}, []string{"owner", "of the channel", "of all"}},
		{bus.Ask{Kind: bus.AskQuestion, Approvers: []string{"t:4"}}, []string{"owner", "the person"}},
	} {
		c.ask.Person, c.ask.At = "t:5", at
		raw, err := json.Marshal(c.ask)
		if err != nil {
			t.Fatal(err)
		}
		var stored bus.Ask
		if err := json.Unmarshal(raw, &stored); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, name := range c.may {
			want[name] = true
		}
		for name, who := range people {
			if got := stored.MayAnswer(who); got != want[name] {
				t.Errorf("%s, approvers %q: %s may answer: %v", c.ask.Kind, c.ask.Approvers, name, got)
			}
		}
	}
}
