package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/skills"
)

// docs/tools.md lists every tool in the row of the capability that it requires.
func TestThePageOfToolsHasEveryTool(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{} // "CAPABILITY TOOL"
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue // not a row of the table of capabilities
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
	all, err := newTestServer(t, "").agents.toolbox.set()
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

// Each tool declares in its Spec what it touches. A tool that doesn't would count as the most dangerous kind: every
// call would need an approval, and no rule could match what it acts on.
func TestEveryToolDeclaresWhatItTouches(t *testing.T) {
	made := newTestServer(t, "").agents.toolbox.makeTools(&commandSandbox{}).With(skills.New(nil), nodes.New(nil, "")).Specs()
	var names []string
	for _, spec := range made {
		names = append(names, spec.Name)
	}
	if named := ToolNames(); !slices.Equal(named, names) {
		t.Errorf("rules may name %q, and the toolbox makes %q", named, names)
	}
	for _, spec := range made {
		touch := tools.Call{Name: spec.Name, Args: []byte("{}"), Touches: spec.Touches}.Touch()
		for what, missing := range map[string]bool{"Reads": touch.Reads == nil, "Writes": touch.Writes == nil, "Outward": touch.Outward == nil} {
			if missing {
				t.Errorf("the tool %s does not declare what it touches: set Touches in its Spec, as tools/memory does, and %s in what that returns", spec.Name, what)
			}
		}
	}
}

// Only these tools return text that the model can't have written itself, so URLs in their results count as read.
func TestWhichToolsQuote(t *testing.T) {
	var quoting []string
	for _, spec := range newTestServer(t, "").agents.toolbox.makeTools(&commandSandbox{}).Specs() {
		if spec.Quotes {
			quoting = append(quoting, spec.Name)
		}
	}
	if !slices.Equal(quoting, []string{"web_fetch", "web_search"}) {
		t.Errorf("the results of %q are taken for words of others alone", quoting)
	}
}
