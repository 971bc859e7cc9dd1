package tools

import (
	"testing"

	"parley/cmd/parley/parleytest"
)

// An agent finds the declarations in the code of its folder, including code that it has just written.
func TestAnAgentSearchesCode(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, commander, "")
	for _, step := range []struct{ call, want string }{
		{`write_file {"path":"tea/pot.py","content":"class Pot:\n    def brew(self): pass\n"}`, "Successfully wrote"},
		{`code_search {"query":"Pot.brew"}`, `"path":"tea/pot.py","line":2,"kind":"method","name":"brew","container":"Pot"`},
		{`edit_file {"path":"tea/pot.py","old_text":"brew","new_text":"pour"}`, "Successfully edited"},
		{`code_search {"query":"pour"}`, `"line":2,"kind":"method","name":"pour"`},
		{`code_map {}`, `tea/ 1 file (1 python): Pot`},
	} {
		out, errs, code := w.Run("chat", "--session", "code", "-m", step.call)
		if code != parleytest.ExitDone {
			t.Fatalf("%s: exit code %d, %s", step.call, code, errs)
		}
		parleytest.Wants(t, out, step.want)
	}
}
