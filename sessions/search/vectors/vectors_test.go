package vectors_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// openStore opens a database that has a store's tables and no entries.
func openStore(t testing.TB, place string, watch *sqldbtest.Statements) vectors.Store {
	t.Helper()
	ctx := t.Context()
	if watch != nil {
		ctx = watch.Watch(ctx)
	}
	db, err := sqldb.OpenAt(ctx, place, sqlstore.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return vectors.Store{DB: db}
}

func newIdentity(dimensions int) vectors.Identity {
	return vectors.Identity{Model: "m", Prompt: "p", Dimensions: dimensions}
}

// mustTake takes a hold on the vectors of a database, which nobody else has.
func mustTake(t testing.TB, s vectors.Store) vectors.Hold {
	t.Helper()
	h, taken, err := s.Take(t.Context(), time.Hour)
	if err != nil || !taken {
		t.Fatalf("taken: %v, %v", taken, err)
	}
	return h
}

// expireHold makes the current hold on the vectors expire.
func expireHold(t testing.TB, s vectors.Store) {
	t.Helper()
	if _, err := s.DB.Exec(t.Context(), "UPDATE vector_identity SET taken = taken / 2"); err != nil {
		t.Fatal(err)
	}
}

// mustBegin begins vectors with that many dimensions.
func mustBegin(t testing.TB, s vectors.Store, h vectors.Hold, dimensions int) {
	t.Helper()
	if err := s.Begin(t.Context(), h, newIdentity(dimensions)); err != nil {
		t.Fatal(err)
	}
}

// putRandom stores that many random vectors of each session.
func putRandom(t testing.TB, s vectors.Store, h vectors.Hold, sessions, each, dimensions int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for session := range sessions {
		err := s.DB.Write(t.Context(), func(tx *sqldb.Tx) error {
			if err := s.Check(tx, h, newIdentity(dimensions)); err != nil {
				return err
			}
			var rows []vectors.Row
			for n := range each {
				v := make([]float32, dimensions)
				for i := range v {
					v[i] = float32(random.NormFloat64())
				}
				rows = append(rows, vectors.Row{N: int64(n + 1), Vector: vectors.Pack(v)})
			}
			return s.Put(tx, int64(session+1), rows)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNearSearchesOnlyItsScopes(t *testing.T) {
	for name, place := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "store.db"), "postgres": sqldbtest.New(t)} {
		t.Run(name, func(t *testing.T) {
			var statements sqldbtest.Statements
			s := openStore(t, place, &statements)
			h := mustTake(t, s)
			mustBegin(t, s, h, 8)
			putRandom(t, s, h, 5, 20, 8)
			statements.Forget()
			q := vectors.Query{Vector: vectors.Pack([]float32{1, 2, 3, 4, 5, 6, 7, 8}), Identity: newIdentity(8), Limit: 100, Scopes: []vectors.Scope{{Session: 2, After: 15}, {Session: 4}, {Session: 77}}}
			got, average, err := s.Near(t.Context(), q)
			if err != nil || len(got) != 5+20 || average == 0 || !slices.IsSortedFunc(got, func(a, b vectors.Near) int { return int(1000 * (b.Likeness - a.Likeness)) }) {
				t.Errorf("near are %v (average %.2f), %v", got, average, err)
			}
			for _, n := range got {
				if n.Session != 4 && (n.Session != 2 || n.N <= 15) {
					t.Errorf("near is %+v, which is in no scope", n)
				}
			}
			if !s.DB.IsPostgres() {
				sqldbtest.WantNoScan(t, s.DB, statements.List(), func(table, _ string) bool { return table != "v" && table != "e" })
			}
			q.Identity.Prompt = "other"
			if got, _, err := s.Near(t.Context(), q); err != nil || len(got) > 0 {
				t.Errorf("of another identity near are %v, %v", got, err)
			}
			err = s.DB.Write(t.Context(), func(tx *sqldb.Tx) error { return s.Check(tx, h, q.Identity) })
			if !errors.Is(err, vectors.ErrOtherIdentity) {
				t.Errorf("another identity is checked with %v", err)
			}
		})
	}
}

// A process whose hold has ended changes nothing anymore, and does not take the hold from the process that has
// it.
func TestAProcessWhoseHoldEndedChangesNothing(t *testing.T) {
	for name, place := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "store.db"), "postgres": sqldbtest.New(t)} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, place, nil)
			stale := mustTake(t, s)
			mustBegin(t, s, stale, 8)
			if _, taken, err := s.Take(t.Context(), time.Hour); taken || err != nil {
				t.Fatalf("two have taken them: %v", err)
			}
			expireHold(t, s)
			putRandom(t, s, mustTake(t, s), 2, 3, 8)
			for what, do := range map[string]func(vectors.Hold) error{
				"begins anew": func(h vectors.Hold) error { return s.Begin(t.Context(), h, newIdentity(4)) },
				"puts": func(h vectors.Hold) error {
					return s.DB.Write(t.Context(), func(tx *sqldb.Tx) error { return s.Check(tx, h, newIdentity(8)) })
				},
			} {
				for _, h := range []vectors.Hold{stale, {}} {
					if err := do(h); !errors.Is(err, vectors.ErrOvertaken) {
						t.Errorf("who was overtaken %s with %v", what, err)
					}
				}
			}
			if err := s.Leave(t.Context(), stale); err != nil {
				t.Error(err)
			}
			if _, taken, err := s.Take(t.Context(), time.Hour); taken || err != nil {
				t.Errorf("who was overtaken has let others take them: %v", err)
			}
			near, _, err := s.Near(t.Context(), vectors.Query{Vector: vectors.Pack([]float32{1, 2, 3, 4, 5, 6, 7, 8}), Identity: newIdentity(8), Limit: 10, Scopes: []vectors.Scope{{Session: 1}, {Session: 2}}})
			if err != nil || len(near) != 6 {
				t.Errorf("there are the vectors %v, %v", near, err)
			}
		})
	}
}

// A hold that was released can't be used, even if nobody else has taken the vectors.
func TestAReleasedHoldIsInvalid(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"), nil)
	h := mustTake(t, s)
	if err := s.Leave(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for _, h := range []vectors.Hold{h, {}} {
		if err := s.Begin(t.Context(), h, newIdentity(8)); !errors.Is(err, vectors.ErrOvertaken) {
			t.Errorf("it begins anew with %v", err)
		}
	}
	mustTake(t, s)
}

// BenchmarkNear searches 20,000 vectors of 768 dimensions, in 20 sessions of 40.
func BenchmarkNear(b *testing.B) {
	const sessions, each, dimensions = 40, 1000, 768
	for name, place := range map[string]func() string{"sqlite": func() string { return filepath.Join(b.TempDir(), "store.db") }, "postgres": func() string { return sqldbtest.New(b) }} {
		b.Run(name, func(b *testing.B) {
			s := openStore(b, place(), nil)
			h := mustTake(b, s)
			mustBegin(b, s, h, dimensions)
			putRandom(b, s, h, sessions, each, dimensions)
			q := vectors.Query{Identity: newIdentity(dimensions), Limit: 30}
			for session := range sessions / 2 {
				q.Scopes = append(q.Scopes, vectors.Scope{Session: int64(2*session + 1)})
			}
			v := make([]float32, dimensions)
			for i := range v {
				v[i] = float32(i % 7)
			}
			q.Vector = vectors.Pack(v)
			for b.Loop() {
				if got, _, err := s.Near(b.Context(), q); err != nil || len(got) != 30 {
					b.Fatal(fmt.Sprint(len(got), err))
				}
			}
		})
	}
}
