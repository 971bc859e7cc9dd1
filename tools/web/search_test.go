package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/web"
)

// fakeServices serves a fake of each search service.
func fakeServices(t *testing.T) string {
	t.Helper()
	list := func(w http.ResponseWriter, wrap, text string) {
		fmt.Fprintf(w, wrap, `[{"title":"<b>Go</b> &amp; more","url":"https://go.dev/doc?a=b","`+text+`":"The <strong>Go</strong>\nlanguage","age":"x"},
			{"title":"Two","url":"javascript:alert(1)","`+text+`":""},{"title":"Three","url":"http://three.example/","`+text+`":null},{"title":"Four","url":"http://four.example/","`+text+`":"4"}]`)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /res/v1/web/search", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Subscription-Token") != "brave-key" {
			http.Error(w, `{"type":"ErrorResponse"}`, http.StatusUnprocessableEntity)
			return
		}
		if r.URL.Query().Get("q") != "go language & more" || r.URL.Query().Get("count") != "2" {
			http.Error(w, "asked "+r.URL.RawQuery, http.StatusBadRequest)
			return
		}
		list(w, `{"type":"search","web":{"type":"search","results":%s}}`, "description")
	})
	mux.HandleFunc("POST /search", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Query      string
			MaxResults int `json:"max_results"`
		}
		if r.Header.Get("Authorization") != "Bearer tavily-key" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Query != "go language & more" || asked.MaxResults != 2 || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		list(w, `{"query":"x","results":%s,"response_time":1}`, "content")
	})
	mux.HandleFunc("GET /sub/search", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") != "json" || r.URL.Query().Get("q") != "go language & more" {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		list(w, `{"query":"x","number_of_results":0,"results":%s}`, "content")
	})
	mux.HandleFunc("GET /html/search", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusForbidden) })
	mux.HandleFunc("GET /busy/search", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusTooManyRequests) })
	mux.HandleFunc("GET /words/search", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	mux.HandleFunc("GET /long/search", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"results":[`+strings.Repeat(" ", 2<<20)+`]}`)
	})
	mux.Handle("GET /away/search", http.RedirectHandler("/sub/search", http.StatusFound))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// Each service is asked in its own way, and the results are the same. The fake server is on this machine, as an
// operator's own may be.
func TestSearch(t *testing.T) {
	base := fakeServices(t)
	for name, search := range map[string]web.Search{
		"brave":   {Service: "brave", APIKey: "brave-key", BaseURL: base},
		"tavily":  {Service: "tavily", APIKey: "tavily-key", BaseURL: base + "/"},
		"searxng": {Service: "searxng", BaseURL: base + "/sub"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(web.Settings{Search: search}, false)
			c.Want(t, "web_search", args("query", " go language & more ", "num_results", 2),
				`{"query":"go language & more","results":[{"title":"Go & more","url":"https://go.dev/doc?a=b","snippet":"The Go language"},{"title":"Three","url":"http://three.example/","snippet":""}]}`)
			tool, _ := c.Set.Lookup("web_search")
			call := c.Call
			call.Args = json.RawMessage(args("query", "go language & more", "num_results", 2))
			if r, err := tool.Run(t.Context(), call); err != nil || !r.Untrusted {
				t.Errorf("the result is untrusted: %t, %v", r.Untrusted, err)
			}
		})
	}
}

func TestSearchFails(t *testing.T) {
	base := fakeServices(t)
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, o := range []struct {
		search web.Search
		says   string
	}{
		{web.Search{Service: "brave", APIKey: "wrong-key", BaseURL: base}, "[web] api_key"},
		{web.Search{Service: "tavily", APIKey: "wrong-key", BaseURL: base}, "[web] api_key"},
		{web.Search{Service: "searxng", BaseURL: base + "/html"}, "settings.yml"},
		{web.Search{Service: "searxng", BaseURL: base + "/busy"}, "later"},
		{web.Search{Service: "searxng", BaseURL: base + "/words"}, "cannot be read"},
		{web.Search{Service: "searxng", BaseURL: base + "/long"}, "cannot be read"},
		{web.Search{Service: "searxng", BaseURL: base + "/away"}, "status 302"},
		{web.Search{Service: "searxng", BaseURL: closed.URL}, "cannot be reached"},
	} {
		got, err := newCaller(web.Settings{Search: o.search}, false).Try(t.Context(), "web_search", args("query", "go language & more"))
		failed, ok := errors.AsType[*tools.Error](err)
		if !ok || failed.Code != tools.ExecutionFailed || !strings.Contains(failed.Message, o.says) || strings.Contains(failed.Message, "wrong-key") {
			t.Errorf("%+v gave %s, %v; want %q", o.search, got, err, o.says)
		}
	}
	c := newCaller(web.Settings{}, false)
	for _, query := range []string{"", "  ", strings.Repeat("a", 401)} {
		if _, err := c.Try(t.Context(), "web_search", args("query", query)); err == nil {
			t.Errorf("the query %.20q is taken", query)
		}
	}
}

// If no service is configured, the model is told so, and the call doesn't fail.
func TestSearchIsNotConfigured(t *testing.T) {
	var got struct{ Error, Message, Query string }
	raw := newCaller(web.Settings{}, false).Want(t, "web_search", args("query", "go"), "")
	if err := json.Unmarshal([]byte(raw), &got); err != nil || got.Query != "go" || got.Error == "" || !strings.Contains(got.Message, "[web] search") || !strings.Contains(got.Message, "api_key") {
		t.Errorf("got %s, %v", raw, err)
	}
}
