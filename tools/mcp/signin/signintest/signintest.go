// Package signintest runs an authorization server, and a service behind it, for tests.
package signintest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Server is an OAuth server that approves each request, as if somebody had agreed. Each code and refresh token
// works once. At /mcp it has a service that answers every client that has one of its tokens.
type Server struct {
	URL string

	mu        sync.Mutex
	service   http.Handler
	life      time.Duration
	names     string // the authorization server that the service names
	resource  string // what tokens are given for
	broken    bool
	clients   map[string]url.Values
	codes     map[string]url.Values // by code: the parameters of the request for it
	access    map[string]time.Time  // when each token expires
	refresh   map[string]bool       // refresh tokens; false if one was used already
	refreshes int
	reuses    int
}

// New runs a server in front of a service. The test stops it with Close.
func New(service http.Handler) (*Server, *httptest.Server) {
	s := &Server{
		service: service, life: time.Hour, clients: map[string]url.Values{}, codes: map[string]url.Values{},
		access: map[string]time.Time{}, refresh: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", s.describeService)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.describe)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("/mcp", s.serve)
	web := httptest.NewServer(mux)
	s.URL, s.names, s.resource = web.URL, web.URL, web.URL+"/mcp"
	return s, web
}

// Expire invalidates all tokens that were issued, and sets how long the next ones are valid.
func (s *Server) Expire(next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = next
	clear(s.access)
}

// Name makes the service name another authorization server, which from now on issues tokens for it.
func (s *Server) Name(other *Server) {
	s.mu.Lock()
	s.names = other.URL
	s.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	other.resource = s.URL + "/mcp"
}

// Registered returns how many clients have registered.
func (s *Server) Registered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// Break makes the server answer requests for tokens with status 500, or stop doing so.
func (s *Server) Break(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// Revoke invalidates all codes and tokens that were issued.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	clear(s.refresh)
}

// Refreshes returns how many times a token was renewed, and how many times a client tried to do so with a used
// refresh token.
func (s *Server) Refreshes() (good, reused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refreshes, s.reuses
}

// Secrets returns all tokens that the server has issued.
func (s *Server) Secrets() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token := range s.access {
		all = append(all, token)
	}
	for token := range s.refresh {
		all = append(all, token)
	}
	return all
}

// Browse opens an address like a browser whose user agrees to everything, and returns the address at which it ends.
func Browse(address string) (ends *url.URL, err error) {
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(address)
	if err != nil {
		return nil, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	return answer.Location()
}

func (s *Server) describeService(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.names}, "scopes_supported": []string{"notes"}})
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"notes", "offline_access"},
		"authorization_response_iss_parameter_supported": true, "token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
	})
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Redirects) != 1 {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_redirect_uri"})
		return
	}
	id, secret := rand.Text(), rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[id] = url.Values{"secret": {secret}, "redirect_uri": asked.Redirects}
	writeJSON(w, http.StatusCreated, map[string]any{"client_id": id, "client_secret": secret, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": "client_secret_basic"})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := r.URL.Query()
	client, known := s.clients[asked.Get("client_id")]
	if !known || client.Get("redirect_uri") != asked.Get("redirect_uri") || asked.Get("code_challenge_method") != "S256" ||
		asked.Get("resource") != s.resource || !slices.Contains(strings.Fields(asked.Get("scope")), "notes") {
		http.Error(w, "this is not asked as it should be", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {asked.Get("state")}, "iss": {s.URL}}
	code := rand.Text()
	s.codes[code] = asked
	back.Set("code", code)
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	client, known := s.clients[id]
	switch {
	case s.broken:
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	case !known || client.Get("secret") != secret:
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	case r.PostFormValue("grant_type") == "authorization_code" && s.redeemCode(r, id):
	case r.PostFormValue("grant_type") == "refresh_token" && s.redeemRefresh(r.PostFormValue("refresh_token")):
	default:
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	s.access[access], s.refresh[refresh] = time.Now().Add(s.life), true
	writeJSON(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": int(s.life.Seconds()), "scope": "notes"})
}

// redeemCode reports whether the code in a request is valid for the client. The code cannot be
// used again.
func (s *Server) redeemCode(r *http.Request, client string) bool {
	code := r.PostFormValue("code")
	asked, known := s.codes[code]
	delete(s.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	return known && asked.Get("client_id") == client && asked.Get("redirect_uri") == r.PostFormValue("redirect_uri") &&
		asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && r.PostFormValue("resource") == s.resource
}

func (s *Server) redeemRefresh(refresh string) bool {
	unused, known := s.refresh[refresh]
	switch {
	case known && unused:
		s.refresh[refresh] = false
		s.refreshes++
	case known:
		s.reuses++
	}
	return known && unused
}

// serve lets requests with a valid token through to the service.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	until, known := s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	s.mu.Unlock()
	if !known || time.Now().After(until) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp", scope="notes"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	s.service.ServeHTTP(w, r)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
