package channelstest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/channels"
)

func testSignIns(t *testing.T, s suite) {
	b, other := s.open(t), s.open(t)
	ctx := t.Context()
	code, err := b.OfferSignIn(ctx, "owner\x00")
	requireNoError(t, err)
	if len(code) < 20 {
		t.Errorf("the code %q can be guessed", code)
	}
	if caller, err := other.RedeemSignIn(ctx, " "+strings.ToLower(code)+"\n"); err != nil || caller != "owner\x00" {
		t.Fatalf("the code is for %q, %v", caller, err)
	}
	for _, wrong := range []string{code, "", "x", "' OR 1=1"} {
		if caller, err := b.RedeemSignIn(ctx, wrong); !errors.Is(err, channels.ErrNoSignIn) {
			t.Errorf("the code %q is for %q, %v", wrong, caller, err)
		}
	}

	first, begun, err := b.BeginSignIn(ctx, channels.SignIn{Caller: "owner", Proof: "p", Device: strings.Repeat("browser\x00", 100)})
	requireNoError(t, err)
	second, later, err := b.BeginSignIn(ctx, channels.SignIn{Caller: "anna", Proof: "q"})
	requireNoError(t, err)
	if begun.ID == "" || begun.ID == later.ID || first == second || len(first) < 40 || begun.Began.IsZero() || len(begun.Device) > 200 {
		t.Errorf("begun are %+v and %+v", begun, later)
	}
	for secret, want := range map[string]channels.SignIn{first: begun, second: later} {
		if found, err := other.FindSignIn(ctx, secret); err != nil || found != want {
			t.Errorf("another process finds %+v, %v, want %+v", found, err, want)
		}
	}
	all, err := other.SignIns(ctx)
	requireNoError(t, err)
	if len(all) != 2 || !slices.Contains(all, begun) || !slices.Contains(all, later) {
		t.Errorf("another process lists %+v", all)
	}

	requireNoError(t, other.EndSignIn(ctx, begun.ID))
	if err := b.EndSignIn(ctx, begun.ID); !errors.Is(err, channels.ErrNoSignIn) {
		t.Errorf("it ends a second time with %v", err)
	}
	for _, wrong := range []string{first, begun.ID, later.ID, ""} {
		if found, err := b.FindSignIn(ctx, wrong); !errors.Is(err, channels.ErrNoSignIn) {
			t.Errorf("with %q there is %+v, %v", wrong, found, err)
		}
	}
	if _, err := s.reopen(t, b).FindSignIn(ctx, second); err != nil {
		t.Errorf("after a restart the other one is gone: %v", err)
	}
}

// testSignInRace makes several processes use the same code at the same time.
func testSignInRace(t *testing.T, s suite) {
	books := []Book{s.open(t), s.open(t)}
	for range 10 {
		code, err := books[0].OfferSignIn(t.Context(), "owner")
		requireNoError(t, err)
		var racing sync.WaitGroup
		var won atomic.Int32
		for i := range 6 {
			racing.Go(func() {
				switch _, err := books[i%2].RedeemSignIn(t.Context(), code); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, channels.ErrNoSignIn):
					t.Error(err)
				}
			})
		}
		racing.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d have signed in with one code", won.Load())
		}
	}
}
