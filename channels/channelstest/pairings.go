package channelstest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

func testRequests(t *testing.T, s suite) {
	b, command := s.open(t), s.open(t) // the bot, and `pairing approve` running next to it
	asked, err := b.RequestPairing(t.Context(), "c:7", "c:70")
	requireNoError(t, err)
	again, err := b.RequestPairing(t.Context(), "c:7", "c:70")
	requireNoError(t, err)
	if asked.Code == "" || again.Code != asked.Code {
		t.Errorf("codes %q and %q, want one that stands", asked.Code, again.Code)
	}
	if len(asked.Code) != 8 || strings.ContainsAny(asked.Code, "01ILO") {
		t.Errorf("code %q", asked.Code)
	}
	if left := time.Until(asked.Expires); left < 50*time.Minute || left > time.Hour {
		t.Errorf("it lives for %v", left)
	}
	if _, ok, err := b.FindPairing(t.Context(), "c:7"); ok || err != nil {
		t.Errorf("somebody who asked is paired: %v, %v", ok, err)
	}
	// The stranger who was told a code can't approve the request by saying it.
	if _, err := b.Admit(t.Context(), channels.Admission{Code: asked.Code, Person: "c:7", Chat: "c:70"}); !errors.Is(err, channels.ErrNoCode) {
		t.Errorf("a request was used as an offer: %v", err)
	}
	for _, code := range []string{"", "WRONGONE", asked.Code[:7]} {
		if _, err := command.Admit(t.Context(), channels.Admission{Code: code}); !errors.Is(err, channels.ErrNoCode) {
			t.Errorf("code %q: %v", code, err)
		}
	}
	typed := strings.ToLower(asked.Code[:4]) + "-" + asked.Code[4:]
	got, err := command.Admit(t.Context(), channels.Admission{Code: typed})
	requireNoError(t, err)
	if got.Person != "c:7" || got.Chat != "c:70" || !got.Approved || got.Owner || got.Code != "" {
		t.Errorf("admitted %+v", got)
	}
	if p, ok, err := b.FindPairing(t.Context(), "c:7"); !ok || !p.Approved || err != nil {
		t.Errorf("the other process does not see it: %+v, %v, %v", p, ok, err)
	}
	if _, err := command.Admit(t.Context(), channels.Admission{Code: asked.Code}); !errors.Is(err, channels.ErrNoCode) {
		t.Errorf("a code was used twice: %v", err)
	}
	if p, err := b.RequestPairing(t.Context(), "c:7", "c:70"); err != nil || !p.Approved || p.Code != "" {
		t.Errorf("somebody admitted asks: %+v, %v", p, err)
	}
}

func testRequestsAreBounded(t *testing.T, s suite) {
	b := s.open(t)
	admitted, err := b.RequestPairing(t.Context(), "c:admitted", "c:admitted")
	requireNoError(t, err)
	_, err = b.Admit(t.Context(), channels.Admission{Code: admitted.Code})
	requireNoError(t, err)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 52 {
				who := fmt.Sprintf("c:%d", 52*i+j)
				if _, err := b.RequestPairing(t.Context(), who, who); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	last, err := b.RequestPairing(t.Context(), "c:last", "c:last")
	requireNoError(t, err)
	all, err := b.Pairings(t.Context())
	requireNoError(t, err)
	if len(all) != 1001 {
		t.Errorf("%d pairings, want 1000 requests and the one admitted", len(all))
	}
	if _, ok, err := b.FindPairing(t.Context(), "c:admitted"); !ok || err != nil {
		t.Errorf("requests pushed out an admission: %v", err)
	}
	if _, err := b.Admit(t.Context(), channels.Admission{Code: last.Code}); err != nil {
		t.Errorf("the newest request made no room: %v", err)
	}
}

func testOffers(t *testing.T, s suite) {
	b := s.open(t)
	old, err := b.OfferOwner(t.Context(), "c")
	requireNoError(t, err)
	code, err := b.OfferOwner(t.Context(), "c")
	requireNoError(t, err)
	if len(code) < 20 {
		t.Errorf("code %q is short", code)
	}
	for _, book := range []channels.Pairings{b, s.open(t)} {
		if stands, err := book.StandingOffer(t.Context(), "c"); err != nil || stands != code {
			t.Errorf("%q stands, %v, want the offer that was made", stands, err)
		}
	}
	b = s.reopen(t, b)
	for name, wrong := range map[string]channels.Admission{
		"voided":          {Code: old, Person: "c:1", Chat: "c:1"},
		"another channel": {Code: code, Person: "d:1", Chat: "d:1"},
		"nobody's":        {Code: code},
		"wrong":           {Code: code + "A", Person: "c:1", Chat: "c:1"},
	} {
		if _, err := b.Admit(t.Context(), wrong); !errors.Is(err, channels.ErrNoCode) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var wg sync.WaitGroup
	owners := make(chan string, 10)
	for i := range 10 {
		wg.Go(func() {
			who := fmt.Sprint("c:", i)
			if p, err := b.Admit(t.Context(), channels.Admission{Code: code, Person: who, Chat: who}); err == nil && p.Owner && p.Approved {
				owners <- p.Person
			} else if !errors.Is(err, channels.ErrNoCode) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	wg.Wait()
	if len(owners) != 1 {
		t.Fatalf("%d people own by one code", len(owners))
	}
	owner, ok, err := b.FindPairing(t.Context(), <-owners)
	if !ok || !owner.Owner || err != nil {
		t.Errorf("owner is %+v, %v, %v", owner, ok, err)
	}
	vain, err := b.OfferOwner(t.Context(), "c")
	requireNoError(t, err)
	if p, err := b.Admit(t.Context(), channels.Admission{Code: vain, Person: "c:12", Chat: "c:12"}); !errors.Is(err, channels.ErrNoCode) {
		t.Errorf("a code made a second owner: %+v, %v", p, err)
	}
	requireNoError(t, b.Revoke(t.Context(), owner.Person))
	testStandingOffer(t, s, b, code)
}

// testStandingOffer makes several processes make an offer at the same time while there is none: all must get the
// same one.
func testStandingOffer(t *testing.T, s suite, b channels.Pairings, used string) {
	other := s.open(t)
	var codes [10]string
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			book := b
			if i%2 == 1 {
				book = other
			}
			var err error
			if codes[i], err = book.StandingOffer(t.Context(), "c"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, code := range codes {
		if code != codes[0] || code == used || len(code) < 20 {
			t.Fatalf("the offers are %q, after %q was used", codes, used)
		}
	}
	if p, err := b.Admit(t.Context(), channels.Admission{Code: codes[0], Person: "c:11", Chat: "c:11"}); err != nil || !p.Owner {
		t.Errorf("the offer that stands makes %+v, %v", p, err)
	}
}

func testRevoke(t *testing.T, s suite) {
	b := s.open(t)
	asked, err := b.RequestPairing(t.Context(), "c:1", "c:1")
	requireNoError(t, err)
	_, err = b.Admit(t.Context(), channels.Admission{Code: asked.Code})
	requireNoError(t, err)
	open, err := b.RequestPairing(t.Context(), "c:2", "c:2")
	requireNoError(t, err)
	for _, who := range []string{"c:1", "c:2"} {
		requireNoError(t, s.open(t).Revoke(t.Context(), who))
		if err := b.Revoke(t.Context(), who); !errors.Is(err, channels.ErrNoCode) {
			t.Errorf("revoked twice: %v", err)
		}
	}
	if _, ok, err := b.FindPairing(t.Context(), "c:1"); ok || err != nil {
		t.Errorf("still paired: %v", err)
	}
	if _, err := b.Admit(t.Context(), channels.Admission{Code: open.Code}); !errors.Is(err, channels.ErrNoCode) {
		t.Errorf("a revoked request was approved: %v", err)
	}
}

func testNames(t *testing.T, s suite) {
	b := s.open(t)
	names := func() string {
		t.Helper()
		var got []string
		pairings, err := b.Pairings(t.Context())
		requireNoError(t, err)
		for _, p := range pairings {
			got = append(got, p.Person+" "+p.Name)
		}
		chats, err := b.Chats(t.Context())
		requireNoError(t, err)
		for _, c := range chats {
			got = append(got, c.Address.String()+" "+c.Person+" "+c.Name)
		}
		return strings.Join(got, "|")
	}
	requireNoError(t, b.SetName(t.Context(), "c:7", "nobody asked"))
	asked, err := b.RequestPairing(t.Context(), "c:7", "c:70")
	requireNoError(t, err)
	at := bus.Address{Channel: "c", Chat: "70"}
	requireNoError(t, b.RecordChat(t.Context(), channels.Chat{Address: at, Session: "main:c:70"}))
	if got := names(); got != "c:7 |c:70  " {
		t.Errorf("before a name is known: %q", got)
	}
	for _, name := range []string{"Ada", "Ada\x00 \xff\n(home)", "Ada L."} {
		requireNoError(t, b.SetName(t.Context(), "c:7", name))
		requireNoError(t, b.RecordChat(t.Context(), channels.Chat{Address: at, Session: "another", Person: "c:7", Name: name}))
		if got, want := names(), "c:7 "+name+"|c:70 c:7 "+name; got != want {
			t.Errorf("names are %q, want %q", got, want)
		}
	}
	requireNoError(t, b.RecordChat(t.Context(), channels.Chat{Address: at, Session: "main:c:70"})) // this time, the platform does not say the name
	if _, err := b.Admit(t.Context(), channels.Admission{Code: asked.Code}); err != nil {
		t.Fatal(err)
	}
	b = s.reopen(t, b)
	if got := names(); got != "c:7 Ada L.|c:70 c:7 Ada L." {
		t.Errorf("once admitted: %q", got)
	}
	requireNoError(t, b.SetName(t.Context(), "c:7", strings.Repeat("ü", 1000)))
	if p, _, err := b.FindPairing(t.Context(), "c:7"); err != nil || p.Name != strings.Repeat("ü", 64) {
		t.Errorf("a long name is %q, %v", p.Name, err)
	}
}
