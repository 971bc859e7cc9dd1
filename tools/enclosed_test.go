package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"parley/tools"
)

// A tool's function can enclose files with its value, which the model reads unchanged.
func TestEnclosedFiles(t *testing.T) {
	draw := tools.New(tools.Spec{Name: "draw"}, func(context.Context, tools.Call, struct{}) (any, error) {
		return tools.Untrusted{Value: tools.Enclosed{Value: "drawn", Files: []string{"a.png", "b.txt"}}}, nil
	})
	got, err := draw.Run(t.Context(), tools.Call{Args: json.RawMessage(`{}`)})
	if err != nil || string(got.Content) != `"drawn"` || !got.Untrusted || !slices.Equal(got.Enclosed, []string{"a.png", "b.txt"}) {
		t.Errorf("the result is %+v, %v", got, err)
	}
}
