package operation

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/parleytest"
)

// An owner can get a link to the page in a chat, the link signs in one browser once, and nobody else gets a link.
// Telegram's person 1 is the owner.
func TestAnOwnerOpensThePageFromAChat(t *testing.T) {
	t.Parallel()
	o := parleytest.ListenHTTP(parleytest.New(t, parleytest.EchoModel, "public_url = \"https://bot.example\"\nhosts = [\"bot.example\"]\n"))
	p := o.Up()
	o.Telegram.Say(2, 2, "/ui")
	parleytest.Wants(t, o.WaitSaid(2, 1)[0], "Only an owner")
	o.Telegram.Say(1, 1, "/ui")
	said := o.WaitSaid(1, 1)[0]
	link := regexp.MustCompile(`https://bot\.example/#code=([A-Z2-7]{26})`).FindStringSubmatch(said)
	if link == nil {
		t.Fatalf("the owner was told %q", said)
	}
	body := fmt.Sprintf(`{"code": %q}`, link[1])
	headers := []string{"Host", "bot.example", "Parley-Page", "1"}
	in := o.Ask("POST", "/v1/sign-ins", body, headers...)
	if in.Status != http.StatusCreated {
		t.Errorf("with the link's code: %d %s", in.Status, in.Body)
	}
	if a := o.Ask("POST", "/v1/sign-ins", body, headers...); a.Code() != "unknown_code" {
		t.Errorf("the second time: %d %s", a.Status, a.Body)
	}
	out, _, code := o.Run("ui", "list")
	id := regexp.MustCompile(`(?m)^([a-z2-7]{26}) +owner `).FindStringSubmatch(out)
	if code != parleytest.ExitDone || id == nil {
		t.Fatalf("parley ui list ended with %d and shows %s", code, out)
	}

	// If a sign-in is ended at a terminal, the browser's stream ends, too.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+"/v1/events", nil)
	parleytest.Must(t, err)
	r.Host = "bot.example"
	cookie, _, _ := strings.Cut(in.Header.Get("Set-Cookie"), ";")
	r.Header.Set("Cookie", cookie)
	began := time.Now()
	stream, err := o.Client.Do(r)
	parleytest.Must(t, err)
	defer stream.Body.Close()
	if _, errs, code := o.Run("ui", "end", id[1]); stream.StatusCode != http.StatusOK || code != parleytest.ExitDone {
		t.Fatalf("the stream is %d, and parley ui end ends with %d %s", stream.StatusCode, code, errs)
	}
	_, _ = io.Copy(io.Discard, stream.Body)
	if lasted := time.Since(began); lasted > 50*time.Second { // after a minute, the server checks the sign-in anyway
		t.Errorf("the stream went on for %v", lasted)
	}
	p.Stop()
}
