package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/nodelinks"
	"parley/sessions/nodes"
)

// The doctor tries each target once, and gives each problem a description and a remedy.
func TestSSHTargets(t *testing.T) {
	dir := t.TempDir()
	script := `#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
good) has='"files","exec"' ;;
bare) has='"files"' ;;
*) echo 'Host key verification failed.' >&2; exit 255 ;;
esac
echo '{"parley_node":1,"key":"a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=","release":"1.0","capabilities":['$has']}'
`
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	cfg := &config.Config{Agents: map[string]config.Agent{
		"a": {RunsOn: "ssh://u@good"}, "b": {RunsOn: "ssh://u@good"}, "c": {RunsOn: "ssh://u@bare"}, "d": {RunsOn: "ssh://u@locked"}, "e": {RunsOn: "node:pi"}, "f": {},
	}}
	found := checkSSHTargets(t.Context(), cfg)
	want := []struct{ part, state, detail, remedy string }{
		{"ssh://u@bare", note, "no sandbox works there", "parley doctor"},
		{"ssh://u@good", fine, "parley 1.0 is there", ""},
		{"ssh://u@locked", wrong, "Host key verification failed.", "run `ssh u@locked true`"},
	}
	if len(found) != len(want) {
		t.Fatalf("it finds %+v", found)
	}
	for i, w := range want {
		if f := found[i]; f.Part != w.part || f.State != w.state || !strings.Contains(f.Detail, w.detail) || !strings.Contains(f.Remedy, w.remedy) {
			t.Errorf("it finds %+v", f)
		}
	}
	if found := findAgentsWithoutTheirNode(cfg, nil); len(found) != 1 || found[0].Part != "agent e" {
		t.Errorf("it finds %+v", found)
	}
}

// What the server reports about a target never advises the operator to accept it or to start a node there.
func TestSSHTargetsAsNodes(t *testing.T) {
	since := time.Now()
	for name, c := range map[string]struct {
		node   nodelinks.Node
		state  string
		remedy string
	}{
		"here":    {nodelinks.Node{SSH: true, Target: "ssh://u@box", Here: true, Since: &since, Agents: []string{"main"}}, fine, ""},
		"away":    {nodelinks.Node{SSH: true, Target: "ssh://u@box", Since: &since, Agents: []string{"main"}}, note, "the server's log"},
		"unnamed": {nodelinks.Node{Name: "ssh-u-box", SSH: true, Since: &since}, note, "parley nodes revoke ssh-u-box"},
	} {
		c.node.State = nodes.Accepted
		if f := judgeNode(c.node); f.State != c.state || !strings.Contains(f.Remedy, c.remedy) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
