package web

import "testing"

// A person who approves a request sees it as it is sent, and no line of it can be forged.
func TestARequestIsShownWhole(t *testing.T) {
	t.Parallel()
	got := fetchArgs{URL: "https://a.example/x", Method: "post", Headers: map[string]string{"X-B": "2\nX-C: 3", "X-A": "1"}, Body: "a=1\n"}.shown()
	if want := "POST https://a.example/x\nX-A: 1\nX-B: \"2\\nX-C: 3\"\n\na=1"; got.Text != want || len(got.ShownArgs) != 4 {
		t.Errorf("got %q of %q, want %q", got.Text, got.ShownArgs, want)
	}
	if got := (fetchArgs{URL: "https://a.example/x"}).shown(); got.Text != "GET https://a.example/x" {
		t.Errorf("got %q", got.Text)
	}
}
