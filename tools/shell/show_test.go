package shell

import "testing"

// A program without a shell is shown as one would type it in a shell.
func TestAProgramIsShownAsALine(t *testing.T) {
	t.Parallel()
	got := commandLine([]string{"git", "commit", "-m", "it's done; rm -rf /", "", "--file=a.txt", "a\nb"})
	if want := `git commit -m 'it'\''s done; rm -rf /' '' --file=a.txt 'a` + "\nb'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
