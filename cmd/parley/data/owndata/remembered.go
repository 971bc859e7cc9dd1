package owndata

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"time"

	"parley/channels"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools/memory"
)

// EditableMemories provides what agents remember to people who view and change it. A memory belongs to a person, an
// agent or a session: its owner.
type EditableMemories interface {
	// List lists the memories of people and agents, without their texts, by scope and owner, at most limit. It
	// begins after owner's memory in that scope; with the first if both are "".
	List(ctx context.Context, scope, owner string, limit int) ([]channels.MemoryInfo, error)
	// Read returns a memory; its text is "" if there is none.
	Read(ctx context.Context, scope, owner string) (channels.Memory, error)
	// Change replaces a memory with what change makes of it, without another change in between. It returns an error
	// from change unchanged. change may be called more than once.
	Change(ctx context.Context, scope, owner string, change func(old string) (string, error)) error
	// Forget erases a memory if may, which is called with its text, returns no error. It returns may's error
	// unchanged.
	Forget(ctx context.Context, scope, owner string, may func(content string) error) error
}

// ofSession is the scope of a session's memory, in addition to the book's scopes.
const ofSession = "session"

// maxMemoryBody limits a request with a new text. It leaves room for the longest memory with some escapes in its
// JSON.
const maxMemoryBody = 2 * memory.MaxBytes

// Remembered serves what agents remember to programs.
type Remembered struct {
	Memories EditableMemories
	Sessions interface {
		Info(ctx context.Context, key string) (sessions.Info, error)
	}
	HasAgent func(name string) bool
	Plain    func(text string) string // removes secrets from a text
}

// Routes returns the routes that the API serves.
func (m Remembered) Routes() []exchange.Route {
	admin := exchange.Caller.IsAdmin
	return []exchange.Route{
		{Pattern: "GET /v1/memory", May: admin, Serve: m.list},
		{Pattern: "GET /v1/memory/{scope}/{owner}", May: admin, Serve: m.show},
		{Pattern: "PUT /v1/memory/{scope}/{owner}", May: admin, Serve: m.change, Audit: sessions.AuditMemory, Result: "changed"},
		{Pattern: "DELETE /v1/memory/{scope}/{owner}", May: admin, Serve: m.erase, Audit: sessions.AuditMemory, Result: "erased"},
	}
}

// A keptMemory is a memory in a list, in the API's JSON.
type keptMemory struct {
	Scope     string    `json:"scope"`
	Owner     string    `json:"owner"`
	Bytes     int64     `json:"bytes"`
	Untrusted bool      `json:"untrusted"`
	Changed   time.Time `json:"changed"`
}

// A shownMemory is a memory with its text, in the API's JSON.
type shownMemory struct {
	Scope     string `json:"scope"`
	Owner     string `json:"owner"`
	Content   string `json:"content"`
	Untrusted bool   `json:"untrusted"`
	Redacted  bool   `json:"redacted"` // whether the text contains secrets, which content leaves out
	Version   string `json:"version"`  // the version of the text, for If-Match
	Most      int    `json:"most_bytes"`
}

// versionOf returns the version of a memory's text.
func versionOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:16])
}

// mostBytes returns the maximum size of a memory, in bytes.
func mostBytes(scope string) int {
	if scope == ofSession {
		return memory.MaxBytes
	}
	return memory.MaxStored
}

// list lists the memories of people and agents.
func (m Remembered) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	scope, owner, _ := strings.Cut(r.URL.Query().Get("after"), "/")
	found, err := m.Memories.List(r.Context(), scope, owner, limit+1)
	if err != nil {
		return err
	}
	page := struct {
		Memories []keptMemory `json:"memories"`
		Next     string       `json:"next,omitempty"`
	}{Memories: []keptMemory{}}
	for _, k := range found[:min(limit, len(found))] {
		page.Memories = append(page.Memories, keptMemory{k.Scope, k.Owner, k.Bytes, k.Untrusted, k.Changed.UTC()})
	}
	if len(found) > limit {
		last := found[limit-1]
		page.Next = last.Scope + "/" + last.Owner
	}
	return w.JSON(http.StatusOK, page)
}

// show answers with one memory.
func (m Remembered) show(w *exchange.Answer, r *http.Request) error {
	scope, owner, err := m.subject(w, r)
	if err != nil {
		return err
	}
	return m.answer(w, r, scope, owner)
}

// answer answers with a memory as it is now.
func (m Remembered) answer(w *exchange.Answer, r *http.Request, scope, owner string) error {
	found, err := m.Memories.Read(r.Context(), scope, owner)
	if err != nil {
		return memoryRefusal(err)
	}
	plain := strings.ToValidUTF8(strings.ReplaceAll(found.Content, "\x00", "\uFFFD"), "\uFFFD")
	shown := shownMemory{scope, owner, m.Plain(plain), found.Untrusted, false, versionOf(found.Content), mostBytes(scope)}
	shown.Redacted = shown.Content != plain
	w.Header().Set("ETag", `"`+shown.Version+`"`)
	return w.JSON(http.StatusOK, shown)
}

// change replaces a memory's text, unless it has changed since the caller read it.
func (m Remembered) change(w *exchange.Answer, r *http.Request) error {
	scope, owner, err := m.subject(w, r)
	if err != nil {
		return err
	}
	raw, err := w.ReadJSON(r, maxMemoryBody)
	if err != nil {
		return err
	}
	var next string
	if _, err := exchange.Decode(raw, exchange.Field{Name: "content", Into: &next, Want: "a string"}); err != nil {
		return err
	}
	known, err := knownVersion(r)
	if err != nil {
		return err
	}
	switch most := mostBytes(scope); {
	case strings.TrimSpace(next) == "":
		return exchange.Unprocessable("missing_field", `field "content" is empty: DELETE erases a memory`)
	case len(next) > most:
		return exchange.Unprocessable("too_long", "the memory would be %d bytes long; at most %d are allowed", len(next), most)
	case m.Plain(next) != next:
		return exchange.Unprocessable("secret", "the text contains a secret, or what looks like one: remove it, because a model would read it")
	}
	err = m.Memories.Change(r.Context(), scope, owner, func(old string) (string, error) {
		if old == next { // a repeated request
			return next, nil
		}
		return next, checkVersion(old, known)
	})
	if err != nil {
		return memoryRefusal(err)
	}
	return m.answer(w, r, scope, owner)
}

// erase erases a memory, unless it has changed since the caller read it.
func (m Remembered) erase(w *exchange.Answer, r *http.Request) error {
	scope, owner, err := m.subject(w, r)
	if err != nil {
		return err
	}
	known, err := knownVersion(r)
	if err != nil {
		return err
	}
	err = m.Memories.Forget(r.Context(), scope, owner, func(content string) error {
		if content == "" {
			return exchange.NotFound("there's no memory there")
		}
		return checkVersion(content, known)
	})
	if err != nil {
		return memoryRefusal(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// subject returns whose memory a request is for. It returns a refusal if there is no such agent or session, or if the
// owner is not written like a person.
func (m Remembered) subject(w *exchange.Answer, r *http.Request) (scope, owner string, err error) {
	scope, owner = r.PathValue("scope"), r.PathValue("owner")
	w.ID = owner
	switch scope {
	case ofSession:
		w.Noted.Session = owner
		if _, err := sessions.ParseKey(owner); err != nil {
			return "", "", exchange.NotFound("this isn't a session's key: GET /v1/sessions lists them; in a path, percent-encode the key once more")
		}
		_, err = m.Sessions.Info(r.Context(), owner)
		return scope, owner, err
	case channels.ScopePerson:
		w.Subject = owner
		if channel, user, ok := strings.Cut(owner, ":"); !ok || channel == "" || user == "" {
			return "", "", exchange.NotFound("write the person as CHANNEL:USER")
		}
		return scope, owner, nil
	case channels.ScopeAgent:
		w.Subject = owner
		if m.HasAgent(owner) {
			return scope, owner, nil
		}
		left, err := m.Memories.Read(r.Context(), scope, owner)
		if err == nil && left.Content == "" { // otherwise it is left from an agent that existed earlier
			err = exchange.NotFound("there's no such agent: GET /v1/agents lists them")
		}
		return scope, owner, err
	}
	return "", "", exchange.NotFound("only a person, an agent or a session has a memory")
}

// knownVersion returns the version that the caller has read, or a refusal if the request doesn't say.
func knownVersion(r *http.Request) (string, error) {
	tag := strings.Trim(strings.TrimPrefix(r.Header.Get("If-Match"), "W/"), `"`)
	if tag == "" || tag == "*" {
		return "", &exchange.Refusal{Status: http.StatusPreconditionRequired, Code: "no_version", Message: "say which text you've read, so that nobody else's change is lost: send If-Match with the ETag from GET"}
	}
	return tag, nil
}

// checkVersion returns a refusal if a memory's text differs from the one that the caller has read.
func checkVersion(content, known string) error {
	if versionOf(content) == known {
		return nil
	}
	return &exchange.Refusal{Status: http.StatusPreconditionFailed, Code: "changed", Message: "this memory has changed since you read it: read it again"}
}

// memoryRefusal returns the refusal if a memory isn't text of an acceptable length, and any other error unchanged.
func memoryRefusal(err error) error {
	switch {
	case errors.Is(err, syscall.EFBIG):
		return exchange.Unprocessable("too_long", "%s is longer than %d bytes: have the agent write a shorter one", memory.File, memory.MaxBytes)
	case errors.Is(err, fs.ErrInvalid), errors.Is(err, fs.ErrPermission):
		return exchange.Unprocessable("no_file", "%v", err) // the error names nothing outside the workspace
	}
	return err
}
