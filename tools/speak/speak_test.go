package speak_test

import (
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/speak"
)

// A room has people who listen, or a reason why they can't.
type room string

func (r room) Deaf(tools.Call) string { return string(r) }

func (room) Words(text string) (string, bool) {
	text = strings.Trim(text, "`")
	return text[:min(len(text), 100)], len(text) <= 100
}

func say(t *testing.T, in room, args string) (string, error) {
	t.Helper()
	got, err := speak.New(in).Run(t.Context(), tools.Call{Name: speak.Name, Args: []byte(args)})
	return string(got.Content), err
}

func TestWhatIsMarkedIsSaid(t *testing.T) {
	for args, want := range map[string]string{
		`{}`:                      "your answer",
		`{"text":"  "}`:           "your answer",
		`{"text":"Hello there."}`: "this text",
	} {
		if got, err := say(t, "", args); err != nil || !strings.Contains(got, want) {
			t.Errorf("%.40s gave %s, %v, want %q", args, got, err, want)
		}
	}
}

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	for _, c := range []struct {
		in         room
		args, want string
	}{
		{"this channel takes no files", `{}`, "this channel takes no files"},
		{"", "{\"text\":\"``\"}", "nothing in this text"},
		{"", `{"text":"` + strings.Repeat("x", 101) + `"}`, "too long"},
	} {
		if got, err := say(t, c.in, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s gave %s, %v, want %q", c.args, got, err, c.want)
		}
	}
}

func TestMarked(t *testing.T) {
	for args, want := range map[string]string{`{"text":" Hello. "}`: "Hello.", `{}`: "", `[]`: "", ``: ""} {
		if got := speak.Marked([]byte(args)); got != want {
			t.Errorf("%s marks %q, want %q", args, got, want)
		}
	}
}
