package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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

// prepareUpload answers files.getUploadURLExternal.
func (s *Server) prepareUpload(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastTS++
	id := fmt.Sprint("F", s.lastTS)
	s.uploads[id] = &Message{User: Bot, File: r.Form.Get("filename")}
	writeResult(w, map[string]any{"upload_url": "http://" + r.Host + "/upload/" + id, "file_id": id})
}

// upload receives the content of a file at the URL that prepareUpload gave.
func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	file, _, err := r.FormFile("file")
	if err != nil {
		http.Error(w, "no file", http.StatusBadRequest)
		return
	}
	data, err := io.ReadAll(file)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.uploads[strings.TrimPrefix(r.URL.Path, "/upload/")]
	if err != nil || m == nil {
		http.Error(w, "no such upload", http.StatusNotFound)
		return
	}
	m.Data = data
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(data))) // the caller may be gone
}

// completeUpload answers files.completeUploadExternal: it posts the file.
func (s *Server) completeUpload(w http.ResponseWriter, form url.Values) {
	var files []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if err := json.Unmarshal([]byte(form.Get("files")), &files); err != nil || len(files) != 1 {
		writeError(w, "invalid_arguments")
		return
	}
	s.mu.Lock()
	m := s.uploads[files[0].ID]
	if m == nil || m.Data == nil {
		s.mu.Unlock()
		writeError(w, "file_not_found")
		return
	}
	delete(s.uploads, files[0].ID)
	m.Channel, m.Thread, m.Text = formValue(form, "channel_id", "?"), form.Get("thread_ts"), form.Get("initial_comment")
	put := s.storeSent(m)
	s.mu.Unlock()
	s.announce(put)
	writeResult(w, map[string]any{"files": files})
}
