package api

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"

	"parley/cmd/parley/api/exchange"
)

// sessionFiles serves the files in the workspaces of sessions, for reading.
type sessionFiles struct {
	// open returns the files of a session. It doesn't open anything outside them, whatever name or link leads
	// there; see [parley/sessions/workspace].
	open   func(session string) (fs.FS, error)
	scopes readScopes
	write  time.Duration // how long a caller may take to read a piece of a file
}

// A sessionFile is a file or a folder in the API's JSON.
type sessionFile struct {
	Name    string     `json:"name"` // within the workspace
	Folder  bool       `json:"folder"`
	Bytes   int64      `json:"bytes"`
	Changed *time.Time `json:"changed,omitempty"`
}

// list lists the files and folders in one folder of a session's workspace, sorted by name. It leaves out everything
// else, such as links.
func (f sessionFiles) list(w *exchange.Answer, r *http.Request) error {
	files, folder, err := f.find(w, r, r.URL.Query().Get("folder"))
	if err != nil {
		return err
	}
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	page := struct {
		Files []sessionFile `json:"files"`
		Next  string        `json:"next,omitempty"`
	}{Files: []sessionFile{}}
	entries, err := fs.ReadDir(files, folder)
	if errors.Is(err, fs.ErrNotExist) && folder == "." { // nothing has needed a workspace yet
		return w.JSON(http.StatusOK, page)
	}
	if err != nil {
		return fileRefusal(err)
	}
	after := r.URL.Query().Get("after")
	for _, e := range entries {
		if !e.IsDir() && !e.Type().IsRegular() || path.Join(folder, e.Name()) <= after {
			continue
		}
		if len(page.Files) == limit {
			page.Next = page.Files[limit-1].Name
			break
		}
		one := sessionFile{Name: path.Join(folder, e.Name()), Folder: e.IsDir()}
		if info, err := e.Info(); err == nil && !one.Folder { // the file may be gone by now
			one.Bytes, one.Changed = info.Size(), exchange.SomeTime(info.ModTime())
		}
		page.Files = append(page.Files, one)
	}
	return w.JSON(http.StatusOK, page)
}

// find returns the files of the session in a request's path, and a name in the form that they use; "" means the
// workspace itself.
func (f sessionFiles) find(w *exchange.Answer, r *http.Request, name string) (fs.FS, string, error) {
	key, err := f.scopes.readable(w, r)
	if err != nil {
		return nil, "", err
	}
	if name == "" {
		name = "."
	}
	if !fs.ValidPath(name) {
		return nil, "", noSuchFile()
	}
	files, err := f.open(key.text)
	return files, name, err
}

func noSuchFile() *exchange.Refusal {
	return exchange.NotFound("there's no such file in the session's workspace; in a path, percent-encode its name, including its slashes")
}

// fileRefusal returns the refusal for a request for something that is not a file in the workspace; it returns any
// other error unchanged.
func fileRefusal(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noSuchFile()
	case errors.Is(err, fs.ErrInvalid), errors.Is(err, fs.ErrPermission):
		return exchange.Unprocessable("no_file", "%v", err) // the error names nothing outside the workspace
	}
	return err
}

// download answers with one file, in a way that keeps browsers from showing or running it.
func (f sessionFiles) download(w *exchange.Answer, r *http.Request) error {
	files, name, err := f.find(w, r, r.PathValue("name"))
	if err != nil {
		return err
	}
	file, err := files.Open(name)
	if err != nil {
		return fileRefusal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	for left := info.Size(); left > 0; {
		w.Extend(f.write)
		n, err := io.CopyN(w, file, min(left, 1<<20))
		if left -= n; err != nil { // the caller is gone, or the file has become shorter
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}
