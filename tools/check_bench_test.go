package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/tools"
)

// BenchmarkFirstCheck measures the first call of a tool, which compiles its schema.
func BenchmarkFirstCheck(b *testing.B) {
	for b.Loop() {
		if _, _, err := tools.NewSet(lookTool()).Check(tools.Call{Name: "look", Args: json.RawMessage(`{"path":"a"}`)}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	set := tools.NewSet(lookTool())
	for name, args := range map[string]string{
		"small":   `{"path":"notes.txt","limit":"5"}`,
		"big":     `{"path":"` + strings.Repeat(`line\n`, 160_000) + `"}`,
		"refused": strings.Repeat("[", 200_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(args)))
			for b.Loop() {
				_, _, err := set.Check(tools.Call{Name: "look", Args: json.RawMessage(args)})
				if (err != nil) != (name == "refused") {
					b.Fatal(err)
				}
			}
		})
	}
}
