package doctor

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/server/models"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/search"
	"parley/sessions/search/searchtest"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

func TestDoctorOnTheIndex(t *testing.T) {
	cfg := &config.Config{Home: t.TempDir()}
	if got := checkIndex(t.Context(), cfg); got != nil {
		t.Errorf("without a home: %+v", got)
	}
	path := filepath.Join(cfg.Home, home.StoreFile)
	before := sqlstore.Schema().SQLite[:2] // the schema of an old release
	db, err := sqldb.Open(t.Context(), path, before)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := checkIndex(t.Context(), cfg); got != nil {
		t.Errorf("of a home without an index: %+v", got)
	}
	s, err := sqlstore.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Open(t.Context(), "main:test:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := sessions.NewEntry("t", sessions.KindText, sessions.Text{Text: "hello"})
	if err == nil {
		err = l.Append(t.Context(), 1, e, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := checkIndex(t.Context(), cfg); len(got) != 1 || got[0].State != fine || !strings.Contains(got[0].Detail, "0 entries are indexed; 2 newer ones") {
		t.Errorf("with new entries: %+v", got)
	}
	if _, err := s.Words().Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := checkIndex(t.Context(), cfg); len(got) != 1 || got[0].State != fine || got[0].Detail != "2 entries are indexed" {
		t.Errorf("filled: %+v", got)
	}
	if got := judgeIndex(search.State{Indexed: 5, Missing: 3}); got.State != note || got.Remedy == "" {
		t.Errorf("with entries that are missing: %+v", got)
	}
	if got := judgeIndex(search.State{Indexed: 5, Stray: 1}); got.State != wrong || got.Remedy == "" {
		t.Errorf("with rows that are stray: %+v", got)
	}
	if home.StoreFile != homedb.File {
		t.Errorf("the store is in %s", home.StoreFile)
	}
}

func TestDoctorOnEmbeddings(t *testing.T) {
	provider := searchtest.NewProvider(t)
	cfg := &config.Config{Home: t.TempDir(), Embeddings: config.Embeddings{BaseURL: provider.URL, Model: "small"}}
	s, err := sqlstore.Open(t.Context(), filepath.Join(cfg.Home, home.StoreFile))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := func(when, state string, parts ...string) {
		t.Helper()
		got := checkIndex(t.Context(), cfg)
		if len(got) != 2 || got[1].Part != "embeddings" || got[1].State != state || (got[1].Remedy == "") != (state == fine) {
			t.Errorf("%s: %+v", when, got)
			return
		}
		for _, part := range parts {
			if !strings.Contains(got[1].Detail, part) {
				t.Errorf("%s: %q lacks %q", when, got[1].Detail, part)
			}
		}
	}
	want("at first", note, "small at http://127.0.0.1", "256 dimensions", "0 entries have vectors", "recall matches words only")
	m := models.NewMeanings(s.Words(), func() *config.Config { return cfg }, nil, s.Bill(), s.Money(), slog.New(slog.DiscardHandler))
	say := func(turn string) {
		t.Helper()
		l, err := s.Open(t.Context(), "main:test:1", time.Now().UnixNano())
		var e sessions.Entry
		if err == nil {
			e, err = sessions.NewEntry(turn, sessions.KindText, sessions.Text{Text: "hello there"})
		}
		if err == nil {
			err = l.Append(t.Context(), l.Next(), e)
		}
		if err == nil {
			_, err = s.Words().Fill(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	say("t1")
	for more := true; more; {
		if more, err = m.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want("filled", fine, "1 entries have vectors")
	say("t2")
	want("with a new entry", fine, "1 entries have vectors; at most 1 are still waiting")
	cfg.Embeddings.Model = "large"
	want("with another model", note, "these are from small, with 256 dimensions", "words only")
	cfg.Embeddings.Model = "small"
	provider.Resize(100)
	want("with another length", note, "these are from small, with 256 dimensions")
	provider.Fail(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		http.Error(w, "", http.StatusUnauthorized)
		return true
	})
	want("with a wrong key", wrong, "words only")
	used, err := s.Bill().Usage(t.Context(), bill.ByModel, time.Now(), time.Now())
	if err != nil || len(used) != 1 || used[0].Key != "small" || used[0].Calls != 2 || used[0].Input != 2 || used[0].Unpriced != 0 {
		t.Errorf("noted is %+v, %v", used, err)
	}
}

// When the model for embeddings fails, the finding names the settings of that model, and not those of the model that
// answers.
func TestDoctorNamesTheSettingsOfEmbeddings(t *testing.T) {
	provider := searchtest.NewProvider(t)
	cfg := &config.Config{Home: t.TempDir(), Embeddings: config.Embeddings{BaseURL: provider.URL, Model: "small", APIKey: "sk-1"}}
	s, err := sqlstore.Open(t.Context(), filepath.Join(cfg.Home, home.StoreFile))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := func(when, remedy string) {
		t.Helper()
		got := checkIndex(t.Context(), cfg)
		if len(got) != 2 || got[1].State != wrong || !strings.Contains(got[1].Remedy, remedy) || strings.Contains(got[1].Detail+got[1].Remedy, "model.") {
			t.Errorf("%s: %+v, want %q", when, got, remedy)
		}
	}
	for when, c := range map[string]struct {
		status         int
		answer, remedy string
	}{
		"a wrong key":              {http.StatusUnauthorized, `{"error":{"message":"bad key"}}`, "set the key that this provider gave you: embeddings.api_key"},
		"a model that is missing":  {http.StatusNotFound, `{"error":{"message":"no such model","code":"model_not_found"}}`, "embeddings.model"},
		"a wrong address":          {http.StatusNotFound, "not found", "usually ends in /v1: embeddings.base_url"},
		"no money":                 {http.StatusPaymentRequired, `{"error":{"message":"quota","code":"insufficient_quota"}}`, "embeddings.api_key"},
		"a country that is barred": {http.StatusForbidden, `{"error":{"message":"not here","code":"unsupported_country_region_territory"}}`, "embeddings.base_url"},
		"a request that is wrong":  {http.StatusBadRequest, `{"error":{"message":"bad"}}`, "embeddings.model, embeddings.base_url and embeddings.api_key"},
		"too much to do":           {http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`, "a running server retries on its own"},
	} {
		provider.Fail(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.answer))
			return true
		})
		want(when, c.remedy)
	}
	cfg.Embeddings.APIKey = ""
	provider.Fail(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		http.Error(w, "", http.StatusUnauthorized)
		return true
	})
	want("no key", "Parley has no key to send: set embeddings.api_key")
	gone := httptest.NewServer(nil)
	cfg.Embeddings.BaseURL = gone.URL
	gone.Close()
	want("no server", "embeddings.base_url")
}
