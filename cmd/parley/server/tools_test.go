package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/tools.md has every tool in the row of the capability that an agent needs for it.
func TestThePageOfToolsHasEveryTool(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{} // "CAPABILITY TOOL"
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue // no row of the table of capabilities
		}
		capability := strings.Trim(cells[1], "` ")
		if capability == "none is needed" {
			capability = ""
		}
		for i, word := range strings.Split(cells[2], "`") {
			if i%2 == 1 {
				listed[capability+" "+word] = true
			}
		}
	}
	all, err := newTestServer(t, "").tools()
	if err != nil {
		t.Fatal(err)
	}
	specs := all.Specs()
	if len(specs) == 0 {
		t.Fatal("there are no tools")
	}
	for _, spec := range specs {
		if !listed[string(spec.Permission)+" "+spec.Name] {
			t.Errorf("docs/tools.md does not have %s in the row of the capability %q", spec.Name, spec.Permission)
		}
	}
}
