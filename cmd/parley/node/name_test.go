package node

import "testing"

func TestNameFromHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"pi": "pi", "Living-Room_Pi.local": "living-room-pi", "-x-": "x", "": "node", "日本": "node",
		"a123456789b123456789c123456789-d-and-more": "a123456789b123456789c123456789-d",
	} {
		if got := nameFrom(host); got != want {
			t.Errorf("nameFrom(%q) = %q, want %q", host, got, want)
		}
	}
}
