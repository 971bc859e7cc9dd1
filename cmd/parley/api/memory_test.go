package api_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/channels"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/owndata"
	"parley/sessions"
	"parley/sessions/workspace"
	"parley/tools/memory"
	"parley/tools/redact"
)

// A memoryReply is a memory as the API returns it.
type memoryReply struct {
	Content, Version    string
	Untrusted, Redacted bool
}

// remembering returns an option that makes a rig serve real memories: those in its book, and those of sessions in
// workspaces.
func remembering(t *testing.T, dir string) func(*rig) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	hides, err := redact.New([]string{"swordfish-9000"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(x *rig) {
		x.memories = home.EditedMemories{Home: &home.Home{Book: x.book, Workspaces: all, Root: dir}, Erase: (*erase.Rewriter)(nil).Erase}
		x.cfg.Further = owndata.Remembered{Memories: x.memories, Sessions: x.store, HasAgent: func(name string) bool { return name == "main" }, Plain: hides.Text}.Routes()
		x.cfg.Audit.Record = func(_ context.Context, r sessions.AuditRecord) error { x.audited = append(x.audited, r); return nil }
	}
}

// remember writes a memory as the agent's tool does.
func (x *rig) remember(scope, owner, text string, untrusted bool) {
	x.t.Helper()
	if err := x.book.Remember(x.t.Context(), scope, owner, scope+owner+text, true, untrusted, func(string) (string, error) { return text, nil }); err != nil {
		x.t.Fatal(err)
	}
}

func memoryPath(scope, owner string) string {
	return "/v1/memory/" + scope + "/" + strings.ReplaceAll(owner, ":", "%3A")
}

// putMemory replaces the text of a memory if it still has that version.
func (x *rig) putMemory(path, version, text string) reply {
	x.t.Helper()
	return x.do(http.MethodPut, path, adminToken, `{"content":"`+text+`"}`, header("If-Match", `"`+version+`"`))
}

// Only admins may list memories. The list comes in pages and has no texts.
func TestMemoriesAreListed(t *testing.T) {
	x := newRig(t, remembering(t, t.TempDir()))
	x.remember(channels.ScopePerson, "slack:U1", "likes tea", false)
	x.remember(channels.ScopePerson, "slack:U2", "ä", true)
	x.remember(channels.ScopeAgent, "main", "we deploy on Mondays", false)
	for _, token := range []string{ciToken, opsToken, chatToken, readToken, scrapeTok} {
		for _, path := range []string{"/v1/memory", memoryPath("person", "slack:U1")} {
			if r := x.get(path, token); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s may read %s: %d", token, path, r.StatusCode)
			}
		}
	}
	type page struct {
		Memories []struct {
			Scope, Owner string
			Bytes        int
			Untrusted    bool
		}
		Next string
	}
	first := into[page](t, x.get("/v1/memory?limit=2", adminToken))
	if len(first.Memories) != 2 || first.Memories[0].Owner != "main" || first.Memories[0].Bytes != 20 || first.Memories[1].Owner != "slack:U1" || first.Next == "" {
		t.Errorf("the first page is %+v", first)
	}
	second := into[page](t, x.get("/v1/memory?after="+first.Next, adminToken))
	if len(second.Memories) != 1 || second.Memories[0].Owner != "slack:U2" || second.Memories[0].Bytes != 2 || !second.Memories[0].Untrusted || second.Next != "" {
		t.Errorf("the second page is %+v", second)
	}
}

// A memory can be changed or erased only by a caller who has read its newest text; a caller with an older version is
// refused, and no text is lost. The audit names the owner of the memory and contains none of the text.
func TestMemoriesAreChanged(t *testing.T) {
	x := newRig(t, remembering(t, t.TempDir()))
	const session = "main:web:chat"
	x.write(session, begun(t, "t")...)
	for scope, owner := range map[string]string{"person": "slack:U1", "agent": "main", "session": session} {
		path := memoryPath(scope, owner)
		read := x.get(path, adminToken)
		was := into[memoryReply](t, read)
		if was.Content != "" || read.Header.Get("ETag") != `"`+was.Version+`"` {
			t.Errorf("%s: read %+v", scope, was)
		}
		now := into[memoryReply](t, x.putMemory(path, was.Version, "likes tea"))
		if now.Content != "likes tea" || now.Version == was.Version {
			t.Errorf("%s: written %+v", scope, now)
		}
		if r := x.putMemory(path, was.Version, "likes tea"); r.StatusCode != http.StatusOK {
			t.Errorf("%s: the same once more: %d %s", scope, r.StatusCode, r.body)
		}
		for method, body := range map[string]string{http.MethodPut: `{"content":"likes coffee"}`, http.MethodDelete: ""} {
			for version, want := range map[string]int{`"` + was.Version + `"`: http.StatusPreconditionFailed, "": http.StatusPreconditionRequired, "*": http.StatusPreconditionRequired} {
				if r := x.do(method, path, adminToken, body, header("If-Match", version)); r.StatusCode != want {
					t.Errorf("%s: %s with the version %q: %d %s", scope, method, version, r.StatusCode, r.body)
				}
			}
		}
		if got := into[memoryReply](t, x.get(path, adminToken)); got.Content != "likes tea" {
			t.Errorf("%s: refused, and it is %+v", scope, got)
		}
		if r := x.do(http.MethodDelete, path, adminToken, "", header("If-Match", now.Version)); r.StatusCode != http.StatusNoContent {
			t.Errorf("%s: erased: %d %s", scope, r.StatusCode, r.body)
		}
		if got := into[memoryReply](t, x.get(path, adminToken)); got.Content != "" {
			t.Errorf("%s: erased, and it is %+v", scope, got)
		}
		if r := x.do(http.MethodDelete, path, adminToken, "", header("If-Match", now.Version)); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: erased again: %d %s", scope, r.StatusCode, r.body)
		}
		record := sessions.AuditRecord{Kind: sessions.AuditMemory, By: "token:boss", Detail: owner}
		if scope == "session" {
			record.Detail, record.Session = "", owner
		}
		var want []sessions.AuditRecord
		for _, record.Result = range []string{"changed", "changed", "erased"} {
			want = append(want, record)
		}
		if !reflect.DeepEqual(x.audited, want) {
			t.Errorf("%s: the audit has %+v, want %+v", scope, x.audited, want)
		}
		x.audited = nil
	}
}

// A memory that strangers may have written keeps its mark after an edit, and loses it when the memory is erased.
func TestAnEditKeepsTheMarkOfStrangers(t *testing.T) {
	x := newRig(t, remembering(t, t.TempDir()))
	x.remember(channels.ScopePerson, "slack:U1", "from a web page", true)
	path := memoryPath("person", "slack:U1")
	read := into[memoryReply](t, x.get(path, adminToken))
	now := into[memoryReply](t, x.putMemory(path, read.Version, "corrected"))
	if !read.Untrusted || !now.Untrusted {
		t.Errorf("read %+v, then %+v", read, now)
	}
	x.do(http.MethodDelete, path, adminToken, "", header("If-Match", now.Version))
	read = into[memoryReply](t, x.get(path, adminToken))
	if now = into[memoryReply](t, x.putMemory(path, read.Version, "new")); now.Untrusted {
		t.Errorf("after it was erased: %+v", now)
	}
}

// The API neither shows nor stores secrets in memories, and explains why it refuses an invalid memory.
func TestMemoriesKeepTheBoundsOfTheTool(t *testing.T) {
	dir := t.TempDir()
	x := newRig(t, remembering(t, dir))
	x.remember(channels.ScopePerson, "slack:U1", "the key is swordfish-9000, he says", false)
	x.remember(channels.ScopeAgent, "gone", "left", false)
	path := memoryPath("person", "slack:U1")
	read := into[memoryReply](t, x.get(path, adminToken))
	if read.Content != "the key is [redacted], he says" || !read.Redacted {
		t.Errorf("shown: %+v", read)
	}
	for text, code := range map[string]string{"it is swordfish-9000": "secret", " ": "missing_field", strings.Repeat("x", memory.MaxStored+1): "too_long"} {
		if r := x.putMemory(path, read.Version, text); r.StatusCode != http.StatusUnprocessableEntity || r.code() != code {
			t.Errorf("%.20q: %d %s", text, r.StatusCode, r.body)
		}
	}
	if now := into[memoryReply](t, x.putMemory(path, read.Version, strings.Repeat("x", memory.MaxStored))); len(now.Content) != memory.MaxStored {
		t.Errorf("the longest has %d bytes", len(now.Content))
	}
	for _, none := range []string{
		memoryPath("team", "x"), memoryPath("person", "nobody"), memoryPath("person", ":x"), memoryPath("agent", "none"), memoryPath("session", "main:web:none"), memoryPath("session", "x"),
	} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if r := x.do(method, none, adminToken, ""); r.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", method, none, r.StatusCode, r.body)
			}
		}
	}
	if got := into[memoryReply](t, x.get(memoryPath("agent", "gone"), adminToken)); got.Content != "left" {
		t.Errorf("of an agent that is gone: %+v", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("asking makes folders: %v, %v", entries, err)
	}
}

// A session's memory is served only if it is a plain file, because commands may have put anything in its place.
func TestMemoryOfASessionIsAPlainFile(t *testing.T) {
	dir := t.TempDir()
	x := newRig(t, remembering(t, dir))
	const session = "main:web:chat"
	x.write(session, begun(t, "t")...)
	path := memoryPath("session", session)
	x.putMemory(path, into[memoryReply](t, x.get(path, adminToken)).Version, "x")
	folder, err := x.memories.Home.Workspace(session)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder.Path(), memory.File)
	if err := os.Truncate(file, memory.MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("xyzzy"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"too_long", "no_file"} {
		for _, r := range []reply{x.get(path, adminToken), x.putMemory(path, "1", "x"), x.do(http.MethodDelete, path, adminToken, "", header("If-Match", "1"))} {
			if r.StatusCode != http.StatusUnprocessableEntity || r.code() != code || strings.Contains(string(r.body), dir) {
				t.Errorf("%s: %d %s", r.Request.Method, r.StatusCode, r.body)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, file); err != nil {
			t.Fatal(err)
		}
	}
}
