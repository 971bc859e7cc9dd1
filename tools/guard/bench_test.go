package guard_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
)

// BenchmarkWatch measures the cost of a workspace's marks for a call of a file tool.
func BenchmarkWatch(b *testing.B) {
	all, err := workspace.New(workspace.Config{Root: filepath.Join(b.TempDir(), "workspaces")})
	if err != nil {
		b.Fatal(err)
	}
	defer all.Close()
	dir, err := all.Open("main:test:1")
	if err != nil {
		b.Fatal(err)
	}
	type args struct {
		Path string `json:"path"`
	}
	touch := func(a args) tools.Touch {
		return tools.Touch{Subject: tools.Paths{a.Path}, Reads: tools.Paths{a.Path}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
	}
	nothing := tools.New(tools.Spec{Name: "read_file", Description: "x", Effect: tools.Pure, Touches: tools.Touches(touch)}, func(context.Context, tools.Call, args) (any, error) {
		return "x", nil
	})
	m := guard.Marker{Open: func(context.Context, tools.Call) (guard.Dir, error) { return dir, nil }}
	watched := m.Watch([]tools.Tool{nothing})[0]
	call := tools.Call{Name: "read_file", Args: json.RawMessage(`{"path":"a.txt"}`)}
	for name, tool := range map[string]tools.Tool{"plain": nothing, "watched": watched} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := tool.Run(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
