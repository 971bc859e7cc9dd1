package sqlbook_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
)

func TestOffersExpire(t *testing.T) {
	place := newPlace(t)
	synctest.Test(t, func(t *testing.T) {
		b := openBook(t, place)
		standing := func() string {
			code, err := b.StandingOffer(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
		old := standing()
		time.Sleep(40 * time.Minute) // in the bubble's fake time
		if code := standing(); code != old {
			t.Error("an offer that stands was replaced")
		}
		time.Sleep(21 * time.Minute) // reading the offer does not extend it
		if p, err := b.Admit(t.Context(), channels.Admission{Code: old, Person: "c:1", Chat: "c:1"}); !errors.Is(err, channels.ErrNoCode) {
			t.Errorf("an old offer makes %+v, %v", p, err)
		}
		code := standing()
		if code == old {
			t.Error("an old offer stands")
		}
		if p, err := b.Admit(t.Context(), channels.Admission{Code: code, Person: "c:1", Chat: "c:1"}); err != nil || !p.Owner {
			t.Errorf("the new offer makes %+v, %v", p, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
