package sqlbook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// maxRememberedCalls is how many of the tool calls that wrote a memory are remembered with it.
const maxRememberedCalls = 50

// memories stores what agents remember beyond a conversation.
type memories struct{ people *people }

// A memoryRow is the stored memory of one owner.
type memoryRow struct {
	content   string
	untrusted bool
	calls     []string // the keys of the tool calls that wrote it, newest last
}

// Memory implements channels.Memories: it reads one memory with MemoriesFor.
func (m *memories) Memory(ctx context.Context, scope, owner string) (string, bool, error) {
	agent, person := owner, ""
	if scope == channels.ScopePerson {
		agent, person = "", owner
	}
	ofAgent, ofPerson, err := m.MemoriesFor(ctx, agent, person)
	if scope == channels.ScopePerson {
		ofAgent = ofPerson
	}
	return ofAgent.Content, ofAgent.Untrusted, err
}

// maxCachedMemoryBytes is the maximum length, in bytes, of an agent's and a person's memories together that are cached.
const maxCachedMemoryBytes = 2048

// MemoriesFor implements channels.Memories: it reads both memories with one query.
func (m *memories) MemoriesFor(ctx context.Context, agent, person string) (ofAgent, ofPerson channels.Memory, err error) {
	found, err := m.people.memoryCache.get([2]string{agent, person}, func() ([2]channels.Memory, bool, error) {
		both, err := m.readMemories(ctx, agent, person)
		return both, len(both[0].Content)+len(both[1].Content) <= maxCachedMemoryBytes, err
	})
	if err != nil {
		return ofAgent, ofPerson, fmt.Errorf("read memories: %w", err)
	}
	return found[0], found[1], nil
}

// readMemories reads the memory of an agent, and that of a person.
func (m *memories) readMemories(ctx context.Context, agent, person string) (both [2]channels.Memory, err error) {
	type row struct {
		scope string
		channels.Memory
	}
	found, err := queryAll(ctx, m.people.db.Read, func(scan func(...any) error) (r row, err error) {
		var untrusted int
		err = scan(&r.scope, &r.Content, &untrusted)
		restoreTexts(&r.Content)
		r.Untrusted = untrusted != 0
		return r, err
	}, `SELECT scope, content, untrusted FROM memories WHERE (scope = 'agent' AND owner = ?)
		OR (scope = 'person' AND owner = coalesce((SELECT account FROM links WHERE person = ?), ?))`, textArgs(agent, person, person)...)
	for _, r := range found {
		if r.scope == channels.ScopeAgent {
			both[0] = r.Memory
		} else {
			both[1] = r.Memory
		}
	}
	return both, err
}

// MemoriesQuery returns a query for PostgreSQL that returns, as one text, what MemoriesFor returns: NULL if nothing
// is remembered. Its parameters are numbered starting with first.
func (m *memories) MemoriesQuery(agent, person string, first int) (query string, args []any) {
	return fmt.Sprintf(`SELECT json_agg(json_build_array(scope, content, untrusted::text))::text FROM memories WHERE (scope = 'agent' AND owner = $%[1]d)
		OR (scope = 'person' AND owner = coalesce((SELECT account FROM links WHERE person = $%[2]d), $%[2]d))`, first, first+1), textArgs(agent, person)
}

// DecodeMemories decodes the result of a query from MemoriesQuery; "" means NULL.
func (m *memories) DecodeMemories(text string) (ofAgent, ofPerson channels.Memory, err error) {
	if text == "" {
		return ofAgent, ofPerson, nil
	}
	var rows [][3]string
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return ofAgent, ofPerson, fmt.Errorf("read memories: %w", err)
	}
	for _, r := range rows {
		m := channels.Memory{Content: sqldb.Untext(r[1]), Untrusted: r[2] != "0"}
		if r[0] == channels.ScopeAgent {
			ofAgent = m
		} else {
			ofPerson = m
		}
	}
	return ofAgent, ofPerson, nil
}

// Remember implements channels.Memories: it reads, changes and writes the memory in one transaction.
func (m *memories) Remember(ctx context.Context, scope, owner, call string, overwrite, untrusted bool, change func(old string) (string, error)) error {
	var refused error
	err := m.people.write(ctx, func(tx *sqldb.Tx) error {
		refused = nil
		if err := m.people.lockPeople(tx); err != nil {
			return err
		}
		account := owner
		if scope == channels.ScopePerson {
			var err error
			if account, err = accountOf(tx, owner); err != nil {
				return err
			}
		}
		old, err := readMemory(tx, scope, account)
		if err != nil || slices.Contains(old.calls, call) {
			return err
		}
		next := memoryRow{untrusted: untrusted || old.untrusted && !overwrite, calls: append(old.calls, call)}
		if next.content, refused = change(old.content); refused != nil {
			return nil
		}
		return writeMemory(tx, scope, account, next)
	})
	if err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	return refused
}

// Forget implements channels.Memories: it deletes the memory and the proposals for it, and purges the database. If
// there is nothing to delete, it does not purge, because others have to wait for that and anybody may call Forget.
func (m *memories) Forget(ctx context.Context, scope, owner string) error {
	return m.ForgetIf(ctx, scope, owner, func(string) error { return nil })
}

// ForgetIf implements channels.EditableMemories: it deletes a memory like Forget, but only if may, which is passed
// the memory's text, returns no error. Otherwise it returns may's error unchanged.
func (m *memories) ForgetIf(ctx context.Context, scope, owner string, may func(content string) error) error {
	there := false
	var refused error
	err := m.people.write(ctx, func(tx *sqldb.Tx) error {
		there = false
		if err := m.people.lockPeople(tx); err != nil {
			return err
		}
		account := owner
		if scope == channels.ScopePerson {
			var err error
			if account, err = accountOf(tx, owner); err != nil {
				return err
			}
		}
		old, err := readMemory(tx, scope, account)
		if err != nil {
			return err
		}
		if refused = may(old.content); refused != nil {
			return nil
		}
		n, err := tx.Exec(`DELETE FROM memories WHERE scope = ? AND owner = ?`, textArgs(scope, account)...)
		if err != nil {
			return err
		}
		proposed, err := deleteProposals(tx, scope, account)
		there = n+proposed > 0
		return err
	})
	if err == nil && there {
		err = m.people.db.Purge(ctx, "memories", "proposals")
	}
	if err != nil {
		return fmt.Errorf("forget what is remembered: %w", err)
	}
	return refused
}

// ListMemories implements channels.EditableMemories: it lists the memories that aren't empty, without their texts,
// sorted by scope and owner. The list starts after the memory with the given scope and owner.
func (m *memories) ListMemories(ctx context.Context, scope, owner string, limit int) ([]channels.MemoryInfo, error) {
	found, err := queryAll(ctx, m.people.db.Read, func(scan func(...any) error) (k channels.MemoryInfo, err error) {
		var untrusted int
		var changed int64
		err = scan(&k.Scope, &k.Owner, &k.Bytes, &untrusted, &changed)
		restoreTexts(&k.Scope, &k.Owner)
		k.Untrusted, k.Changed = untrusted != 0, timeOf(changed)
		return k, err
	}, `SELECT scope, owner, octet_length(content), untrusted, changed FROM memories
		WHERE content <> '' AND (scope, owner) > (?, ?) ORDER BY scope, owner LIMIT ?`, append(textArgs(scope, owner), limit)...)
	if err != nil {
		return nil, fmt.Errorf("list memories: %w", err)
	}
	return found, nil
}

// readMemory reads the memory of an owner; the zero memoryRow if there is none.
func readMemory(tx *sqldb.Tx, scope, owner string) (m memoryRow, err error) {
	var untrusted int
	var calls string
	err = tx.Get(`SELECT content, untrusted, calls FROM memories WHERE scope = ? AND owner = ?`, textArgs(scope, owner), &m.content, &untrusted, &calls)
	if errors.Is(err, sql.ErrNoRows) {
		return memoryRow{}, nil
	}
	if err != nil {
		return m, err
	}
	restoreTexts(&m.content, &calls)
	m.untrusted = untrusted != 0
	return m, json.Unmarshal([]byte(calls), &m.calls)
}

// writeMemory stores the memory of an owner, and the keys of the newest maxRememberedCalls calls that wrote it.
func writeMemory(tx *sqldb.Tx, scope, owner string, m memoryRow) error {
	calls, err := plainjson.Marshal(m.calls[max(0, len(m.calls)-maxRememberedCalls):])
	if err != nil { // texts always marshal
		panic(err)
	}
	_, err = tx.Exec(`INSERT INTO memories (scope, owner, content, untrusted, calls, changed) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, owner) DO UPDATE SET content = excluded.content, untrusted = excluded.untrusted, calls = excluded.calls, changed = excluded.changed`,
		append(textArgs(scope, owner, m.content), toBit(m.untrusted), sqldb.Text(string(calls)), toStamp(time.Now()))...)
	return err
}

// mergeMemories moves one account's memory to another account, whose own memory it is appended to.
func mergeMemories(tx *sqldb.Tx, from, to string) error {
	if err := copyMemories(tx, from, to); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM memories WHERE scope = 'person' AND owner = ?`, textArgs(from)...)
	return err
}

// copyMemories adds one account's memory to that of another.
func copyMemories(tx *sqldb.Tx, from, to string) error {
	old, err := readMemory(tx, channels.ScopePerson, from)
	if err != nil || old.content == "" {
		return err
	}
	m, err := readMemory(tx, channels.ScopePerson, to)
	if err != nil {
		return err
	}
	if m.content = strings.TrimRight(m.content, " \t\r\n"); m.content != "" {
		m.content += "\n\n"
	}
	m.content += old.content
	m.untrusted = m.untrusted || old.untrusted
	m.calls = append(m.calls, old.calls...)
	return writeMemory(tx, channels.ScopePerson, to, m)
}
