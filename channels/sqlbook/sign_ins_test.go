package sqlbook_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
)

func TestSignInsExpire(t *testing.T) {
	place := newPlace(t)
	synctest.Test(t, func(t *testing.T) {
		b := openBook(t, place)
		ctx := t.Context()
		code := func() string {
			made, err := b.OfferSignIn(ctx, "owner")
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		late, inTime := code(), ""
		time.Sleep(channels.SignInCodeLasts / 2) // in the bubble's fake time
		inTime = code()
		time.Sleep(channels.SignInCodeLasts / 2)
		if _, err := b.RedeemSignIn(ctx, late); !errors.Is(err, channels.ErrNoSignIn) {
			t.Errorf("a code that is too old signs in: %v", err)
		}
		if _, err := b.RedeemSignIn(ctx, inTime); err != nil {
			t.Errorf("a code that is half a minute old does not sign in: %v", err)
		}

		secret, _, err := b.BeginSignIn(ctx, channels.SignIn{Caller: "owner"})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // each use extends it
			time.Sleep(channels.SignInLasts - time.Hour)
			if in, err := b.FindSignIn(ctx, secret); err != nil || time.Since(in.Seen) != 0 {
				t.Fatalf("a sign-in that is used is %+v, %v", in, err)
			}
		}
		time.Sleep(channels.SignInLasts)
		if _, err := b.FindSignIn(ctx, secret); !errors.Is(err, channels.ErrNoSignIn) {
			t.Errorf("a sign-in that was not used for a month is found: %v", err)
		}
		if all, err := b.SignIns(ctx); err != nil || len(all) > 0 {
			t.Errorf("listed are %+v, %v", all, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSignInsAreBounded(t *testing.T) {
	b := openBook(t, newPlace(t))
	other, _, err := b.BeginSignIn(t.Context(), channels.SignIn{Caller: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	var first string
	for i := range 103 {
		secret, _, err := b.BeginSignIn(t.Context(), channels.SignIn{Caller: "owner"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = secret
		}
	}
	if all, err := b.SignIns(t.Context()); err != nil || len(all) != 101 {
		t.Errorf("%d are remembered, %v", len(all), err)
	}
	if _, err := b.FindSignIn(t.Context(), first); !errors.Is(err, channels.ErrNoSignIn) {
		t.Errorf("the oldest one is still there: %v", err)
	}
	if _, err := b.FindSignIn(t.Context(), other); err != nil {
		t.Errorf("somebody else's sign-ins have ended that of anna: %v", err)
	}
}
