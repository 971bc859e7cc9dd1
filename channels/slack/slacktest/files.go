package slacktest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Attach lets a user share a file with a message. It returns the message's ts.
func (s *Server) Attach(channel, user, name, mimetype string, content []byte, fields map[string]any) string {
	all := map[string]any{"text": "", "subtype": "file_share", "files": []any{s.File(name, mimetype, content)}}
	maps.Copy(all, fields)
	return s.Post(channel, user, all)
}

// File keeps a file, and returns it as it stands in the "files" of a message.
func (s *Server) File(name, mimetype string, content []byte) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("F%d", len(s.shared)+1)
	s.shared[id] = content
	at := s.address + "/files-pri/T1-" + id + "/download/" + name
	return map[string]any{
		"id": id, "name": name, "title": name, "mimetype": mimetype, "size": len(content), "mode": "hosted", "url_private": at, "url_private_download": at,
	}
}

// Detach forgets every file that was shared.
func (s *Server) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = map[string][]byte{}
}

// share serves a file to who may read it, and to others the page to sign in.
func (s *Server) share(w http.ResponseWriter, r *http.Request) {
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
