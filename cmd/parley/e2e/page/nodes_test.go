package page

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/cmd/parley/parleytest"
	"parley/tools/nodes"
)

// withNode contains the settings that let agents use the node pi.
const withNode = "[nodes.pi]\nagents = [\"main\"]\n"

// deviceTool returns a tool that a device offers.
func deviceTool(name, description string) nodes.Tool {
	return nodes.Tool{Name: name, Description: description, Schema: json.RawMessage(`{"type":"object","properties":{"room":{"type":"string"}}}`), Pure: name == "look"}
}

// Owners can invite a device on the page, accept the tools that they see, and remove the device. Tools that the device
// offers after they looked are not accepted.
func TestADeviceIsAcceptedAndRemoved(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, withNode+"[mqtt]\nurl = \"mqtt://127.0.0.1:1\"\n")
	v := visit{enter(newBrowser(t), o, 1280, 900), o}
	v.see("nodes", "Nodes", "No device has joined.")
	v.press("Invite a device")
	v.waitText("main pre", "parley node join https://… ")
	v.waitText("main", "parley node join mqtt://127.0.0.1:1 ")
	v.waitText("main", "The code works once, until")
	code := regexp.MustCompile(`[a-z2-7]{5}-[a-z2-7]{5}`).FindString(v.text("main pre"))
	d := o.Join("pi", code)
	v.press("Close")
	v.wait("the code to be gone", "!document.querySelector('main pre')")
	d.Offer(deviceTool("look", "Looks around.\nIt hid\u202eden "+hostileName))
	v.waitText("main .story h2", "pi waiting to be accepted here")
	v.waitText("main", "linux/arm64")
	v.waitText("main", "Used by main")
	v.waitText("main", d.Key())
	v.waitText("[aria-label='Tool look of pi'] .preview-line", `It hid\u202eden <img`)
	v.waitText("[aria-label='Tool look of pi']", `"room"`)
	eval[bool](v.tab, "(window.kept = setInterval, window.setInterval = () => 0, true)") // the page does not poll in between
	v.see("overview", "Overview", "ready")
	v.see("nodes", "Nodes", `hid\u202eden`)
	d.Offer(deviceTool("look", "Looks around."), deviceTool("take", "Takes things."))
	v.pressLabel("Accept this node: pi") // accepts the tools that the page shows
	v.waitText("main [role=alert]", "offers something other")
	v.forgive("status of 409")
	v.pressLabel("Show it again: pi")
	v.waitText("main", "2 tools to accept")
	v.waitText("[aria-label='Tool take of pi']", "Takes things.")
	eval[bool](v.tab, "(window.setInterval = window.kept, true)")
	v.pressLabel("Accept this node: pi")
	v.waitText("main [role=status]", "Accepted pi.")
	v.waitText("main .story h2", "pi accepted here")
	v.waitText("main summary", "2 tools in use")
	if v.count("main", "to accept") != 0 {
		t.Errorf("something is still to be accepted: %s", v.text("main"))
	}
	if out, _, _ := o.Run("status"); !strings.Contains(out, "\nNodes: 1\n") {
		t.Errorf("parley status says %q", out)
	}
	d.Leave()
	v.waitText("main .story h2", "pi accepted away")
	v.waitText("main", "Away for")
	v.pressLabel("Remove pi")
	v.waitText("dialog", "Remove pi?")
	v.press("Cancel")
	v.pressLabel("Remove pi")
	v.press("Remove node")
	v.waitText("main [role=status]", "Removed pi.")
	v.waitText("main .story h2", "pi removed")
	if now := v.ask("/v1/nodes/pi"); !strings.Contains(now, `"revoked"`) {
		t.Errorf("the server has %s", now)
	}
}

// The view of nodes works with a screen reader and a keyboard, and nothing in it is wider than the screen.
func TestNodesAreAccessible(t *testing.T) {
	t.Parallel()
	axe := axeCore(t)
	o, _ := newWorld(t, parleytest.EchoModel, withNode)
	o.Join("pi", "").Offer(deviceTool("look", "Looks around."))
	o.Ask("POST", "/v1/nodes/pi/accept", "{}", o.OwnerHeader()...)
	o.Join("garden", "").Offer(deviceTool("look", "Looks around.\nIt hid\u202eden "+strings.Repeat("verylong", 60)))
	o.Join("attic", "")
	v := visit{enter(newBrowser(t), o, 1280, 900), o}
	eval[bool](v.tab, axe)
	v.see("nodes", "Nodes", "1 tool in use")
	v.press("Invite a device")
	v.waitText("main", "The code works once, until")
	eval[bool](v.tab, "(document.querySelectorAll('main details').forEach(d => d.open = true), true)")
	for _, scheme := range []string{"light", "dark"} {
		v.look(scheme)
		for _, width := range []int64{1280, 390, 360} {
			v.do(chromedp.EmulateViewport(width, 900))
			v.fits("nodes")
			for _, found := range v.axe() {
				t.Errorf("%s, %d pixels: %s", scheme, width, found)
			}
			v.whole("nodes-"+scheme, width)
		}
	}
}
