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

// The test binary is two programs: the tests, and the program that the sandbox starts.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(testrace.Run(m.Run))
}

// A memoryStore keeps the files that calls store, in memory.
type memoryStore map[string]string

func (s memoryStore) keep(_ context.Context, _ tools.Call, name string, content []byte) (string, error) {
	s[name] = string(content)
	return canvas.Folder + "/" + name, nil
}

// newCaller returns a caller of the tool, and the store of its files.
func newCaller(b *canvas.Browser) (*toolstest.Caller, memoryStore) {
	kept := memoryStore{}
	return toolstest.New(canvas.New(kept.keep, new(canvas.Reader), b)), kept
}

// onlyFile returns the only stored file with that ending.
func (s memoryStore) onlyFile(t *testing.T, ending string) string {
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

// A printingSandbox is a sandbox whose commands always print the same output.
type printingSandbox struct{ output []byte }

func (p printingSandbox) Run(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
	_, err := c.Stdout.Write(p.output)
	return sandbox.Result{}, err
}
