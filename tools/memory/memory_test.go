package memory_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels/sqlbook"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/memory"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write the golden files")

var args = toolstest.Args

// newCaller has the tools over a session's real directory, and the file's path.
func newCaller(t *testing.T) (c *toolstest.Caller, file string) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	c = toolstest.New(memory.New(func(_ context.Context, call tools.Call) (memory.Dir, error) { return all.Open(call.Session) }, nil)...)
	d, err := all.Open(c.Call.Session)
	if err != nil {
		t.Fatal(err)
	}
	return c, filepath.Join(d.Path(), memory.File)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantFile(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("the memory holds %.200q, %v; want %.200q", got, err, want)
	}
}

func TestGolden(t *testing.T) {
	c, _ := newCaller(t)
	c.Golden(t, "testdata/specs.json")
}

func TestRead(t *testing.T) {
	c, file := newCaller(t)
	none := `{"content":"","message":"No memory file found"}`
	c.Want(t, "memory_read", "", none)
	c.Want(t, "memory_read", args("query", "x"), none)
	write(t, file, "Likes Tea.\nGreen.\n \t\n\nLives in ÖSTERREICH\r\n\r\nteatime <5>\n")
	c.Want(t, "memory_read", args("query", ""), `{"content":"Likes Tea.\nGreen.\n \t\n\nLives in ÖSTERREICH\r\n\r\nteatime <5>\n"}`)
	c.Want(t, "memory_read", args("query", "TEA"), `{"query":"TEA","matches":["Likes Tea.\nGreen.","teatime <5>"],"count":2}`)
	c.Want(t, "memory_read", args("query", "österreich"), `{"query":"österreich","matches":["Lives in ÖSTERREICH"],"count":1}`)
	c.Want(t, "memory_read", args("query", "coffee"), `{"query":"coffee","matches":[],"count":0}`)
	write(t, file, "caf\xe9\x00")
	c.Want(t, "memory_read", "{}", `{"content":"caf`+"\uFFFD\uFFFD"+`"}`)
}

func TestWrite(t *testing.T) {
	c, file := newCaller(t)
	c.Want(t, "memory_write", args("content", "first"), `{"message":"Successfully wrote 5 bytes to memory (mode: append)","path":"MEMORY.md"}`)
	c.Want(t, "memory_write", args("content", "zweitä\n", "mode", "append"), `{"message":"Successfully wrote 8 bytes to memory (mode: append)","path":"MEMORY.md"}`)
	c.Want(t, "memory_write", args("content", "third"), "")
	wantFile(t, file, "first\n\nzweitä\n\nthird")
	c.Want(t, "memory_write", args("content", "all", "mode", "overwrite"), `{"message":"Successfully wrote 3 bytes to memory (mode: overwrite)","path":"MEMORY.md"}`)
	wantFile(t, file, "all")
	c.Want(t, "memory_write", args("content", "", "mode", "overwrite"), "")
	c.Want(t, "memory_write", args("content", "again"), "")
	wantFile(t, file, "again")
	c.WantError(t, "memory_write", args("content", " \n"), tools.InvalidArgs, "empty")
	c.WantError(t, "memory_write", args("content", "x", "mode", "prepend"), tools.InvalidArgs, `"append", "overwrite"`)
	c.WantError(t, "memory_write", args("text", "x"), tools.InvalidArgs, "content")
}

func TestBounds(t *testing.T) {
	c, file := newCaller(t)
	write(t, file, strings.Repeat("x", memory.MaxBytes-1))
	c.WantError(t, "memory_write", args("content", "y"), tools.ExecutionFailed, "overwrite")
	write(t, file, "")
	if err := os.Truncate(file, 1<<38); err != nil {
		t.Fatal(err)
	}
	c.WantError(t, "memory_read", "", tools.ExecutionFailed, "read_file")
	c.WantError(t, "memory_write", args("content", "y"), tools.ExecutionFailed, "274877906944")
	if _, done, err := c.Reconcile(t, "memory_write", args("content", "y")); done || err != nil {
		t.Errorf("what cannot have been written is to be run and to fail: %v, %v", done, err)
	}
	c.WantError(t, "memory_write", args("content", strings.Repeat("y", memory.MaxBytes+1), "mode", "overwrite"), tools.ExecutionFailed, "1048577")
}

func TestEscapes(t *testing.T) {
	c, file := newCaller(t)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	for _, link := range []func(string, string) error{os.Symlink, os.Link} {
		if err := link(secret, file); err != nil {
			t.Fatal(err)
		}
		c.WantError(t, "memory_read", "", tools.InvalidPath)
		c.WantError(t, "memory_write", args("content", "evil"), tools.InvalidPath)
		c.WantError(t, "memory_write", args("content", "evil", "mode", "overwrite"), tools.InvalidPath)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	wantFile(t, secret, "secret")
}

func TestAppendIsFoundAgain(t *testing.T) {
	c, file := newCaller(t)
	given := args("content", "fact\n\nand more")
	if got := c.Effect(t, "memory_write", given); got != tools.Reconcilable {
		t.Errorf("append is %s", got)
	}
	if got := c.Effect(t, "memory_write", args("content", "", "mode", "overwrite")); got != tools.Idempotent {
		t.Errorf("overwrite is %s", got)
	}
	for _, before := range []string{"", "old", "old artifact\n\nand more", "fact\n\nand more\n\nnews"} {
		if before != "" {
			write(t, file, before)
		}
		if _, done, err := c.Reconcile(t, "memory_write", given); done || err != nil {
			t.Errorf("after %q it counts as written: %v, %v", before, done, err)
		}
		want := c.Want(t, "memory_write", given, "")
		if got, done, err := c.Reconcile(t, "memory_write", given); !done || err != nil || got != want {
			t.Errorf("after %q and the append it gives %s, %v, %v", before, got, done, err)
		}
	}
}

// newStored has the tools with the store that a book is, for a private chat.
func newStored(t *testing.T) *toolstest.Caller {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	c := toolstest.New(memory.New(func(_ context.Context, call tools.Call) (memory.Dir, error) { return all.Open(call.Session) }, book)...)
	c.Call.Private = true
	return c
}

// as makes the next calls those of somebody else, with a key of their own.
func as(c *toolstest.Caller, person, key string) {
	c.Call.Person, c.Call.Key = person, key
	c.Call.Session, c.Call.Address = "main:"+person, person
}

// What is remembered of a person is read where that person is alone with the agent, in any
// conversation, and by nobody else.
func TestWhatIsRememberedOfAPersonIsForThem(t *testing.T) {
	c := newStored(t)
	as(c, "telegram:1", "k1")
	c.Want(t, "memory_write", args("content", "likes tea", "scope", "person"), `{"message":"Successfully wrote 9 bytes to memory (mode: append)"}`)
	c.Want(t, "memory_write", args("content", "likes tea", "scope", "person"), `{"message":"Successfully wrote 9 bytes to memory (mode: append)"}`) // again, after a crash
	c.Call.Key = "k2"
	c.Want(t, "memory_write", args("content", "lives in Ulm", "scope", "person"), `{"message":"Successfully wrote 12 bytes to memory (mode: append)"}`)
	c.Call.Session = "main:telegram:elsewhere"
	c.Want(t, "memory_read", args("scope", "person"), `{"content":"likes tea\n\nlives in Ulm"}`)
	c.Want(t, "memory_read", args("scope", "person", "query", "ULM"), `{"query":"ULM","matches":["lives in Ulm"],"count":1}`)
	c.Want(t, "memory_read", args(), `{"content":"","message":"No memory file found"}`)
	c.Want(t, "memory_read", args("scope", "agent"), `{"content":"","message":"Nothing is remembered"}`)
	c.Call.Private = false
	c.WantError(t, "memory_read", args("scope", "person"), tools.PermissionDenied, "private chat")
	c.WantError(t, "memory_write", args("scope", "person", "content", "x"), tools.PermissionDenied, "private chat")
	c.Call.Private = true
	as(c, "telegram:2", "k3")
	c.Want(t, "memory_read", args("scope", "person"), `{"content":"","message":"Nothing is remembered"}`)
	as(c, "telegram:1", "k4")
	c.Want(t, "memory_write", args("content", "", "scope", "person", "mode", "overwrite"), `{"message":"Successfully wrote 0 bytes to memory (mode: overwrite)"}`)
	c.Want(t, "memory_read", args("scope", "person"), `{"content":"","message":"Nothing is remembered"}`)
}

// Owners write what all conversations of an agent read.
func TestOwnersWriteForTheAgent(t *testing.T) {
	c := newStored(t)
	as(c, "telegram:1", "k1")
	c.WantError(t, "memory_write", args("content", "x", "scope", "agent"), tools.PermissionDenied, "owners")
	c.Call.Owner = true
	c.Want(t, "memory_write", args("content", "we deploy on Mondays", "scope", "agent"), `{"message":"Successfully wrote 20 bytes to memory (mode: append)"}`)
	as(c, "telegram:2", "k2")
	c.Call.Owner, c.Call.Private = false, false
	c.Want(t, "memory_read", args("scope", "agent"), `{"content":"we deploy on Mondays"}`)
	c.Call.Agent = "other"
	c.Want(t, "memory_read", args("scope", "agent"), `{"content":"","message":"Nothing is remembered"}`)
}

func TestStoredMemoriesAreBounded(t *testing.T) {
	c := newStored(t)
	c.WantError(t, "memory_write", args("content", strings.Repeat("x", memory.MaxStored+1), "scope", "person"), tools.ExecutionFailed, "at most 65536")
	c.WantError(t, "memory_write", args("content", " ", "scope", "person"), tools.InvalidArgs)
	c.WantError(t, "memory_write", args("content", "x", "scope", "team"), tools.InvalidArgs)
	if got := c.Effect(t, "memory_write", args("content", "x", "scope", "person")); got != tools.Idempotent {
		t.Errorf("its effect is %s", got)
	}
	plain, _ := newCaller(t)
	plain.Call.Private = true
	plain.WantError(t, "memory_read", args("scope", "person"), tools.PermissionDenied)
}
