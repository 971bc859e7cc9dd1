package telegram_test

import (
	"testing"

	"parley/bus"
)

func TestEditsNameTheEditedMessage(t *testing.T) {
	r := newRig(t)
	m := newMessageRecorder()
	startReceiving(t, r.Channel, m.publish)
	id := r.server.Say(-7, 7, "frist @"+botName)
	r.server.Edit(-7, id, "first @"+botName)
	r.server.Edit(-7, id, "second @"+botName) // both edits happen within the same second
	got := m.wait(t, 3)
	if got[0].Kind != bus.Said || got[0].Of != "" {
		t.Errorf("said %+v", got[0])
	}
	seen := map[string]bool{}
	for i, want := range []string{"first @" + botName, "second @" + botName} {
		in := got[i+1]
		if in.Kind != bus.Edited || in.Of != got[0].ID || in.ID == in.Of || seen[in.ID] || in.Text != want || in.At != got[0].At || in.From.ID != got[0].From.ID {
			t.Errorf("edit %d is %+v", i, in)
		}
		seen[in.ID] = true
	}
}
