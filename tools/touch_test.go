package tools_test

import (
	"encoding/json"
	"testing"

	"parley/tools"
)

// A call touches what its own arguments say. If its tool declares nothing, the worst is assumed.
func TestTouchOfACall(t *testing.T) {
	type args struct {
		Path  string `json:"path"`
		Lines int    `json:"lines"`
	}
	spec := tools.Spec{Touches: tools.Touches(func(a args) tools.Touch {
		return tools.Touch{Subject: tools.Paths{a.Path}, Reads: tools.Paths{a.Path}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
	})}
	for _, given := range []string{`{"path":"a"}`, `{"lines":"many","path":"a"}`} {
		touch := tools.Call{Args: json.RawMessage(given), Touches: spec.Touches}.Touch()
		if paths, ok := touch.Subject.(tools.Paths); !ok || len(paths) != 1 || paths[0] != "a" || touch.MayWrite() {
			t.Errorf("%s touches %+v", given, touch)
		}
	}
	unsaid := tools.Call{Args: json.RawMessage(`{"path":"a"}`)}.Touch()
	if unsaid.Subject != nil || unsaid.Reads != nil || unsaid.Outward != nil || !unsaid.MayWrite() {
		t.Errorf("where nothing was said it touches %+v", unsaid)
	}
	if nothing := (tools.Call{Touches: tools.TouchesNothing()}).Touch(); nothing.MayWrite() || nothing.Outward != tools.Outward(tools.NothingOutward{}) {
		t.Errorf("what touches nothing touches %+v", nothing)
	}
}
