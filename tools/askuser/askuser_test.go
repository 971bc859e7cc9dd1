package askuser_test

import (
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/askuser"
)

func ask(args string) (tools.Question, bool, error) {
	return tools.QuestionOf(askuser.New(), tools.Call{Name: "ask_user", Args: []byte(args)})
}

func TestAQuestionIsAsked(t *testing.T) {
	q, asks, err := ask(`{"question":" Which? ","choices":["red","light \n blue"]}`)
	if err != nil || !asks || q.Text != "Which?" || len(q.Choices) != 2 || q.Choices[1] != "light blue" {
		t.Errorf("asked %+v, %v, %v", q, asks, err)
	}
}

func TestWhatCannotBeAskedSaysWhy(t *testing.T) {
	for args, want := range map[string]string{
		`{"question":"  "}`: "empty",
		`{"question":"` + strings.Repeat("x", 5000) + `"}`:                 "at most 4000",
		`{"question":"x","choices":["a",""]}`:                              "a choice is empty",
		`{"question":"x","choices":["` + strings.Repeat("y", 61) + `"]}`:   "at most 60",
		`{"question":"x","choices":["1","2","3","4","5","6","7","8","9"]}`: "at most 8",
	} {
		if _, asks, err := ask(args); !asks || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s gave %v, want %q", args, err, want)
		}
	}
}
