package discord_test

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/channels/discord"
	"parley/channels/pacing"
)

// The second answer in a chat is sent without waiting, and Discord's limit of five messages in five seconds is
// still kept.
func TestASecondAnswerDoesNotWait(t *testing.T) {
	limits := newChannel(t, discord.Config{Token: token}).Limits()
	synctest.Test(t, func(t *testing.T) {
		p := pacing.New("discord", limits, nil)
		var sent []time.Time
		for len(sent) < 20 {
			if _, err := p.Wait(t.Context(), nil, "100"); err != nil {
				t.Fatal(err)
			}
			sent = append(sent, time.Now())
		}
		if d := sent[1].Sub(sent[0]); d != 0 {
			t.Errorf("the second waited %s", d)
		}
		for i := range sent[5:] {
			if d := sent[i+5].Sub(sent[i]); d < 5*time.Second {
				t.Errorf("six messages from the %dth on were sent within %s", i+1, d)
			}
		}
	})
}
