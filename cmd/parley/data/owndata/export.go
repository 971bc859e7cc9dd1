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
	"parley/channels"
	"parley/sessions"
	"parley/tools/plainjson"
)

const (
	// pieceBytes is the maximum size of a file with several lines; every platform accepts that.
	pieceBytes = 7 << 20
	// lineBytes is the maximum length of a line, in bytes; what is longer is left out. A line longer
	// than pieceBytes gets a file of its own.
	lineBytes = 10 << 20
)

// A line is one line of an export: an entry of a session's log, or one of the kinds below.
type line struct {
	Session string          `json:"session"`
	At      time.Time       `json:"at"`
	Turn    string          `json:"turn"`
	Kind    sessions.Kind   `json:"kind"`
	Person  string          `json:"person,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// These are the kinds of lines that are not entries of the log.
const (
	kindRating   = "rating"   // the person's rating of an answer
	kindSchedule = "schedule" // a schedule that the person has made
	kindMemory   = "memory"   // what is remembered about the person
	kindProposal = "proposal" // a proposal of an agent to the person about what to remember
)

// export sends a person what they said, the answers to it, their ratings of answers, their
// schedules, and what is remembered about them or proposed to be, as files of JSON lines. A repeated
// export sends the same files under the same ids, except for what has changed in the meantime
// outside the logs. If there is nothing to send, it says so.
func (d *Commands) export(ctx context.Context, id string, r request) error {
	f := &exportState{commands: d, id: id, request: r}
	alone, shared, err := d.Store.SessionsOf(ctx, r.Person)
	if err != nil {
		return err
	}
	for _, key := range slices.Concat(alone, shared) {
		before := f.lines
		for l, err := range d.linesOf(ctx, key, r) {
			if err == nil {
				err = f.add(ctx, l)
			}
			if err != nil {
				return err
			}
		}
		if f.lines > before {
			f.sessions++
		}
	}
	said := f.lines
	if err := f.addRatings(ctx); err != nil {
		return err
	}
	rated := f.lines - said
	if err := f.addSchedules(ctx); err != nil {
		return err
	}
	planned := f.lines - said - rated
	others := f.lines
	if err := f.addProposals(ctx); err != nil {
		return err
	}
	offered := f.lines - others
	if err := f.addMemory(ctx); err != nil {
		return err
	}
	if f.lines == 0 {
		return d.publish(ctx, bus.Outbound{ID: bus.ReplyID(id), To: r.To, ReplyTo: r.Quote, Text: textNothingSaid})
	}
	text := fmt.Sprintf(textExport, said, f.sessions, rated, planned)
	if offered > 0 {
		text += fmt.Sprintf(textExportOffers, offered)
	}
	if f.remembered {
		text += textExportMemory
	}
	return f.send(ctx, text)
}

func (f *exportState) addRatings(ctx context.Context) error {
	ratings, err := f.commands.Ratings.RatingsBy(ctx, f.Person)
	if err != nil {
		return err
	}
	for _, one := range ratings {
		if one.Rated.After(f.Until) {
			continue
		}
		verdict, _ := plainjson.Marshal(map[string]bool{"good": one.Good}) // cannot fail
		if err := f.add(ctx, line{Session: one.Session, At: one.Rated, Turn: one.Turn, Kind: kindRating, Person: one.Person, Data: verdict}); err != nil {
			return err
		}
	}
	return nil
}

func (f *exportState) addSchedules(ctx context.Context) error {
	made, err := f.commands.Schedules.OfPerson(ctx, f.Person)
	if err != nil {
		return err
	}
	for _, one := range made {
		if one.MadeAt.After(f.Until) {
			continue
		}
		words, _ := plainjson.Marshal(map[string]string{"id": one.ID, "when": one.When, "text": one.Text, "time_zone": one.Zone}) // cannot fail
		if err := f.add(ctx, line{Session: one.Session, At: one.MadeAt, Kind: kindSchedule, Person: one.Person, Data: words}); err != nil {
			return err
		}
	}
	return nil
}

// addProposals adds what agents have proposed to remember about the person.
func (f *exportState) addProposals(ctx context.Context) error {
	if f.commands.Memories == nil {
		return nil
	}
	all, err := f.commands.Memories.ProposalsTo(ctx, f.Person)
	if err != nil {
		return err
	}
	for _, one := range all {
		text, _ := plainjson.Marshal(map[string]string{"content": one.Text, "scope": one.Scope, "state": one.State}) // cannot fail
		if err := f.add(ctx, line{Session: one.Session, At: one.Made, Turn: one.Cause, Kind: kindProposal, Person: one.Person, Data: text}); err != nil {
			return err
		}
	}
	return nil
}

// addMemory adds the current memory about the person, dated with the end of the export.
func (f *exportState) addMemory(ctx context.Context) error {
	if f.commands.Memories == nil {
		return nil
	}
	content, _, err := f.commands.Memories.Memory(ctx, channels.ScopePerson, f.Person)
	if err != nil || content == "" {
		return err
	}
	text, _ := plainjson.Marshal(map[string]string{"content": content}) // cannot fail
	f.remembered = true
	return f.add(ctx, line{At: f.Until, Kind: kindMemory, Person: f.Person, Data: text})
}

// An exportState is the state of an export while its files are made.
type exportState struct {
	commands *Commands
	id       string // the command's id
	request
	file                  bytes.Buffer
	sent, lines, sessions int
	remembered            bool
}

// add writes a line into the current file; if that is full, it sends the file and begins the next
// one.
func (f *exportState) add(ctx context.Context, l line) error {
	raw, err := plainjson.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode an entry: %w", err)
	}
	if len(raw) > lineBytes {
		l.Data = json.RawMessage(`"left out: it's too large for a file"`)
		raw, _ = plainjson.Marshal(l) // cannot fail
	}
	if f.file.Len() > 0 && f.file.Len()+len(raw) > pieceBytes {
		if err := f.send(ctx, textExportPart); err != nil {
			return err
		}
	}
	f.file.Write(append(raw, '\n'))
	f.lines++
	return nil
}

// send sends the current file.
func (f *exportState) send(ctx context.Context, text string) error {
	f.sent++
	name := fmt.Sprintf("parley-%s-%d.jsonl", f.Until.UTC().Format(time.DateOnly), f.sent)
	err := f.commands.publish(ctx, bus.Outbound{
		ID: bus.DerivedID(f.id, fmt.Sprintf("#export/%d", f.sent)), To: f.To, ReplyTo: f.Quote, Text: text,
		File: &bus.File{Name: name, Data: slices.Clone(f.file.Bytes())},
	})
	f.file.Reset()
	return err
}

// linesOf yields those entries of a session that the person of the request said, and those that
// answer them, up to the time of the request. It leaves out what others said.
func (d *Commands) linesOf(ctx context.Context, key string, r request) func(func(line, error) bool) {
	return func(yield func(line, error) bool) {
		theirs := map[string]bool{} // which turns are the person's
		for e, err := range d.Store.Read(ctx, key, 1) {
			if errors.Is(err, sessions.ErrNotFound) {
				return // the session was erased in the meantime
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

// isTheirs reports whether an entry belongs in the export for a person: they said it, or it is an
// answer or a notice in one of their turns, as turn says. A notice that marks memory doesn't.
func isTheirs(e sessions.Entry, person string, turn bool) bool {
	switch e.Kind {
	case sessions.KindUser, sessions.KindCommand, sessions.KindAskEnded:
		return e.Person == person
	case sessions.KindText, sessions.KindNotice:
		return turn && !e.MarksMemory()
	}
	return false
}
