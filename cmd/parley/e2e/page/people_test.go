package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/cmd/parley/parleytest"
)

// The People view shows the linked accounts of each person, and whom the configuration names in which role.
func TestPeopleShowLinksAndRoles(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	var all struct {
		Pairings []struct{ Person, Code string }
	}
	parleytest.Must(t, json.Unmarshal([]byte(v.ask("/v1/pairings")), &all))
	if len(all.Pairings) != 1 {
		t.Fatalf("asking are %+v", all)
	}
	if a := v.o.Ask("POST", "/v1/pairings", fmt.Sprintf(`{"code":%q}`, all.Pairings[0].Code), v.o.OwnerHeader()...); a.Status != http.StatusOK {
		t.Fatalf("admitted with %d %s", a.Status, a.Body)
	}
	v.o.Telegram.Say(5, 5, "/link")
	code := regexp.MustCompile(`link ([a-z0-9]{10})`)
	var found []string
	parleytest.WaitFor(t, "the code", func() bool {
		found = code.FindStringSubmatch(strings.Join(parleytest.Texts(v.o.Telegram.Sent(5)), "\n"))
		return found != nil
	})
	const linked = "[...document.querySelectorAll('main td[data-title=\"Linked with\"]')].map(c => c.textContent).join()"
	v.see("people", "People", "has access")
	if was := eval[string](v.tab, linked); was != "" {
		t.Errorf("linked before with %q", was)
	}
	v.show("chat")
	v.write(field, "/link "+found[1])
	v.waitText(".spoken", "telegram:5")
	v.see("people", "People", "has access")
	v.wait("the link", linked+" === 'web:owner'")
	v.waitText("[aria-label='People named in the configuration']", "telegram:1")
	v.waitText("[aria-label='People named in the configuration'] .badge", "owner")
	v.waitText("[aria-label='People named in the configuration']", "parley.toml:")
	v.whole("people-links", 1280)
	v.do(chromedp.EmulateViewport(360, 800))
	v.fits("people")
}
