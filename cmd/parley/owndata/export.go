package owndata

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/bus"
	"parley/sessions"
)

const (
	// pieceBytes is how much goes into one file: every platform takes that.
	pieceBytes = 7 << 20
	// lineBytes is the longest line, which then is a file of its own.
	lineBytes = 10 << 20
)

// A line is an entry of the log as a person gets it.
type line struct {
	Session string          `json:"session"`
	At      time.Time       `json:"at"`
	Turn    string          `json:"turn"`
	Kind    sessions.Kind   `json:"kind"`
	Person  string          `json:"person,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// export sends a person what they said and what was answered, as files of JSON lines.
// Their ids and what stands in them are the same if it is done again.
func (d *Desk) export(ctx context.Context, id string, r request) error {
	alone, shared, err := d.Store.Spoke(ctx, r.Person)
	if err != nil {
		return err
	}
	var piece bytes.Buffer
	sent, held, lines := 0, 0, 0
	send := func(text string) error {
		sent++
		name := fmt.Sprintf("parley-%s-%d.jsonl", r.Until.UTC().Format(time.DateOnly), sent)
		err := d.publish(ctx, bus.Outbound{
			ID: bus.DerivedID(id, fmt.Sprintf("#export/%d", sent)), To: r.To, ReplyTo: r.Quote, Text: text,
			File: &bus.File{Name: name, Data: slices.Clone(piece.Bytes())},
		})
		piece.Reset()
		return err
	}
	for _, key := range slices.Concat(alone, shared) {
		before := lines
		for l, err := range d.lines(ctx, key, r) {
			if err != nil {
				return err
			}
			raw, err := json.Marshal(l)
			if err != nil {
				return fmt.Errorf("encode an entry: %w", err)
			}
			if len(raw) > lineBytes {
				l.Data = json.RawMessage(`"left out: it is too large for a file"`)
				raw, _ = json.Marshal(l) // as above
			}
			if piece.Len() > 0 && piece.Len()+len(raw) > pieceBytes {
				if err := send("A part of what you have said to me; there is more."); err != nil {
					return err
				}
			}
			piece.Write(append(raw, '\n'))
			lines++
		}
		if lines > before {
			held++
		}
	}
	if lines == 0 {
		return d.publish(ctx, bus.Outbound{ID: bus.ReplyID(id), To: r.To, ReplyTo: r.Quote, Text: "There is nothing: I hold nothing that you have said."})
	}
	return send(fmt.Sprintf("This is what you have said to me and what I answered: %d entries of %d conversations, a line of JSON each. Files that belong to a conversation are not in it: ask me for them there.", lines, held))
}

// lines are the entries of a session that a person said, and those that answer them. What
// others said is not theirs.
func (d *Desk) lines(ctx context.Context, key string, r request) func(func(line, error) bool) {
	return func(yield func(line, error) bool) {
		theirs := map[string]bool{} // turns
		for e, err := range d.Store.Read(ctx, key, 1) {
			if errors.Is(err, sessions.ErrNotFound) {
				return // it was erased meanwhile
			}
			if err != nil {
				yield(line{}, err)
				return
			}
			if e.At.After(r.Until) {
				return
			}
			if e.Kind == sessions.KindTurnStarted {
				theirs[e.Turn] = e.Person == r.Person
			}
			if !isTheirs(e, r.Person, theirs[e.Turn]) {
				continue
			}
			if !yield(line{Session: key, At: e.At, Turn: e.Turn, Kind: e.Kind, Person: e.Person, Data: e.Data}, nil) {
				return
			}
		}
	}
}

// isTheirs tells whether an entry is what a person said, or an answer to it.
func isTheirs(e sessions.Entry, person string, turn bool) bool {
	switch e.Kind {
	case sessions.KindUser, sessions.KindCommand:
		return e.Person == person
	case sessions.KindText, sessions.KindNotice:
		return turn
	}
	return false
}
