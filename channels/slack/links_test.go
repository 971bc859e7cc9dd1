package slack_test

import (
	"strings"
	"testing"

	"parley/channels"
)

func TestMessagesHaveAddressesInTheirWorkspace(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder(r)
	startConnected(t, r, m.publish)
	root := r.server.Say("C1", "U1", botMention+" hello")
	reply := r.server.Reply("C1", root, "U1", botMention+" hello again")
	direct := r.server.Say("D1", "U1", "hello")
	plain := func(chat, ts string) string {
		return "https://team.slack.com/archives/" + chat + "/p" + strings.ReplaceAll(ts, ".", "")
	}
	want := map[string]string{root: plain("C1", root), reply: plain("C1", reply) + "?cid=C1&thread_ts=" + root, direct: plain("D1", direct)}
	fresh := r.newChannel(t) // as in a process that receives nothing
	asked := r.server.Calls("auth.test")
	all := m.wait(t, 3)
	for _, in := range all {
		for _, c := range []channels.Channel{r.Channel, fresh} {
			if got, err := channels.LinkTo(t.Context(), c, in.At, in.ID); err != nil || got != want[in.ReplyTo] {
				t.Errorf("%s is at %q, %v, want %q", in.ID, got, err, want[in.ReplyTo])
			}
		}
	}
	if n := r.server.Calls("auth.test") - asked; n != 1 {
		t.Errorf("Slack was asked %d times", n)
	}
	for _, other := range []string{"", "slack", "tg:1:2:3", all[0].ID + "#told", strings.Replace(all[0].ID, "slack:", "slack:other", 1), all[0].ID + ":up"} {
		if got, err := channels.LinkTo(t.Context(), r.Channel, all[0].At, other); err != nil || got != "" {
			t.Errorf("%q is at %q, %v", other, got, err)
		}
	}
	_ = r.server.Close()
	if got, err := channels.LinkTo(t.Context(), r.newChannel(t), all[0].At, all[0].ID); err == nil || got != "" {
		t.Errorf("while Slack is away, a process that has not asked says %q, %v", got, err)
	}
	if got, err := channels.LinkTo(t.Context(), fresh, all[0].At, all[0].ID); err != nil || got == "" {
		t.Errorf("while Slack is away, one that has asked says %q, %v", got, err)
	}
}
