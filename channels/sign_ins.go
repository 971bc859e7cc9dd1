package channels

import (
	"context"
	"errors"
	"time"
)

// ErrNoSignIn says that a code or a secret does not belong to a sign-in, or no longer does.
var ErrNoSignIn = errors.New("there's no such sign-in")

// How long sign-ins last.
const (
	// SignInCodeLasts is how long a code can be used: just long enough to open a browser, because somebody may read
	// it over the person's shoulder.
	SignInCodeLasts = time.Minute
	// SignInLasts is how long a sign-in lasts after its last use.
	SignInLasts = 30 * 24 * time.Hour
)

// A SignIn is a browser in which somebody has signed in to the web page.
type SignIn struct {
	ID string
	// Caller names the holder of the browser's rights: the owner, or the holder of an API token.
	Caller string
	// Proof is derived from the caller's token, so that the sign-in ends when the token changes.
	Proof  string
	Device string    // the browser's description of itself
	Began  time.Time // when the person signed in
	Seen   time.Time // when the browser was last seen, accurate to an hour
}

// SignIns remembers who has signed in to the web page. It stores only hashes of codes and secrets, so that nobody
// can sign in with the contents of the database or of a backup.
type SignIns interface {
	// OfferSignIn makes a code, too long to be guessed, with which a browser can sign in as the caller.
	// It can be used once, within SignInCodeLasts.
	OfferSignIn(ctx context.Context, caller string) (code string, err error)
	// RedeemSignIn uses up a code and returns its caller; ErrNoSignIn if the code is unknown, was used,
	// or is too old. Only one of several calls with the same code succeeds.
	RedeemSignIn(ctx context.Context, code string) (caller string, err error)
	// BeginSignIn stores a new sign-in with its Caller, Proof and Device, and returns the browser's
	// secret. Both are durable when it returns.
	BeginSignIn(ctx context.Context, s SignIn) (secret string, begun SignIn, err error)
	// FindSignIn returns the sign-in of the browser with that secret, and records that it was seen. It returns
	// ErrNoSignIn if the sign-in has ended, or was not used for SignInLasts.
	FindSignIn(ctx context.Context, secret string) (SignIn, error)
	// SignIns lists all sign-ins, most recently used first.
	SignIns(ctx context.Context) ([]SignIn, error)
	// EndSignIn ends the sign-in with that id, immediately and for all processes; ErrNoSignIn if there is none.
	EndSignIn(ctx context.Context, id string) error
}
