package sqlstore

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"parley/sessions"
	"parley/sessions/activity"
	"parley/tools/plainjson"
)

// A state is what a session's row says about its log. It tells Open which entries to read.
type state struct {
	fence         int64
	lastEntry     int64
	summary       int64
	summaryCovers int64
	unfinished    turns

	title       int64 // the number of the entry whose first words are the title, 0 for none
	storedTitle int64 // its value in the session's row

	counts []activity.Count // what the last append counts in the same write
}

// A turn is an unfinished turn, as a session's row stores it.
type turn struct {
	ID   string `json:"turn"`
	From int64  `json:"from"` // the number of its first entry
	// Done says that the turn has ended, but that nobody knows whether its outbound messages are on
	// the bus.
	Done bool `json:"done,omitempty"`
}

// turns are the unfinished turns of a session. They are not changed in place, because copies of a state
// share them.
type turns []turn

// Scan implements sql.Scanner: it decodes what text has encoded.
func (t *turns) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil {
		return err
	}
	*t = nil
	if text.String == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text.String), t); err != nil {
		return fmt.Errorf("decode unfinished turns: %w", err)
	}
	return nil
}

// text encodes the turns as a session's row stores them: as JSON, or empty for none.
func (t turns) text() (string, error) {
	if len(t) == 0 {
		return "", nil
	}
	raw, err := plainjson.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encode unfinished turns: %w", err)
	}
	return string(raw), nil
}

// afterAppend returns the state after rows were appended.
func (s state) afterAppend(rows []row) (state, error) {
	s.counts = nil
	for i, r := range rows {
		s.lastEntry = r.n
		var err error
		switch sessions.Kind(r.kind) {
		case sessions.KindSummary:
			err = s.noteSummary(r)
		case sessions.KindUser:
			s.noteSaid(r)
		case sessions.KindTurnStarted, sessions.KindTurnDone, sessions.KindPublished:
			err = s.noteTurn(rows[:i+1])
		}
		if err != nil {
			return state{}, fmt.Errorf("%s entry %d: %w", r.kind, r.n, err)
		}
	}
	return s, nil
}

// noteSummary records which entries a summary covers: at most those before it. If it covered more, it
// would hide itself and the entries after it.
func (s *state) noteSummary(r row) error {
	var data sessions.Summary
	if err := json.Unmarshal([]byte(r.data), &data); err != nil {
		return err
	}
	if data.BeginsAnew() && data.Covers > s.summaryCovers {
		s.title = 0
	}
	s.summary = r.n
	s.summaryCovers = min(max(data.Covers, 0), r.n-1)
	return nil
}

// noteTurn records that the last of rows begins a turn, ends it, or says that its messages are published.
// The rows before it are appended in the same write; if the turn is new, its first entry is among them.
func (s *state) noteTurn(rows []row) error {
	r := rows[len(rows)-1]
	i := slices.IndexFunc(s.unfinished, func(t turn) bool { return t.ID == r.turn })
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
		s.counts = activity.AddTurn(s.counts, data, r.at[:len(activity.HourLayout)])
	case sessions.KindPublished:
		pending = i >= 0 && !s.unfinished[i].Done
	}
	done := sessions.Kind(r.kind) == sessions.KindTurnDone
	if i < 0 && !pending {
		return nil
	}
	open := slices.Clone(s.unfinished)
	switch {
	case i < 0:
		first := slices.IndexFunc(rows, func(o row) bool { return o.turn == r.turn })
		open = append(open, turn{ID: r.turn, From: rows[first].n, Done: done})
	case pending:
		open[i].Done = open[i].Done || done
	default:
		open = slices.Delete(open, i, i+1)
	}
	s.unfinished = open
	return nil
}
