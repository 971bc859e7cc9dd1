package api_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/api"
	"parley/sessions"
	"parley/sessions/workspace"
)

// withFiles returns an option that makes a rig serve the files of real workspaces below dir.
func withFiles(t *testing.T, dir string) (*workspace.Workspaces, func(*rig)) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	return all, func(x *rig) {
		x.cfg.Files = func(session string) (fs.FS, error) {
			found, err := all.OpenExisting(session)
			if errors.Is(err, fs.ErrNotExist) {
				return os.DirFS(t.TempDir()), nil
			}
			return found, err
		}
	}
}

// Callers who may read a session can download the files in its workspace, and no files outside of it.
func TestFilesOfASession(t *testing.T) {
	all, files := withFiles(t, t.TempDir())
	x := newRig(t, files)
	const key = "main:web:chat"
	dir, err := all.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret.txt")
	for name, text := range map[string]string{
		filepath.Join(dir.Path(), "a.html"): "<script>1</script>", filepath.Join(dir.Path(), "reports", "größe \"1\".txt"): strings.Repeat("x", 3<<20), secret: "xyzzy",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link.txt": secret, "up": "../..", "b.txt": secret} {
		link = filepath.Join(dir.Path(), link)
		make := os.Symlink
		if strings.HasSuffix(link, "b.txt") {
			make = os.Link
		}
		if err := make(to, link); err != nil {
			t.Fatal(err)
		}
	}
	r := x.get(sessionPath(key, "/files"), chatToken)
	if body := string(r.body); r.StatusCode != http.StatusOK || !strings.Contains(body, `{"name":"a.html","folder":false,"bytes":18,`) || !strings.Contains(body, `{"name":"reports","folder":true,`) || strings.Contains(body, "link") || strings.Contains(body, `"up"`) {
		t.Errorf("listed: %d %s", r.StatusCode, body)
	}
	if r := x.get(sessionPath(key, "/files?folder=reports&limit=1"), chatToken); !strings.Contains(string(r.body), `"bytes":3145728`) || strings.Contains(string(r.body), "next") {
		t.Errorf("listed: %d %s", r.StatusCode, r.body)
	}
	if r := x.get(sessionPath(key, "/files?limit=1&after=a.html"), chatToken); strings.Contains(string(r.body), "a.html") || !strings.Contains(string(r.body), `"next":"b.txt"`) {
		t.Errorf("the next page: %d %s", r.StatusCode, r.body)
	}
	if r := x.get(sessionPath("main:web:none", "/files"), readToken); r.StatusCode != http.StatusOK || !strings.Contains(string(r.body), `"files":[]`) {
		t.Errorf("without a workspace: %d %s", r.StatusCode, r.body)
	}

	page := x.get(sessionPath(key, "/files/a.html"), readToken)
	h := page.Header
	if page.StatusCode != http.StatusOK || string(page.body) != "<script>1</script>" || h.Get("Content-Type") != "application/octet-stream" || h.Get("Content-Disposition") != "attachment; filename=a.html" ||
		h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a page comes as %d %q %v", page.StatusCode, page.body, h)
	}
	long := x.get(sessionPath(key, "/files/"+url.PathEscape("reports/größe \"1\".txt")), chatToken)
	if long.StatusCode != http.StatusOK || len(long.body) != 3<<20 || !strings.HasPrefix(long.Header.Get("Content-Disposition"), "attachment; filename*=utf-8''gr%C3%B6") {
		t.Errorf("a long file: %d, %d bytes, %v", long.StatusCode, len(long.body), long.Header)
	}
	for name, want := range map[string]int{
		"none.txt": 404, "../" + filepath.Base(secret): 404, "reports/../../x": 404, secret: 404, "/etc/passwd": 404, "~": 422, "reports": 422,
		"link.txt": 422, "up/x": 422, "up": 422, "b.txt": 422, "a.html/x": 422,
	} {
		r := x.get(sessionPath(key, "/files/"+url.PathEscape(name)), adminToken)
		if r.StatusCode != want || strings.Contains(string(r.body), "xyzzy") || strings.Contains(string(r.body), dir.Path()) {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	for _, folder := range []string{"..", "up", "/"} {
		if r := x.get(sessionPath(key, "/files?folder="+url.QueryEscape(folder)), adminToken); r.StatusCode != 404 && r.StatusCode != 422 {
			t.Errorf("the folder %s: %d %s", folder, r.StatusCode, r.body)
		}
	}
	for _, token := range []string{ciToken, opsToken, scrapeTok} {
		for _, rest := range []string{"/files", "/files/a.html"} {
			if r := x.get(sessionPath(key, rest), token); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s may read %s: %d", token, rest, r.StatusCode)
			}
		}
	}
	for _, rest := range []string{"/files", "/files/a.html"} {
		if r := x.get(sessionPath("main:slack:C1", rest), chatToken); r.StatusCode != http.StatusForbidden {
			t.Errorf("a token reads %s of another's session: %d", rest, r.StatusCode)
		}
	}
}

// If reads are audited, the audit record names the file that was read.
func TestTheAuditNamesTheFile(t *testing.T) {
	all, files := withFiles(t, t.TempDir())
	var audited []sessions.AuditRecord
	x := newRig(t, files, func(x *rig) {
		x.cfg.Audit = api.Audit{Reads: true, Record: func(_ context.Context, r sessions.AuditRecord) error {
			audited = append(audited, r)
			return nil
		}}
	})
	dir, err := all.Open("main:web:chat")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir.Path(), "plan.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := x.get(sessionPath("main:web:chat", "/files/plan.txt"), chatToken); r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if len(audited) != 1 || audited[0].Session != "main:web:chat" || string(audited[0].Arguments) != `{"name":"plan.txt"}` {
		t.Errorf("the audit has %+v", audited)
	}
}
