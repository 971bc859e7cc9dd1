package telegramtest

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"maps"
	"net/http"
	"strings"
)

// maxDownload is the size, in bytes, of the largest file that bots may download.
const maxDownload = 20 << 20

// Attach makes the user send a file to the chat, and returns the id of the message. The file is in the message's
// field kind, such as "document", "photo" or "voice"; fields are the message's other fields, such as a caption.
func (s *Server) Attach(chat, user int64, kind, name string, content []byte, fields map[string]any) int {
	s.mu.Lock()
	id := fmt.Sprintf("file%d", len(s.files)+1)
	s.files[id] = content
	s.mu.Unlock()
	file := map[string]any{"file_id": id, "file_unique_id": "u" + id, "file_size": len(content)}
	var value any = file
	switch kind {
	case "photo":
		small := maps.Clone(file)
		small["file_id"], small["width"], small["height"] = "thumbnail", 90, 90
		file["width"], file["height"] = 900, 900
		value = []any{small, file}
	case "voice":
		file["duration"], file["mime_type"] = 1, "audio/ogg"
	default:
		file["file_name"], file["mime_type"] = name, "text/plain"
	}
	all := map[string]any{kind: value}
	maps.Copy(all, fields)
	return s.Post(chat, user, all)
}

// storePixel stores a one-pixel picture under an id.
func (s *Server) storePixel(id string) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err) // a buffer accepts everything
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string][]byte{}
	}
	s.files[id] = b.Bytes()
}

// Detach deletes every file.
func (s *Server) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = map[string][]byte{}
}

// getFile answers the method with that name.
func (s *Server) getFile(p params) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.files[p["file_id"]]
	switch {
	case !ok:
		return nil, badRequest("wrong file_id or the file is temporarily unavailable")
	case len(content) > maxDownload:
		return nil, badRequest("file is too big")
	}
	return fmt.Appendf(nil, `{"ok":true,"result":{"file_id":%q,"file_size":%d,"file_path":"documents/%[1]s"}}`, p["file_id"], len(content)), nil
}

// download answers /file/bot<token>/<path>.
func (s *Server) download(w http.ResponseWriter, path string) {
	token, path, _ := strings.Cut(path, "/")
	if token != s.token {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	s.mu.Lock()
	content, ok := s.files[strings.TrimPrefix(path, "documents/")]
	s.calls["download"]++
	s.mu.Unlock()
	if !ok {
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	}
	_, _ = w.Write(content) // the caller may be gone
}
