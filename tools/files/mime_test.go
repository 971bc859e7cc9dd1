package files

import "testing"

func TestTypesAreKnownByName(t *testing.T) {
	for name, want := range map[string]string{
		"plan.ts": "text/typescript", "src/App.TSX": "text/typescript", "main.go": "text/x-go", "a/b.json": "application/json", "x.svg": "image/svg+xml",
		"notes": "text/plain", "a.ts/notes": "text/plain", "x.unknown": "text/plain", "": "text/plain",
	} {
		if got := mimeOf(name); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
}
