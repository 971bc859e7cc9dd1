package models_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/search/searchtest"
	"parley/sessions/sqlstore"
)

// The model for embeddings isn't asked anymore once its cost and that of the sessions reach the limit of a day or a
// month, and is asked again when a higher limit applies. A private server that costs nothing is always asked.
func TestCapsStopEmbeddings(t *testing.T) {
	provider := searchtest.NewProvider(t)
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg := &config.Config{Embeddings: config.Embeddings{BaseURL: provider.URL, Model: "small", PriceInput: 100_000_000}, Budget: config.Budget{Day: 100, Month: 1000}}
	m := models.NewMeanings(s.Words(), func() *config.Config { return cfg }, nil, s.Bill(), s.Money(), slog.New(slog.DiscardHandler))
	turn := 0
	wantAsked := func(when string, want bool) {
		t.Helper()
		l, err := s.Open(t.Context(), "main:test:1", time.Now().UnixNano())
		if err != nil {
			t.Fatal(err)
		}
		turn++
		e, err := sessions.NewEntry("t"+strings.Repeat("x", turn), sessions.KindText, sessions.Text{Text: strings.Repeat("hello there ", 50)})
		if err == nil {
			err = l.Append(t.Context(), l.Next(), e)
		}
		if err == nil {
			_, err = s.Words().Fill(t.Context())
		}
		provider.Asked() // ignore the requests so far
		for more := true; more && err == nil; {
			more, err = m.Fill(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := len(provider.Asked()) > 0; got != want {
			t.Errorf("%s: asked %v, want %v", when, got, want)
		}
	}
	wantAsked("at first", true)
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) { // the cost is written shortly after
		if cost, err := s.Bill().Noted(t.Context(), "small", time.Now(), time.Now()); err != nil || time.Now().After(deadline) {
			t.Fatal("what it has cost is not noted", err)
		} else if cost >= 100 {
			break
		}
	}
	wantAsked("beyond the day's cap", false)
	cfg = &config.Config{Embeddings: cfg.Embeddings, Budget: config.Budget{Day: 1_000_000, Month: 100}}
	wantAsked("beyond the month's cap", false)
	cfg = &config.Config{Embeddings: cfg.Embeddings, Budget: config.Budget{Day: 1_000_000, Month: 2_000_000}}
	wantAsked("within greater caps", true)
	if err := s.Money().Reserve(t.Context(), bill.Reservation{ID: "t1#1", Cost: 1_000_000, Caps: []bill.Cap{{Limit: 2_000_000}}, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	wantAsked("beyond the cap by turns", false)
	cfg = &config.Config{Embeddings: config.Embeddings{BaseURL: provider.URL, Model: "small"}, Budget: cfg.Budget}
	wantAsked("at a server of one's own", true)
}
