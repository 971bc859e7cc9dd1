package pins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"parley/tools/mcp/pins"
)

// A memory is a store for one test; that of the book is tested where it is put together.
type memory struct {
	mu   sync.Mutex
	kept map[[2]string]string
}

func (m *memory) SetNote(_ context.Context, subject, about, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept[[2]string{subject, about}] = value; value == "" {
		delete(m.kept, [2]string{subject, about})
	}
	return nil
}

func (m *memory) SetNoteOnce(_ context.Context, subject, about, value string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := [2]string{subject, about}
	if _, ok := m.kept[k]; !ok {
		m.kept[k] = value
	}
	return m.kept[k], nil
}

func (m *memory) Noted(_ context.Context, subject string) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for k, v := range maps.All(m.kept) {
		if k[0] == subject {
			all[k[1]] = v
		}
	}
	return all, nil
}

func tool(name, description string) pins.Tool {
	return pins.Tool{Name: name, Description: description, Schema: json.RawMessage(`{"type":"object"}`)}
}

func names(all []pins.Tool) (names []string) {
	for _, t := range all {
		names = append(names, t.Name+":"+t.Description)
	}
	return names
}

func observe(t *testing.T, p *pins.Pins, want string, listed ...pins.Tool) {
	t.Helper()
	got, err := p.Observe(t.Context(), "s", listed)
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("it set aside %v, %v, want %s", got, err, want)
	}
}

func offers(t *testing.T, p *pins.Pins, want string) {
	t.Helper()
	if got := fmt.Sprint(names(p.OfferedTools("s"))); got != want {
		t.Errorf("it offers %s, want %s", got, want)
	}
}

func TestWhatChangesIsSetAside(t *testing.T) {
	store := &memory{kept: map[[2]string]string{}}
	p := pins.New(store)
	if _, err := p.Accept(t.Context(), "s", "", ""); !errors.Is(err, pins.ErrNoServer) {
		t.Errorf("of an unknown server it accepted, %v", err)
	}
	observe(t, p, "[]", tool("a", "1"), tool("b", "1"))
	offers(t, p, "[a:1 b:1]")
	v := p.Version()
	observe(t, p, "[]", tool("a", "1"), tool("b", "1"))
	if p.Version() != v {
		t.Error("the same listing changed the version")
	}

	observe(t, p, "[a c]", tool("a", "2"), tool("b", "1"), tool("c", "1"))
	observe(t, p, "[]", tool("a", "2"), tool("b", "1"), tool("c", "1")) // told once
	offers(t, p, "[b:1]")
	if p.Version() == v || p.Accepted("s", tool("a", "2")) || p.Accepted("s", tool("a", "1")) || !p.Accepted("s", tool("b", "1")) {
		t.Error("what is set aside counts as accepted")
	}
	changed := tool("b", "1")
	changed.Schema = json.RawMessage(`{"type":"object","properties":{"to":{}}}`)
	if p.Accepted("s", changed) {
		t.Error("another schema counts as accepted")
	}

	// Another process knows the same, without having seen the server.
	other := pins.New(store)
	if err := other.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	offers(t, other, "[b:1]")
	if got, err := other.Accept(t.Context(), "s", "a", ""); err != nil || fmt.Sprint(got) != "[a]" {
		t.Errorf("it accepted %v, %v", got, err)
	}
	if _, err := other.Accept(t.Context(), "s", "a", ""); !errors.Is(err, pins.ErrNothing) {
		t.Errorf("it accepted what is accepted, %v", err)
	}
	offers(t, other, "[a:2 b:1]")
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	offers(t, p, "[a:2 b:1]")
	if got := fmt.Sprint(names(p.SetAside("s"))); got != "[c:1]" {
		t.Errorf("set aside is %s", got)
	}

	// What is again as it was accepted is offered again; what is gone is not.
	observe(t, p, "[b]", tool("a", "2"), tool("b", "3"))
	observe(t, p, "[]", tool("a", "2"), tool("b", "1"))
	offers(t, p, "[a:2 b:1]")
	observe(t, p, "[]", tool("b", "1"))
	offers(t, p, "[b:1]")
	if got, err := p.Accept(t.Context(), "s", "", ""); err != nil || fmt.Sprint(got) != "[c]" {
		t.Errorf("it accepted %v, %v", got, err)
	}
}

// Whoever has looked at a tool accepts that one: not what it says of itself by then.
func TestWhatWasSeenIsAccepted(t *testing.T) {
	p := pins.New(&memory{kept: map[[2]string]string{}})
	observe(t, p, "[]", tool("a", "1"))
	observe(t, p, "[a b]", tool("a", "2"), tool("b", "1"))
	if was, known := p.Before("s", "a"); !known || was.Description != "1" {
		t.Errorf("before it was %v, %v", was, known)
	}
	if was, known := p.Before("s", "b"); known {
		t.Errorf("what is new was %v before", was)
	}
	seen := tool("a", "2").Digest()
	observe(t, p, "[a]", tool("a", "3"), tool("b", "1"))
	if got, err := p.Accept(t.Context(), "s", "a", seen); !errors.Is(err, pins.ErrChanged) {
		t.Errorf("what nobody has seen is accepted: %v, %v", got, err)
	}
	offers(t, p, "[]")
	if got, err := p.Accept(t.Context(), "s", "a", tool("a", "3").Digest()); err != nil || fmt.Sprint(got) != "[a]" {
		t.Errorf("it accepted %v, %v", got, err)
	}
	offers(t, p, "[a:3]")
	other := tool("a", "3")
	other.Schema = json.RawMessage(`{"type":"object","properties":{"to":{}}}`)
	if other.Digest() == tool("a", "3").Digest() {
		t.Error("another schema has the same digest")
	}
}

// Two processes that see a server for the first time accept one listing: the first.
func TestTheFirstListingIsAcceptedOnce(t *testing.T) {
	store := &memory{kept: map[[2]string]string{}}
	a, b := pins.New(store), pins.New(store)
	observe(t, a, "[]", tool("x", "1"))
	observe(t, b, "[x]", tool("x", "2"))
	offers(t, b, "[]")
	if err := a.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	offers(t, a, "[]")
}

// escaped is a tool as releases have stored it that wrote <, > and & with escapes, or several.
func escaped(t *testing.T, tools ...pins.Tool) string {
	t.Helper()
	raw, err := json.Marshal(tools) // it escapes, unlike package plainjson
	if err != nil {
		t.Fatal(err)
	}
	if len(tools) == 1 {
		raw = raw[1 : len(raw)-1]
	}
	return string(raw)
}

// A tool whose schema has <, > and & is the same when it is listed again, also over what an older
// release has stored: that had set it aside when it first saw it, and took nobody's word for it.
func TestATagInASchemaIsNoChange(t *testing.T) {
	tag, other := tool("tag", "<p> & more"), tool("other", "1")
	tag.Schema = json.RawMessage(`{"properties":{"html":{"description":"such as <p> & <br>","type":"string"}},"type":"object"}`)
	offered := "[other:1 tag:<p> & more]"
	for name, kept := range map[string]map[[2]string]string{
		"a new home": {},
		"an old home": {
			{"mcp-tools", "s"}:     escaped(t, other, tag),
			{"mcp-aside", "s/tag"}: escaped(t, tag),
		},
		"an old home in which it changed": {
			{"mcp-tools", "s"}:     escaped(t, other, tool("tag", "before")),
			{"mcp-aside", "s/tag"}: escaped(t, tag),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pins.New(&memory{kept: kept})
			if err := p.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			observe(t, p, "[]", other, tag)
			if name == "an old home in which it changed" {
				offers(t, p, "[other:1]")
				if got, err := p.Accept(t.Context(), "s", "tag", ""); err != nil || fmt.Sprint(got) != "[tag]" {
					t.Errorf("it accepted %v, %v", got, err)
				}
			}
			observe(t, p, "[]", other, tag)
			offers(t, p, offered)
			if !p.Accepted("s", tag) || len(p.SetAside("s")) != 0 {
				t.Errorf("set aside is %v", names(p.SetAside("s")))
			}
			for _, one := range p.OfferedTools("s") {
				if one.Name == "tag" && string(one.Schema) != string(tag.Schema) {
					t.Errorf("it offers the schema %s, want %s", one.Schema, tag.Schema)
				}
			}
		})
	}
}
