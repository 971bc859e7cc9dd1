package sqlstore

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/sessions"
)

// A state is what a session's row says about its log: by it Open knows which entries to read.
type state struct {
	fence      int64
	last       int64
	summary    int64
	covers     int64
	unfinished string // the turns that are not finished, as JSON
}

// A turn is a turn that is not finished, as a session's row stores it.
type turn struct {
	ID   string `json:"turn"`
	From int64  `json:"from"` // the number of its first entry
	// Done says that the turn has ended, but that nobody knows whether its outbound messages are on
	// the bus.
	Done bool `json:"done,omitempty"`
}

// unfinishedTurns decodes the turns that are not finished.
func (s state) unfinishedTurns() ([]turn, error) {
	if s.unfinished == "" {
		return nil, nil
	}
	var turns []turn
	if err := json.Unmarshal([]byte(s.unfinished), &turns); err != nil {
		return nil, fmt.Errorf("decode unfinished turns: %w", err)
	}
	return turns, nil
}

// afterAppend returns the state after rows were appended.
func (s state) afterAppend(rows []row) (state, error) {
	for i, r := range rows {
		s.last = r.n
		var err error
		switch sessions.Kind(r.kind) {
		case sessions.KindSummary:
			err = s.noteSummary(r)
		case sessions.KindTurnStarted, sessions.KindTurnDone, sessions.KindPublished:
			err = s.noteTurn(rows[:i+1])
		}
		if err != nil {
			return state{}, fmt.Errorf("%s entry %d: %w", r.kind, r.n, err)
		}
	}
	return s, nil
}

// noteSummary records what a summary covers: at most the entries before it. If it covered
// more, it would hide itself and the entries after it.
func (s *state) noteSummary(r row) error {
	var data sessions.Summary
	if err := json.Unmarshal([]byte(r.data), &data); err != nil {
		return err
	}
	s.summary = r.n
	s.covers = min(max(data.Covers, 0), r.n-1)
	return nil
}

// noteTurn records that the last of rows begins a turn, ends it, or says that its messages are
// published. The rows before it are appended in the same write. If the turn is new, its first entry
// is among them.
func (s *state) noteTurn(rows []row) error {
	r := rows[len(rows)-1]
	turns, err := s.unfinishedTurns()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(turns, func(t turn) bool { return t.ID == r.turn })
	pending := false
	switch sessions.Kind(r.kind) {
	case sessions.KindTurnStarted:
		pending = true
	case sessions.KindTurnDone:
		var data sessions.TurnDone
		if err := json.Unmarshal([]byte(r.data), &data); err != nil {
			return err
		}
		pending = len(data.Outbound) > 0
	case sessions.KindPublished:
		pending = i >= 0 && !turns[i].Done
	}
	done := sessions.Kind(r.kind) == sessions.KindTurnDone
	switch {
	case i < 0 && pending:
		first := slices.IndexFunc(rows, func(o row) bool { return o.turn == r.turn })
		turns = append(turns, turn{ID: r.turn, From: rows[first].n, Done: done})
	case i >= 0 && pending:
		turns[i].Done = turns[i].Done || done
	case i >= 0:
		turns = slices.Delete(turns, i, i+1)
	}
	return s.setUnfinished(turns)
}

// setUnfinished encodes the turns that are not finished.
func (s *state) setUnfinished(turns []turn) error {
	if len(turns) == 0 {
		s.unfinished = ""
		return nil
	}
	raw, err := json.Marshal(turns)
	if err != nil {
		return err
	}
	s.unfinished = string(raw)
	return nil
}
