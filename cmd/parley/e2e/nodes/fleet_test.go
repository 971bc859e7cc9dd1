//go:build linux

package nodes

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/server/nodelinks"
	"parley/sessions/sqldb/sqldbtest"
)

// fleetSettings returns the settings of a fleet with a bus and a store of its own, and with an owner's token. It skips
// the test if there is no Redis.
func fleetSettings(t *testing.T) string {
	t.Helper()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	return fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[tokens.boss]\ntoken = \"boss-token-of-the-test\"\nmay = [\"admin\"]\n",
		redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir())
}

// In a fleet, a gateway has the node's link and a worker runs the turn. If both are killed in the middle of a call, the
// command runs once, and the person gets one answer.
func TestAFleetIsKilled(t *testing.T) {
	t.Parallel()
	boss := parleytest.Bearer("boss-token-of-the-test")
	w := parleytest.ListenHTTP(parleytest.New(t, runModel, parleytest.WithShell+"[nodes.pi]\nagents = [\"main\"]\n"+fleetSettings(t)))
	w.NeedsSandbox()
	gateway := w.ServeAs("gateway")
	w.Ready(t)
	worker := w.ServeAs("worker")
	worker.WaitServing()
	var invited nodelinks.Invitation
	parleytest.Must(t, json.Unmarshal([]byte(w.Ask("POST", "/v1/nodes/invite", "", boss...).Body), &invited))
	n := newNode(w, invited.Code)
	n.start()
	state := func() string { return w.Ask("GET", "/v1/nodes/pi", "", boss...).Body }
	isHere := func() bool { return strings.Contains(state(), `"here":true`) }
	parleytest.WaitFor(t, "the node to be here", isHere)
	if a := w.Ask("POST", "/v1/nodes/pi/accept", "{}", boss...); a.Status != 200 {
		t.Fatal(a.Body)
	}
	for i := int64(2); ; i++ { // the worker gets the node's tools a moment later
		w.Telegram.Say(i, i, "run: echo it works;;")
		if said := w.WaitSaid(i, 1)[0]; strings.Contains(said, "it works") {
			break
		} else if !strings.Contains(said, "no such tool") || i > 20 {
			t.Fatal(said)
		}
	}
	w.Telegram.Say(100, 100, waits)
	dir := n.begun()
	gateway.Kill()
	worker.Kill()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	w.ServeAs("worker").WaitServing()
	w.ServeAs("gateway")
	w.Ready(t)
	parleytest.Wants(t, w.WaitSaid(100, 1)[0], "begun")
	parleytest.WaitFor(t, "the node to be here", isHere)
	if raw, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(raw) != "begun\n" {
		t.Errorf("the command was run as %q (%v)", raw, err)
	}
}

// In a fleet, a gateway runs ssh and a worker runs the turn. If both are killed in the middle of a call, the command
// runs once, and the person gets one answer.
func TestAFleetIsKilledInACallOverSSH(t *testing.T) {
	t.Parallel()
	boss := parleytest.Bearer("boss-token-of-the-test")
	w := parleytest.ListenHTTP(parleytest.New(t, callModel, parleytest.WithShell+overSSH+fleetSettings(t)))
	w.NeedsSandbox()
	b := newBox(w.World, "")
	gateway := w.ServeAs("gateway")
	w.Ready(t)
	isHere := func() bool {
		return strings.Contains(w.Ask("GET", "/v1/nodes/ssh-deploy-box-example-com-2222", "", boss...).Body, `"here":true`)
	}
	parleytest.WaitFor(t, "the target to be here", isHere)
	worker := w.ServeAs("worker")
	worker.WaitServing()
	w.Telegram.Say(1, 1, waitCall)
	dir := b.begun()
	gateway.Kill()
	worker.Kill()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	w.ServeAs("worker").WaitServing()
	w.ServeAs("gateway")
	w.Ready(t)
	parleytest.Wants(t, w.WaitSaid(1, 1)[0], `"stdout":"begun\n"`)
	b.ranOnce(dir)
}
