package bus_test

import (
	"bytes"
	"testing"

	"parley/bus"
)

// Encoding a message again yields the same body.
func TestAMessageIsEncodedInOneWay(t *testing.T) {
	out := bus.Outbound{ID: "m", Files: []bus.FileRef{{Name: "a"}}, Otherwise: &bus.Otherwise{Unsent: "f"}}
	first, err := out.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if again, err := out.Encode(); err != nil || !bytes.Equal(again, first) {
			t.Fatalf("it became %s, %v; before %s", again, err, first)
		}
	}
}
