package server

import (
	"path/filepath"
	"testing"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
)

// What a turn says to those who watch names the turn; what others say does not.
func TestWhatIsSaidNamesItsTurn(t *testing.T) {
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	at := bus.Address{Channel: "console", Chat: "default"}
	news, err := b.Subscribe(t.Context(), bus.SessionFeed("main:console:default"), 0)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{"m_1#reply/0": "m_1", "m_1#reply/12": "m_1", "m_2/0/0": "", "m_1#reply": ""}
	w := streamOnly{events: b}
	for key := range keys {
		if _, err := w.Send(t.Context(), at, channels.Part{Key: key, Text: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	for e, err := range news {
		if err != nil {
			t.Fatal(err)
		}
		turn, known := keys[e.Call]
		if !known || e.Type != bus.Spoken || e.Delta != "hello" || e.Turn != turn {
			t.Errorf("%s said in turn %q, want %q", e.Call, e.Turn, turn)
		}
		if delete(keys, e.Call); len(keys) == 0 {
			return
		}
	}
}
