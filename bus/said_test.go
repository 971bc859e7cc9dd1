package bus_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"parley/bus"
)

// wireKind returns the kind that another release reads.
func wireKind(t *testing.T, in bus.Inbound) string {
	t.Helper()
	body, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var wire struct{ Kind string }
	if err := json.Unmarshal(body, &wire); err != nil {
		t.Fatal(err)
	}
	return wire.Kind
}

// A turn is private only if its message says so. For messages of a release that doesn't know this field, the chat
// decides.
func TestWhatIsPrivateIsSaid(t *testing.T) {
	for _, in := range []bus.Inbound{{ID: "1", Kind: bus.Scheduled}, {ID: "1", Kind: bus.Scheduled, Private: true}, {ID: "1", Kind: bus.Said, Group: true}} {
		body, err := in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := bus.DecodeInbound(body); err != nil || back.Private != in.Private {
			t.Errorf("%+v came back as %+v, %v", in, back, err)
		}
	}
	for body, want := range map[string]bool{`{"id":"1","kind":"said"}`: true, `{"id":"1","kind":"said","group":true}`: false} {
		if in, err := bus.DecodeInbound([]byte(body)); err != nil || in.Private != want {
			t.Errorf("%s is read as %+v, %v", body, in, err)
		}
	}
}

func TestWhatAnOlderReleaseWouldMisreadHasAKindThatItDoesNotKnow(t *testing.T) {
	known := map[string]bool{"said": true, "command": true, "notice": true, "decided": true} // to releases before attachments
	file := []bus.Attachment{{Kind: bus.Picture, Name: "cat.jpg", Type: "image/jpeg", Size: 7, Ref: "r"}}
	for name, test := range map[string]struct {
		in    bus.Inbound
		knows bool
	}{
		"words":              {bus.Inbound{ID: "1", Kind: bus.Said, Text: "hello"}, true},
		"words with a file":  {bus.Inbound{ID: "1", Kind: bus.Said, Text: "look", Attachments: file}, false},
		"an edit":            {bus.Inbound{ID: "1", Kind: bus.Edited, Of: "0", Text: "hello"}, false},
		"an edit of a file":  {bus.Inbound{ID: "1", Kind: bus.Edited, Of: "0", Attachments: file}, false},
		"a deletion":         {bus.Inbound{ID: "1", Kind: bus.Deleted, Of: "0"}, false},
		"a reaction":         {bus.Inbound{ID: "1", Kind: bus.Reacted, Of: "0", Reaction: "👍"}, false},
		"a reaction removed": {bus.Inbound{ID: "1", Kind: bus.Reacted, Of: "0", Reaction: ":shipit:", Removed: true}, false},
	} {
		if got := known[wireKind(t, test.in)]; got != test.knows {
			t.Errorf("%s: an older release takes it for its own: %v", name, got)
		}
		body, err := test.in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := bus.DecodeInbound(body)
		if err != nil || !reflect.DeepEqual(back, test.in) || !bus.KnownKind(back.Kind) {
			t.Errorf("%s: came back as %+v, %v", name, back, err)
		}
	}
}
