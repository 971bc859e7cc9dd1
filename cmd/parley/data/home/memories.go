package home

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"parley/agent/route"
	"parley/channels"
	"parley/sessions"
	"parley/sessions/sqlstore"
)

// A MemoryBook stores memories, in the database in which the store keeps the logs.
type MemoryBook interface {
	// MemoriesFor reads the memories of an agent and of a person; "" means none.
	MemoriesFor(ctx context.Context, agent, person string) (ofAgent, ofPerson channels.Memory, err error)
	// MemoriesQuery returns a query for the same memories, which returns one text. Its parameters
	// are numbered starting with first.
	MemoriesQuery(agent, person string, first int) (query string, args []any)
	// DecodeMemories decodes the text that the query has returned.
	DecodeMemories(text string) (ofAgent, ofPerson channels.Memory, err error)
}

// maxMemoryAge is how long memories that were read with a turn's beginning may be used. The turn takes
// them a moment later, or never, because it was refused.
const maxMemoryAge = time.Second

// pruneSize is the number of entries at which those that are too old are removed.
const pruneSize = 64

// TurnMemories hands out what agents remember: it reads that together with the beginning of a turn, so
// that a turn need not send the server another query. Its methods may be called at the same time.
type TurnMemories struct {
	book MemoryBook

	mu   sync.Mutex
	kept map[begunTurn]readMemory // memories that were read and that no turn has taken yet
}

// A begunTurn identifies a turn that has just begun.
type begunTurn struct{ session, turn string }

// A readMemory holds the memories that a turn may know.
type readMemory struct {
	agent, person     string
	ofAgent, ofPerson channels.Memory
	at                time.Time
}

// NewTurnMemories returns TurnMemories over a book.
func NewTurnMemories(b MemoryBook) *TurnMemories {
	return &TurnMemories{book: b, kept: map[begunTurn]readMemory{}}
}

// For returns the memories that a turn may know: those of an agent and of a person; "" means none.
// It reads them, unless that was just done with the turn's beginning.
func (m *TurnMemories) For(ctx context.Context, session, turn, agent, person string) (ofAgent, ofPerson channels.Memory, err error) {
	if k, ok := m.take(begunTurn{session, turn}); ok && k.agent == agent && k.person == person && time.Since(k.at) < maxMemoryAge {
		return k.ofAgent, k.ofPerson, nil
	}
	return m.book.MemoriesFor(ctx, agent, person)
}

// Clear forgets what no turn has taken yet, for example because people's words are being erased.
func (m *TurnMemories) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.kept)
}

// take removes and returns the memories that were read with the beginning of a turn; false if there are none.
func (m *TurnMemories) take(turn begunTurn) (readMemory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[turn]
	delete(m.kept, turn)
	return k, ok
}

// TurnStartQuery returns the query for the turn's memories. The store adds it to the statement that begins the turn,
// and For uses the result. It returns false if it isn't known whose memories the turn may know.
func (m *TurnMemories) TurnStartQuery(session string, started sessions.Entry) (sqlstore.TurnStartQuery, bool) {
	data, err := sessions.Decode[sessions.TurnStarted](started)
	if err != nil {
		return sqlstore.TurnStartQuery{}, false
	}
	var r route.Route
	if err := json.Unmarshal(data.Route, &r); err != nil {
		return sqlstore.TurnStartQuery{}, false
	}
	k := readMemory{agent: data.Agent, at: time.Now()}
	if r.IsPrivate() {
		k.person = started.Person
	}
	return sqlstore.TurnStartQuery{
		Query: func(first int) (string, []any) { return m.book.MemoriesQuery(k.agent, k.person, first) },
		Result: func(text string) {
			var err error
			if k.ofAgent, k.ofPerson, err = m.book.DecodeMemories(text); err == nil {
				m.keep(begunTurn{session, started.Turn}, k)
			}
		},
	}, true
}

// keep stores the memories that were read for a turn.
func (m *TurnMemories) keep(turn begunTurn, k readMemory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) >= pruneSize {
		for other, old := range m.kept {
			if time.Since(old.at) >= maxMemoryAge {
				delete(m.kept, other)
			}
		}
	}
	m.kept[turn] = k
}
