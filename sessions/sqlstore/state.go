package sqlstore

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/sessions"
)

// A state is what a session's row says of its log, by which Open knows what it has
// to read.
type state struct {
	last       int64
	summary    int64
	covers     int64
	unfinished string // turns, encoded
}

// A turn that is not finished.
type turn struct {
	ID   string `json:"turn"`
	From int64  `json:"from"` // its first entry
	// Done says that it has ended and its outbound messages are not known to be
	// on the bus.
	Done bool `json:"done,omitempty"`
}

func (s state) turns() ([]turn, error) {
	if s.unfinished == "" {
		return nil, nil
	}
	var turns []turn
	if err := json.Unmarshal([]byte(s.unfinished), &turns); err != nil {
		return nil, fmt.Errorf("decode unfinished turns: %w", err)
	}
	return turns, nil
}

// with is the state after rows were appended.
func (s state) with(rows []row) (state, error) {
	for i, r := range rows {
		s.last = r.n
		var err error
		switch sessions.Kind(r.kind) {
		case sessions.KindSummary:
			err = s.summarise(r)
		case sessions.KindTurnStarted, sessions.KindTurnDone, sessions.KindPublished:
			err = s.turned(rows[:i+1])
		}
		if err != nil {
			return state{}, fmt.Errorf("%s entry %d: %w", r.kind, r.n, err)
		}
	}
	return s, nil
}

// summarise notes what a summary covers, at most the entries before it: one that
// covered itself would hide the entries after it.
func (s *state) summarise(r row) error {
	var data sessions.Summary
	if err := json.Unmarshal([]byte(r.data), &data); err != nil {
		return err
	}
	s.summary = r.n
	s.covers = min(max(data.Covers, 0), r.n-1)
	return nil
}

// turned notes that the last of rows begins or ends a turn, or says that a turn is
// published. The other rows were appended with it; the turn's first entry is among
// them, as no turn has entries from before it starts.
func (s *state) turned(rows []row) error {
	r := rows[len(rows)-1]
	turns, err := s.turns()
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
	return s.keep(turns)
}

func (s *state) keep(turns []turn) error {
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
