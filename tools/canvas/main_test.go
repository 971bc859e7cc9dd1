package canvas_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/sandbox"
	"parley/tools/testrace"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write what models are shown")

// The test binary is two programs: the tests, and what the sandbox runs this program for.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(testrace.Run(m.Run))
}

// A store keeps what calls store, in memory.
type store map[string]string

func (s store) keep(_ context.Context, _ tools.Call, name string, content []byte) (string, error) {
	s[name] = string(content)
	return canvas.Folder + "/" + name, nil
}

// newCaller returns what makes calls of the tool, and what they store.
func newCaller(b *canvas.Browser) (*toolstest.Caller, store) {
	kept := store{}
	return toolstest.New(canvas.New(kept.keep, new(canvas.Reader), b)), kept
}

// only returns the one file with that ending that was kept.
func (s store) only(t *testing.T, ending string) string {
	t.Helper()
	found, content := 0, ""
	for name, text := range s {
		if strings.HasSuffix(name, ending) {
			found, content = found+1, text
		}
	}
	if found != 1 {
		t.Fatalf("%d files %s are kept", found, ending)
	}
	return content
}

// printing is a sandbox whose commands print the same.
type printing struct{ what []byte }

func (p printing) Run(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
	_, err := c.Stdout.Write(p.what)
	return sandbox.Result{}, err
}
