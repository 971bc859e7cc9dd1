package toollist_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/agent/openai/toollist"
	"parley/tools"
)

func specs(names ...string) []tools.Spec {
	var all []tools.Spec
	for _, n := range names {
		all = append(all, tools.Spec{Name: n, Description: "does <" + n + ">", Schema: json.RawMessage(`{"type":"object","title":"` + n + `"}`)})
	}
	return all
}

func TestEachListIsWrittenAsItIs(t *testing.T) {
	var w toollist.Writer
	want := func(list []tools.Spec) string {
		var all []string
		for _, s := range list {
			all = append(all, fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":%q,"parameters":%s}}`, s.Name, s.Description, s.Schema))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	var all sync.WaitGroup
	for n := range 20 { // more than are kept
		list := specs("a", fmt.Sprint("b", n))
		all.Go(func() {
			for range 20 {
				if got, err := w.JSON(list); err != nil || string(got) != want(list) {
					t.Errorf("it wrote %s, %v", got, err)
				}
			}
		})
	}
	all.Wait()

	list := specs("a", "b")
	before, err := w.JSON(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*tools.Spec){
		func(s *tools.Spec) { s.Name = "c" },
		func(s *tools.Spec) { s.Description = "does more" },
		func(s *tools.Spec) { s.Schema = json.RawMessage(`{"type":"object"}`) },
	} {
		change(&list[1])
		if got, err := w.JSON(list); err != nil || string(got) != want(list) {
			t.Errorf("after a change it wrote %s, %v", got, err)
		}
	}
	if string(before) != want(specs("a", "b")) {
		t.Errorf("what was written before has become %s", before)
	}
	if got, err := w.JSON([]tools.Spec{{Name: "bare"}}); err != nil || string(got) != `[{"type":"function","function":{"name":"bare","parameters":{"type":"object","properties":{}}}}]` {
		t.Errorf("a tool without a schema is %s, %v", got, err)
	}
	if _, err := w.JSON([]tools.Spec{{Name: "broken", Schema: json.RawMessage("{")}}); err == nil {
		t.Error("a schema that is no JSON is written")
	}
}
