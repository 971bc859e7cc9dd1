package slacktest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Attach shares a file with a message as that user. It returns the message's ts.
func (s *Server) Attach(channel, user, name, mimetype string, content []byte, fields map[string]any) string {
	all := map[string]any{"text": "", "subtype": "file_share", "files": []any{s.AddFile(name, mimetype, content)}}
	maps.Copy(all, fields)
	return s.Post(channel, user, all)
}

// AddFile stores a file, and returns its entry for the "files" of a message.
func (s *Server) AddFile(name, mimetype string, content []byte) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("F%d", len(s.shared)+1)
	s.shared[id] = content
	at := s.address + "/files-pri/T1-" + id + "/download/" + name
	return map[string]any{
		"id": id, "name": name, "title": name, "mimetype": mimetype, "size": len(content), "mode": "hosted", "url_private": at, "url_private_download": at,
	}
}

// Detach deletes all shared files.
func (s *Server) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = map[string][]byte{}
}

// serveFile serves a file to a token that may read it, and to others the page for signing
// in.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/files-pri/T1-"), "/")
	s.mu.Lock()
	content, ok := s.shared[id]
	allowed := s.scopes == nil || slices.Contains(s.scopes, "files:read")
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+s.botToken, !allowed:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>Sign in to Team")) // the caller may be gone
	case !ok:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(content) // likewise
	}
}
