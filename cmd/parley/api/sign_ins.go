package api

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/cmd/parley/api/exchange"
)

// PageHeader is a header that the web page sends, with any value, with each request that changes something. Other
// pages cannot send it, so the browser's cookie alone is useless to them.
const PageHeader = "Parley-Page"

// CurrentSignIn is the id of the caller's own sign-in.
const CurrentSignIn = "current"

// CodeFragment begins the part of an address, after #, that contains a code to sign in with. Browsers send that
// part to nobody.
const CodeFragment = "/#code="

// signIns serves the sign-ins of browsers to the web page.
type signIns struct {
	access  Access
	pages   func() []string
	recheck func() // ends the streams of callers who are no longer allowed to watch
}

// signedIn finds the caller of a browser by the secret in its cookie. It refuses requests that another site's page may
// have made in that browser, and those of a sign-in that has ended or whose token has changed.
func (a Access) signedIn(r *http.Request, secret string) (exchange.Caller, error) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return exchange.Caller{}, exchange.Forbidden("this request comes from a web page on another origin, which this server doesn't allow")
	}
	if err := checkPageHeader(r); err != nil {
		return exchange.Caller{}, err
	}
	in, err := a.SignIns.FindSignIn(r.Context(), secret)
	if err != nil && !errors.Is(err, channels.ErrNoSignIn) {
		return exchange.Caller{}, err
	}
	for _, h := range a.holders() {
		if err == nil && h.Name == in.Caller && subtle.ConstantTimeCompare([]byte(h.proof()), []byte(in.Proof)) == 1 {
			h.SignIn = in.ID
			return h.Caller, nil
		}
	}
	return exchange.Caller{}, exchange.Unauthorized("this sign-in has ended: sign in again")
}

// checkPageHeader refuses a request that changes something but doesn't come from the page's own script.
func checkPageHeader(r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(PageHeader) == "" {
		return exchange.Forbidden("send the header " + PageHeader + " with requests that change something")
	}
	return nil
}

// proof returns a value, derived from the caller's mark, that is stored with a sign-in, so that the sign-in ends
// when the mark changes.
func (h holder) proof() string {
	sum := sha256.Sum256([]byte("sign-in\x00" + h.Name + "\x00" + h.mark))
	return hex.EncodeToString(sum[:16])
}

// isEncrypted reports whether the browser speaks TLS with this server, or with a proxy in front of it. The proxy is
// recognized by host name and port, because this server's own port may have the same name, without TLS.
func (a Access) isEncrypted(r *http.Request) bool {
	if r.TLS != nil || a.Encrypted == nil {
		return r.TLS != nil
	}
	host := strings.TrimSuffix(strings.ToLower(r.Host), ":443")
	return slices.ContainsFunc(a.Encrypted(), func(name string) bool { return strings.TrimSuffix(strings.ToLower(name), ":443") == host })
}

// cookieName returns the name of the cookie that contains a browser's secret. At an encrypted address it is always
// the same. Elsewhere it includes the port, because browsers send cookies to all ports of a machine, and two
// servers there need separate cookies.
func (a Access) cookieName(r *http.Request) string {
	if a.isEncrypted(r) {
		return "__Host-parley"
	}
	_, port, _ := net.SplitHostPort(r.Host)
	return "parley-" + cmp.Or(port, "80")
}

// isLoopbackHost reports whether a Host header names the machine that the browser runs on.
func isLoopbackHost(host string) bool {
	name := hostName(host)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// setCookie makes the browser keep a secret for the time lasts. If lasts is negative, the browser deletes it.
func (a Access) setCookie(w http.ResponseWriter, r *http.Request, secret string, lasts time.Duration) {
	age := -1
	if lasts > 0 {
		age = int(lasts / time.Second)
	}
	http.SetCookie(w, &http.Cookie{
		Name: a.cookieName(r), Value: secret, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: a.isEncrypted(r), SameSite: http.SameSiteStrictMode,
	})
}

// signIn signs a browser in, with a code or with a token. It does so only over TLS or at a loopback address.
func (s signIns) signIn(w *exchange.Answer, r *http.Request) error {
	if s.access.SignIns == nil {
		return noSuchPath()
	}
	if err := checkPageHeader(r); err != nil {
		return err
	}
	if !s.access.isEncrypted(r) && !isLoopbackHost(r.Host) {
		return &exchange.Refusal{Status: http.StatusForbidden, Code: "not_encrypted", Message: "others could read what you send: open the page at a loopback address, " +
			"or set [http] public_url to your proxy's https address"}
	}
	h, err := s.holderOf(w, r)
	if err != nil {
		return err
	}
	secret, in, err := s.access.SignIns.BeginSignIn(r.Context(), channels.SignIn{Caller: h.Name, Proof: h.proof(), Device: r.UserAgent()})
	if err != nil {
		return err
	}
	h.SignIn = in.ID
	w.Caller, w.Subject = h.Caller, in.ID
	s.access.setCookie(w, r, secret, channels.SignInLasts)
	return w.JSON(http.StatusCreated, meOf(h.Caller))
}

// holderOf reads from a request's body who is signing in.
func (s signIns) holderOf(w *exchange.Answer, r *http.Request) (holder, error) {
	raw, err := w.ReadJSON(r, 64<<10)
	if err != nil {
		return holder{}, err
	}
	var code, token string
	_, err = exchange.Decode(raw, exchange.Field{Name: "code", Into: &code, Want: "a string"}, exchange.Field{Name: "token", Into: &token, Want: "a string"})
	switch {
	case err != nil:
		return holder{}, err
	case (code == "") == (token == ""):
		return holder{}, exchange.Unprocessable("missing_field", `give either "code" or "token"`)
	case token != "":
		if h, known := s.access.holderOf(strings.TrimSpace(token)); known {
			return h, nil
		}
		return holder{}, exchange.Unprocessable("unknown_token", "this server doesn't know this token")
	}
	name, err := s.access.SignIns.RedeemSignIn(r.Context(), code)
	if err != nil && !errors.Is(err, channels.ErrNoSignIn) {
		return holder{}, err
	}
	for _, h := range s.access.holders() {
		if err == nil && h.Name == name {
			return h, nil
		}
	}
	return holder{}, exchange.Unprocessable("unknown_code", "somebody has already used this code, or it's older than a minute: run `parley ui` again")
}

// Me says who is asking, in the API's JSON.
type Me struct {
	Name   string   `json:"name"`
	Owner  bool     `json:"owner"`
	Scopes []string `json:"scopes"`
	May    May      `json:"may"`
	SignIn string   `json:"sign_in,omitempty"` // the id of the browser's sign-in
}

// May says what a caller may do, in the API's JSON.
type May struct {
	Read    bool `json:"read"`
	Agent   bool `json:"agent"`
	Own     bool `json:"own"`
	Approve bool `json:"approve"`
	Admin   bool `json:"admin"`
}

func meOf(c exchange.Caller) Me {
	return Me{
		Name: c.Name, Owner: c.Owner, Scopes: append([]string{}, c.Scopes...), SignIn: c.SignIn,
		May: May{Read: c.MayReadAll(), Agent: c.MayTalkToAgent(), Own: c.MayReadOwn(), Approve: c.MayApprove(), Admin: c.IsAdmin()},
	}
}

// me answers with who is asking.
func (s signIns) me(w *exchange.Answer, _ *http.Request) error {
	return w.JSON(http.StatusOK, meOf(w.Caller))
}

// offer creates a code with which a browser can sign in with the caller's rights.
func (s signIns) offer(w *exchange.Answer, r *http.Request) error {
	if s.access.SignIns == nil || s.pages == nil {
		return noSuchPath()
	}
	pages := s.pages()
	if len(pages) == 0 {
		return exchange.Unprocessable("no_page", "this process doesn't listen on a port, so it has no page: set [http] listen, such as \"127.0.0.1:7275\"")
	}
	made := time.Now()
	code, err := s.access.SignIns.OfferSignIn(r.Context(), w.Caller.Name)
	if err != nil {
		return err
	}
	offer := SignInOffer{Code: code, Expires: made.Add(channels.SignInCodeLasts)}
	for _, p := range pages {
		offer.Links = append(offer.Links, p+CodeFragment+code)
	}
	return w.JSON(http.StatusCreated, offer)
}

// A SignInOffer is a code with which a browser can sign in once, in the API's JSON.
type SignInOffer struct {
	Code    string    `json:"code"`
	Expires time.Time `json:"expires"`
	Links   []string  `json:"links"` // links that open the page with the code; the one for this machine comes first
}

// A SignIn is a browser in which somebody has signed in, in the API's JSON.
type SignIn struct {
	ID      string    `json:"id"`
	Caller  string    `json:"caller"`
	Device  string    `json:"device"`
	Began   time.Time `json:"began"`
	Seen    time.Time `json:"seen"`
	Current bool      `json:"current"` // whether it is the browser that is asking
}

// visible lists the sign-ins that a caller may see and end: all of them for admins, their own for others.
func (s signIns) visible(r *http.Request, c exchange.Caller) ([]channels.SignIn, error) {
	if s.access.SignIns == nil {
		return nil, nil
	}
	all, err := s.access.SignIns.SignIns(r.Context())
	return slices.DeleteFunc(all, func(in channels.SignIn) bool { return !c.IsAdmin() && in.Caller != c.Name }), err
}

// list lists the browsers in which people have signed in.
func (s signIns) list(w *exchange.Answer, r *http.Request) error {
	all, err := s.visible(r, w.Caller)
	if err != nil {
		return err
	}
	list := make([]SignIn, len(all))
	for i, in := range all {
		list[i] = SignIn{in.ID, in.Caller, in.Device, in.Began, in.Seen, in.ID == w.Caller.SignIn}
	}
	return w.JSON(http.StatusOK, struct {
		SignIns []SignIn `json:"sign_ins"`
	}{list})
}

// endSignIn ends a sign-in, and the streams of that browser in this process.
func (s signIns) endSignIn(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	id := w.ID
	if id == CurrentSignIn {
		id = w.Caller.SignIn
	}
	all, err := s.visible(r, w.Caller)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(in channels.SignIn) bool { return in.ID == id }) {
		err = s.access.SignIns.EndSignIn(r.Context(), id)
	} else {
		err = channels.ErrNoSignIn
	}
	if errors.Is(err, channels.ErrNoSignIn) {
		return exchange.NotFound("there's no such sign-in")
	}
	if err != nil {
		return err
	}
	w.Subject = id
	if id == w.Caller.SignIn {
		s.access.setCookie(w, r, "", -1)
	}
	s.recheck()
	w.WriteHeader(http.StatusNoContent)
	return nil
}
