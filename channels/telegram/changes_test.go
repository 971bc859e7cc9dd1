package telegram_test

import (
	"testing"

	"parley/bus"
)

func TestEditsNameWhatTheyChange(t *testing.T) {
	r := newRig(t)
	m := newMailbox()
	receive(t, r.Channel, m.publish)
	id := r.server.Say(-7, 7, "frist @"+name)
	r.server.Edit(-7, id, "first @"+name)
	r.server.Edit(-7, id, "second @"+name) // within the same second
	got := m.wait(t, 3)
	if got[0].Kind != bus.Said || got[0].Of != "" {
		t.Errorf("said %+v", got[0])
	}
	seen := map[string]bool{}
	for i, want := range []string{"first @" + name, "second @" + name} {
		in := got[i+1]
		if in.Kind != bus.Edited || in.Of != got[0].ID || in.ID == in.Of || seen[in.ID] || in.Text != want || in.At != got[0].At || in.From.ID != got[0].From.ID {
			t.Errorf("edit %d is %+v", i, in)
		}
		seen[in.ID] = true
	}
}
