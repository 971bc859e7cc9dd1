package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// link returns a link that signs in a browser once, as "parley ui" prints it.
func link(o *parleytest.HTTPWorld) string {
	o.T.Helper()
	var offer struct{ Links []string }
	a := o.Ask("POST", "/v1/sign-ins/codes", "{}", o.OwnerHeader()...)
	if err := json.Unmarshal([]byte(a.Body), &offer); err != nil || len(offer.Links) == 0 {
		o.T.Fatalf("no link: %d %s", a.Status, a.Body)
	}
	return offer.Links[0]
}

// enter opens the page in a new tab, signed in as the owner.
func enter(b *browser, o *parleytest.HTTPWorld, width, height int64) *tab {
	o.T.Helper()
	x := b.open(link(o), width, height)
	x.wait("the chat", "document.querySelector('.composer textarea')")
	return x
}

// The link of "parley ui" signs in once and disappears from the address bar. A second use of the link says what to do.
// A person can also sign in with a token. A sign-in survives a reload, and signing out ends it.
func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	used := link(o)
	x := newBrowser(t).open(used, 1280, 800)
	x.wait("the chat", "document.querySelector('.composer textarea')")
	readable := func() { // the ids of the sessions that were seen, and nothing else
		t.Helper()
		x.wait("the sessions", "localStorage.length > 0")
		if kept := eval[string](x, "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"); kept != `{"seen owner":"{\"since\":0,\"looks\":{}}"}{}` {
			t.Errorf("scripts can read %s", kept)
		}
	}
	if at := eval[string](x, "location.href"); strings.Contains(at, "code") {
		t.Errorf("the address keeps the code: %s", at)
	}
	readable()
	x.reload()
	x.wait("the chat again", "document.querySelector('.composer textarea')")
	x.press("Sign out")
	x.wait("the sign-in", "document.querySelector('.signin input')")
	x.picture("signin")
	eval[bool](x, "(location.href = "+quoted(used)+", location.reload(), true)")
	x.waitText(".note.error", "run `parley ui` again")
	x.write("#given", "not-the-token-of-anybody")
	x.waitText(".note.error", "This server doesn't know this token")
	token, err := os.ReadFile(filepath.Join(o.Home, "token"))
	parleytest.Must(t, err)
	eval[bool](x, "(document.querySelector('#given').select(), true)")
	x.write("#given", strings.TrimSpace(string(token)))
	x.wait("the chat by the token", "document.querySelector('.composer textarea')")
	readable()
	x.forgive("status of 401") // before the sign-in, the page's first request is refused
	x.forgive("status of 422")
}

func quoted(s string) string {
	raw, _ := json.Marshal(s) // a text can be encoded
	return string(raw)
}
