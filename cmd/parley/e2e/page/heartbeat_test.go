package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// The view of schedules shows the heartbeat and its last run. It shows nothing about a heartbeat if none is configured.
func TestSchedulesShowTheHeartbeat(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "list.md")
	parleytest.Must(t, os.WriteFile(list, []byte("- Is all well?\n"), 0o600))
	o, _ := newWorld(t, parleytest.EchoModel, fmt.Sprintf("[heartbeat]\nevery = \"1s\"\nfile = %q\nto = \"telegram:1\"\n", list))
	v := visit{enter(newBrowser(t), o, 1280, 900), o}
	v.see("schedules", "Schedules", "Heartbeat: every 1s")
	v.waitText(".heartbeat", "Last beat: ")
	line := v.text(".heartbeat")
	for _, want := range []string{"main goes through", "list.md", "tells telegram:1"} {
		if !strings.Contains(line, want) {
			t.Errorf("there is no %q in %q", want, line)
		}
	}
	if to := eval[string](v.tab, "document.querySelector('.heartbeat a').hash"); !strings.HasPrefix(to, "#/chat/main%3Aheartbeat%3Amain%3A20") {
		t.Errorf("the link leads to %s", to)
	}
	v.picture("heartbeat")
	none, _ := newWorld(t, parleytest.EchoModel, "")
	w := visit{enter(newBrowser(t), none, 1280, 900), none}
	eval[bool](w.tab, "(window.realFetch = window.fetch, window.fetch = async (a, b) => { const r = await window.realFetch(a, b); if (String(a).includes('/v1/config')) setTimeout(() => { window.read = true }); return r }, true)")
	w.see("schedules", "Schedules", "Nothing is scheduled.")
	w.wait("the configuration", "window.read")
	if strings.Contains(w.text("main"), "eartbeat") {
		t.Errorf("there is a heartbeat: %q", w.text("main"))
	}
}
