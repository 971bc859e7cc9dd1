package changes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"parley/tools"
	"parley/tools/changes"
)

func ask(t *testing.T, all []changes.Turn, failed error, args string) (changes.List, error) {
	t.Helper()
	tool := changes.New(func(context.Context, tools.Call) ([]changes.Turn, error) { return all, failed })
	result, err := tool.Run(t.Context(), tools.Call{Name: "workspace_changes", Args: json.RawMessage(args)})
	var l changes.List
	if err == nil {
		if err := json.Unmarshal(result.Content, &l); err != nil {
			t.Fatal(err)
		}
	}
	return l, err
}

func TestListsTheNewest(t *testing.T) {
	var all []changes.Turn
	for n := 30; n > 0; n-- {
		all = append(all, changes.Turn{Number: n, Files: []changes.File{{Path: fmt.Sprint(n), Change: "created"}}})
	}
	for args, want := range map[string][3]int{`{}`: {5, 30, 25}, `{"limit":20}`: {20, 30, 10}, `{"turn":3}`: {1, 3, 0}} {
		l, err := ask(t, all, nil, args)
		if err != nil || len(l.Turns) != want[0] || l.Turns[0].Number != want[1] || l.Older != want[2] {
			t.Errorf("%s lists %+v, %v", args, l, err)
		}
	}
	for args, code := range map[string]tools.Code{`{"turn":31}`: tools.NotFound, `{"limit":21}`: tools.InvalidArgs, `{"turn":-1}`: tools.InvalidArgs} {
		_, err := ask(t, all, nil, args)
		if refused, ok := errors.AsType[*tools.Error](err); !ok || refused.Code != code {
			t.Errorf("%s gives %v", args, err)
		}
	}
	if _, err := ask(t, nil, errors.New("the disk"), `{}`); err == nil {
		t.Error("a list that cannot be read is taken for an empty one")
	}
}

func TestListsAreBounded(t *testing.T) {
	var all []changes.Turn
	for n := 3; n > 0; n-- {
		turn := changes.Turn{Number: n}
		for i := range 150 {
			turn.Files = append(turn.Files, changes.File{Path: fmt.Sprint(i)})
		}
		all = append(all, turn)
	}
	l, err := ask(t, all, nil, `{}`)
	if err != nil || len(l.Turns) != 3 || len(l.Turns[0].Files) != 150 || len(l.Turns[1].Files) != 50 || l.Turns[1].More != 100 || l.Turns[2].More != 150 {
		t.Errorf("listed %+v, %v", l, err)
	}
}
