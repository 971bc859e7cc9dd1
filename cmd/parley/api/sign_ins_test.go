package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/bus"
	"parley/cmd/parley/api"
	"parley/sessions"
)

// page adds the header that the page's own script sends.
func page() option { return header(api.PageHeader, "1") }

// with adds cookies to a request, as a browser does.
func with(cookies ...*http.Cookie) option {
	return func(r *http.Request) {
		for _, c := range cookies {
			r.AddCookie(c)
		}
	}
}

// signIn signs a browser in and returns its cookie.
func (x *rig) signIn(body string, options ...option) *http.Cookie {
	x.t.Helper()
	r := x.do("POST", "/v1/sign-ins", "", body, append(options, page(), header("User-Agent", "A browser"))...)
	if r.StatusCode != http.StatusCreated || len(r.Cookies()) != 1 {
		x.t.Fatalf("signing in: %d %s, %v", r.StatusCode, r.body, r.Cookies())
	}
	return r.Cookies()[0]
}

// offerCode creates a code for signing in.
func (x *rig) offerCode(token string) api.SignInOffer {
	x.t.Helper()
	r := x.do("POST", "/v1/sign-ins/codes", token, "")
	if r.StatusCode != http.StatusCreated {
		x.t.Fatalf("making a code: %d %s", r.StatusCode, r.body)
	}
	return into[api.SignInOffer](x.t, r)
}

func TestSignIn(t *testing.T) {
	var audited []sessions.AuditRecord
	x := newRig(t, func(x *rig) {
		x.cfg.Audit.Record = func(_ context.Context, r sessions.AuditRecord) error { audited = append(audited, r); return nil }
	})
	offer := x.offerCode(ownerToken)
	if len(offer.Links) != 2 || offer.Links[0] != "http://127.0.0.1:7275/#code="+offer.Code {
		t.Errorf("the links are %q", offer.Links)
	}
	cookie := x.signIn(`{"code": "` + offer.Code + `"}`)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge < 86400 || cookie.Domain != "" || cookie.Secure {
		t.Errorf("the cookie is %+v", cookie)
	}
	if _, port, _ := strings.Cut(strings.TrimPrefix(x.base, "http://"), ":"); cookie.Name != "parley-"+port {
		t.Errorf("the cookie of the port %s is named %s", port, cookie.Name)
	}
	me := into[api.Me](t, x.do("GET", "/v1/me", "", "", with(cookie)))
	if me.Name != "owner" || !me.Owner || !me.May.Admin || me.SignIn == "" {
		t.Errorf("the browser is %+v", me)
	}
	if r := x.do("POST", "/v1/sign-ins", "", `{"code": "`+offer.Code+`"}`, page()); r.code() != "unknown_code" {
		t.Errorf("the code works again: %d %s", r.StatusCode, r.body)
	}
	if r := x.do("DELETE", "/v1/sign-ins/current", "", "", with(cookie), page()); r.StatusCode != http.StatusNoContent || r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("signing out: %d %s %v", r.StatusCode, r.body, r.Cookies())
	}
	if r := x.do("GET", "/v1/me", "", "", with(cookie)); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("after that the browser is still known: %d %s", r.StatusCode, r.body)
	}
	if len(audited) != 2 || audited[0].Kind != sessions.AuditSignIn || audited[0].By != "token:owner" || audited[0].Detail != me.SignIn || audited[1].Result != "ended" {
		t.Errorf("the audit has %+v", audited)
	}
	if log := x.log.String(); strings.Contains(log, offer.Code) || strings.Contains(log, cookie.Value) {
		t.Error("the log has the code or the cookie")
	}
}

func TestASignInHasTheRightsOfItsToken(t *testing.T) {
	x := newRig(t)
	chat := x.signIn(`{"token": "` + chatToken + `"}`)
	me := into[api.Me](t, x.do("GET", "/v1/me", "", "", with(chat)))
	if me.Name != "chat" || me.Owner || me.May != (api.May{Agent: true}) || !slices.Equal(me.Scopes, []string{"agent"}) {
		t.Errorf("the browser is %+v", me)
	}
	if r := x.do("GET", "/v1/status", "", "", with(chat)); r.StatusCode != http.StatusForbidden {
		t.Errorf("it reads the status: %d", r.StatusCode)
	}
	// A sign-in by code has the rights of the token that made the code.
	if me := into[api.Me](t, x.do("GET", "/v1/me", "", "", with(x.signIn(`{"code": "`+x.offerCode(readToken).Code+`"}`)))); me.Name != "reader" || me.May != (api.May{Read: true}) {
		t.Errorf("with the reader's code the browser is %+v", me)
	}

	owner := x.signIn(`{"token": "` + ownerToken + `"}`)
	type list struct {
		SignIns []api.SignIn `json:"sign_ins"`
	}
	own := into[list](t, x.do("GET", "/v1/sign-ins", "", "", with(chat))).SignIns
	all := into[list](t, x.do("GET", "/v1/sign-ins", "", "", with(owner))).SignIns
	if len(own) != 1 || !own[0].Current || own[0].Device != "A browser" || len(all) != 3 {
		t.Errorf("the chat's browser sees %+v, the owner's %+v", own, all)
	}
	ownersID := into[api.Me](t, x.do("GET", "/v1/me", "", "", with(owner))).SignIn
	if r := x.do("DELETE", "/v1/sign-ins/"+ownersID, "", "", with(chat), page()); r.StatusCode != http.StatusNotFound {
		t.Errorf("it ends the owner's: %d", r.StatusCode)
	}
	if r := x.do("DELETE", "/v1/sign-ins/"+own[0].ID, "", "", with(owner), page()); r.StatusCode != http.StatusNoContent || len(r.Cookies()) > 0 {
		t.Errorf("the owner does not end it: %d %v", r.StatusCode, r.Cookies())
	}
	if r := x.do("GET", "/v1/me", "", "", with(chat)); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("the browser whose sign-in was ended is known: %d", r.StatusCode)
	}
}

func TestASignInEndsWithItsToken(t *testing.T) {
	list := tokens()
	x := newRig(t, func(x *rig) { x.cfg.Access.Tokens = func() []api.Token { return list } })
	cookie := x.signIn(`{"token": "` + readToken + `"}`)
	code := x.offerCode(readToken).Code
	i := slices.IndexFunc(list, func(t api.Token) bool { return t.Name == "reader" })
	list[i].Secret = "another-secret"
	if r := x.do("GET", "/v1/me", "", "", with(cookie)); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("the token has changed and the browser is known: %d %s", r.StatusCode, r.body)
	}
	list = slices.Delete(list, i, i+1)
	if r := x.do("POST", "/v1/sign-ins", "", `{"code": "`+code+`"}`, page()); r.code() != "unknown_code" {
		t.Errorf("the token is gone and its code works: %d %s", r.StatusCode, r.body)
	}
}

func TestOtherPagesCannotUseTheCookie(t *testing.T) {
	x := newRig(t)
	cookie := x.signIn(`{"token": "` + ownerToken + `"}`)
	for name, c := range map[string]struct {
		method, path, body string
		options            []option
	}{
		"a form":                  {"POST", "/v1/messages", `{"to": "ci", "text": "x"}`, []option{with(cookie)}},
		"an image":                {"GET", "/v1/sessions", "", []option{with(cookie), header("Sec-Fetch-Site", "cross-site")}},
		"a page on another port":  {"GET", "/v1/sessions", "", []option{with(cookie), header("Sec-Fetch-Site", "same-site")}},
		"a script":                {"POST", "/v1/messages", `{"to": "ci", "text": "x"}`, []option{with(cookie), page(), header("Origin", "http://evil.example")}},
		"a rebound name":          {"GET", "/v1/sessions", "", []option{with(cookie), header("Host", "evil.example")}},
		"signing somebody in":     {"POST", "/v1/sign-ins", `{"token": "` + chatToken + `"}`, nil},
		"signing in unencrypted":  {"POST", "/v1/sign-ins", `{"token": "` + ownerToken + `"}`, []option{page(), header("Host", "192.0.2.7:7275")}},
		"signing in at our port":  {"POST", "/v1/sign-ins", `{"token": "` + ownerToken + `"}`, []option{page(), header("Host", "parley.example:7275")}},
		"signing in at some name": {"POST", "/v1/sign-ins", `{"token": "` + ownerToken + `"}`, []option{page(), header("Host", "parley.internal")}},
	} {
		if r := x.do(c.method, c.path, "", c.body, c.options...); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	if n := x.waiting(); n > 0 {
		t.Errorf("%d messages were sent", n)
	}
	if r := x.do("POST", "/v1/messages", "", `{"to": "ci", "text": "x"}`, with(cookie), page(), header("Sec-Fetch-Site", "same-origin")); r.StatusCode != http.StatusAccepted {
		t.Errorf("the page itself cannot send: %d %s", r.StatusCode, r.body)
	}
}

func TestSignInBehindAProxy(t *testing.T) {
	x := newRig(t)
	cookie := x.signIn(`{"token": "`+readToken+`"}`, header("Host", "parley.example"))
	if cookie.Name != "__Host-parley" || !cookie.Secure {
		t.Errorf("over TLS the cookie is %+v", cookie)
	}
	if r := x.do("GET", "/v1/me", "", "", with(cookie), header("Host", "parley.example")); r.StatusCode != http.StatusOK {
		t.Errorf("it does not count: %d %s", r.StatusCode, r.body)
	}
}

func TestSignInSaysWhatIsWrong(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Pages = func() []string { return nil } })
	for body, code := range map[string]string{
		`{}`: "missing_field", `{"code": "a", "token": "b"}`: "missing_field", `{"token": "wrong"}`: "unknown_token",
		`{"code": "wrong"}`: "unknown_code", `{"password": "x"}`: "unknown_field", `[`: "bad_json", `{"code": 1}`: "bad_type",
	} {
		if r := x.do("POST", "/v1/sign-ins", "", body, page()); r.code() != code || len(r.Cookies()) > 0 {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
	if r := x.do("POST", "/v1/sign-ins/codes", ownerToken, ""); r.code() != "no_page" {
		t.Errorf("without a port: %d %s", r.StatusCode, r.body)
	}
	for _, path := range []string{"/v1/me", "/v1/sign-ins"} {
		if r := x.get(path, ""); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, r.StatusCode)
		}
	}
}

func TestABrowserThatIsSignedOutWatchesNoMore(t *testing.T) {
	x := newRig(t)
	cookie, other := x.signIn(`{"token": "`+chatToken+`"}`), x.signIn(`{"token": "`+chatToken+`"}`)
	withCookie := func(c *http.Cookie) option {
		return func(r *http.Request) { r.Header.Del("Authorization"); r.AddCookie(c) }
	}
	theirs, others := x.watch(watched, "", "", withCookie(cookie)), x.watch(watched, "", "", withCookie(other))
	for _, f := range []*feed{theirs, others} {
		defer f.close()
		f.must()
	}
	if r := x.do("DELETE", "/v1/sign-ins/current", "", "", with(cookie), page()); r.StatusCode != http.StatusNoContent {
		t.Fatalf("signing out: %d %s", r.StatusCode, r.body)
	}
	x.emit(bus.Event{Type: bus.BlockStart, Session: watched, Turn: "t", Kind: "text"})
	if e, err := theirs.next(); err == nil {
		t.Errorf("the browser that is signed out was shown %+v", e)
	}
	if e := others.must(); e.kind != bus.BlockStart {
		t.Errorf("the other browser was shown %+v", e)
	}
}

// In a fleet each home has its own owner's token, and each process accepts the browsers that the owner signed in.
func TestTheOwnersSignInIsKnownToTheFleet(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Access.OwnerMark = "of the fleet" })
	cookie := x.signIn(`{"code": "` + x.offerCode(ownerToken).Code + `"}`)
	for mark, want := range map[string]int{"of the fleet": http.StatusOK, "another": http.StatusUnauthorized} {
		cfg := x.cfg
		cfg.Access.Owner, cfg.Access.OwnerMark = "the token of another home", mark
		other := newRig(t)
		other.base = other.serve(api.New(cfg), "tcp", "127.0.0.1:0")
		_, port, _ := strings.Cut(strings.TrimPrefix(other.base, "http://"), ":")
		if r := other.do("GET", "/v1/me", "", "", with(&http.Cookie{Name: "parley-" + port, Value: cookie.Value})); r.StatusCode != want {
			t.Errorf("a process with the mark %q answers %d %s, want %d", mark, r.StatusCode, r.body, want)
		}
	}
}

// The API asks the store who may go on watching. While the store is away, streams stay open.
func TestAStoreThatIsAwayEndsNoStream(t *testing.T) {
	x := newRig(t)
	cookie := x.signIn(`{"token": "` + chatToken + `"}`)
	f := x.watch(watched, "", "", func(r *http.Request) { r.Header.Del("Authorization"); r.AddCookie(cookie) })
	defer f.close()
	f.must()
	if err := x.book.Close(); err != nil {
		t.Fatal(err)
	}
	x.Recheck()
	x.emit(bus.Event{Type: bus.BlockStart, Session: watched, Turn: "t", Kind: "text"})
	if e := f.must(); e.kind != bus.BlockStart {
		t.Errorf("it was shown %+v", e)
	}
}
