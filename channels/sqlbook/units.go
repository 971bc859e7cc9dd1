package sqlbook

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"parley/sessions/sqldb"
)

// finishedCondition is the SQL condition that every part of a send is in a final state.
const finishedCondition = ` AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.send = sends.id AND state IN ('queued', 'sending'))`

// A unit is a short part of an erasure within a transaction. It continues after the position that an earlier call
// has reached, which is "" for the first call, and returns the position that it has reached and whether there may
// be more.
type unit func(tx *sqldb.Tx, after string, done *Erased) (reached string, more bool, err error)

// A unitList is a sequence of units.
type unitList struct {
	count int
	run   func(i int, tx *sqldb.Tx, after string, done *Erased) (reached string, more bool, err error)
}

// units returns the units of the whole erasure, in the order in which they are done. sent are the ids of the sends
// to the addresses At, in their stored form.
func (what Erasure) units(sent []string) unitList {
	var other []unit
	if !what.Asked.IsZero() {
		other = append(other, what.strayUnit())
	}
	for _, id := range sent {
		other = append(other, sendsUnit(`id = ?`, id))
	}
	for _, at := range what.Places {
		other = append(other, sendsUnit(`channel = ? AND chat = ? AND thread = ? AND session = '' AND writer = ''`, textArgs(at.Channel, at.Chat, at.Thread)...))
	}
	if what.Person != "" {
		other = append(other, unitsOfPerson(what.Person)...)
	}
	if what.Origin != "" {
		other = append(other, submissionUnits(`origin = ?`, `origin = ?`, textArgs(what.Origin)...)...)
	}
	if !what.Before.IsZero() {
		other = append(other, unitsBefore(what.Before)...)
	}
	sends, sessions := len(what.Sends), len(what.Sessions)
	return unitList{count: sends + len(other) + sessions, run: func(i int, tx *sqldb.Tx, after string, done *Erased) (string, bool, error) {
		switch {
		case i < sends:
			return "", false, deleteSend(tx, done, sqldb.Text(what.Sends[i]))
		case i < sends+len(other):
			return other[i-sends](tx, after, done)
		}
		return eraseOfSession(tx, done, sqldb.Text(what.Sessions[i-sends-len(other)]))
	}}
}

// unitsOfPerson returns the units that erase what concerns a person.
func unitsOfPerson(person string) []unit {
	id := sqldb.Text(person)
	return []unit{
		func(tx *sqldb.Tx, _ string, done *Erased) (string, bool, error) {
			return "", false, errors.Join(erasePeople(tx, &done.Memories, person), eraseName(tx, person))
		},
		rowsUnit(nil, `UPDATE chats SET name = '', person = '' WHERE (channel, chat, thread) IN (
			SELECT channel, chat, thread FROM chats WHERE person = ? AND person <> '' LIMIT ?)`, id),
		rowsUnit(nil, `DELETE FROM notes WHERE (subject, about) IN (SELECT subject, about FROM notes WHERE about = ? LIMIT ?)`, id),
		rowsUnit(asksOf, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE person = ? LIMIT ?)`, id),
		rowsUnit(asksOf, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE answerer = ? AND told <> 0 LIMIT ?)`, id),
		func(tx *sqldb.Tx, _ string, done *Erased) (string, bool, error) {
			n, err := removeAnswerer(tx, &done.Asks, person, unitRows)
			return "", n == unitRows, err
		},
		rowsUnit(ratingsOf, `DELETE FROM ratings WHERE (person, channel, chat, message) IN (
			SELECT person, channel, chat, message FROM ratings WHERE person = ? LIMIT ?)`, id),
		rowsUnit(nil, `DELETE FROM proposals WHERE id IN (SELECT id FROM proposals WHERE person = ? LIMIT ?)`, id),
	}
}

// unitsBefore returns the units that erase what is from before a time.
func unitsBefore(before time.Time) []unit {
	at := toStamp(before)
	return append([]unit{
		func(tx *sqldb.Tx, after string, done *Erased) (string, bool, error) {
			return eraseSendsBefore(tx, done, after, at)
		},
		rowsUnit(asksOf, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE state <> 'open' AND ended > 0 AND ended < ? ORDER BY ended LIMIT ?)`, at),
		rowsUnit(ratingsOf, `DELETE FROM ratings WHERE (person, channel, chat, message) IN (
			SELECT person, channel, chat, message FROM ratings WHERE rated < ? ORDER BY rated LIMIT ?)`, at),
		rowsUnit(memoriesOf, `DELETE FROM memories WHERE scope = 'person' AND owner IN (
			SELECT owner FROM memories WHERE scope = 'person' AND changed < ? ORDER BY changed LIMIT ?)`, at),
		rowsUnit(nil, `DELETE FROM proposals WHERE id IN (SELECT id FROM proposals WHERE made < ? ORDER BY made LIMIT ?)`, at),
	}, submissionUnits(`made < ?`, `used < ?`, at)...)
}

// submissionUnits returns the units that erase the submissions for which the SQL condition is true, with their
// keys, and the subjects for which subjectCondition is true.
func submissionUnits(condition, subjectCondition string, args ...any) []unit {
	return []unit{
		rowsUnit(nil, `DELETE FROM post_keys WHERE (origin, idem) IN (SELECT origin, idem FROM post_keys WHERE `+condition+` LIMIT ?)`, args...),
		rowsUnit(nil, `DELETE FROM subjects WHERE (origin, subject, channel, chat, thread) IN (
			SELECT origin, subject, channel, chat, thread FROM subjects WHERE `+subjectCondition+` LIMIT ?)`, args...),
		rowsUnit(postsOf, `DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE `+condition+` LIMIT ?)`, args...),
	}
}

// Each of these functions returns the count in an Erased to which a unit adds its rows.
func asksOf(e *Erased) *int64 { return &e.Asks }

func ratingsOf(e *Erased) *int64 { return &e.Ratings }

func memoriesOf(e *Erased) *int64 { return &e.Memories }

func postsOf(e *Erased) *int64 { return &e.Posts }

func chatsOf(e *Erased) *int64 { return &e.Chats }

// rowsUnit returns a unit that runs a statement. The statement changes at most as many rows as its last argument
// says, and does not find those rows again afterward. counted returns the count to which they are added; nil if
// they are not counted.
func rowsUnit(counted func(*Erased) *int64, query string, args ...any) unit {
	return func(tx *sqldb.Tx, _ string, done *Erased) (string, bool, error) {
		more, err := eraseRows(tx, done, counted, query, args...)
		return "", more, err
	}
}

// eraseRows runs the statement of a rowsUnit once, and reports whether there may be more rows.
func eraseRows(tx *sqldb.Tx, done *Erased, counted func(*Erased) *int64, query string, args ...any) (more bool, err error) {
	n, err := tx.Exec(query, append(slices.Clip(args), unitRows)...)
	if counted != nil {
		*counted(done) += n
	}
	return n == unitRows, err
}

// sendsUnit returns a unit that erases the finished sends for which the SQL condition is true.
func sendsUnit(condition string, args ...any) unit {
	return func(tx *sqldb.Tx, after string, done *Erased) (string, bool, error) {
		return eraseSends(tx, done, condition, after, args...)
	}
}

// eraseSends erases some of the finished sends for which the SQL condition is true and whose ids are greater than
// after. It returns the last id, and whether there may be more.
func eraseSends(tx *sqldb.Tx, done *Erased, condition, after string, args ...any) (last string, more bool, err error) {
	ids, err := sqldb.Column(tx.Query(`SELECT id FROM sends WHERE `+condition+` AND id > ?`+finishedCondition+` ORDER BY id LIMIT ?`, append(slices.Clip(args), after, unitRows)...))
	if err != nil || len(ids) == 0 {
		return "", false, err
	}
	for _, id := range ids {
		if err := deleteSend(tx, done, id); err != nil {
			return "", false, err
		}
	}
	return ids[len(ids)-1], len(ids) == unitRows, nil
}

// eraseSendsBefore erases some of the finished sends that began before a time, oldest first: at most unitRows. It starts
// with those that began at the time that an earlier call has reached. more reports that there may be others.
func eraseSendsBefore(tx *sqldb.Tx, done *Erased, reached string, before int64) (last string, more bool, err error) {
	from := int64(0)
	if reached != "" {
		if from, err = strconv.ParseInt(reached, 10, 64); err != nil {
			return "", false, err
		}
	}
	ids, err := sqldb.Column(tx.Query(`SELECT id FROM sends WHERE begun >= ? AND begun < ?`+finishedCondition+` ORDER BY begun LIMIT ?`, from, before, unitRows))
	if err != nil || len(ids) == 0 {
		return "", false, err
	}
	if err := tx.Get(`SELECT begun FROM sends WHERE id = ?`, []any{ids[len(ids)-1]}, &from); err != nil {
		return "", false, err
	}
	for _, id := range ids {
		if err := deleteSend(tx, done, id); err != nil {
			return "", false, err
		}
	}
	return strconv.FormatInt(from, 10), len(ids) == unitRows, nil
}

// eraseOfSession erases some of what the book has about one session: the finished sends that it wrote, asks,
// ratings and proposals, and then the record of its chats, by which an erasure that was interrupted finds the rest. more
// reports that there may be others.
func eraseOfSession(tx *sqldb.Tx, done *Erased, key string) (reached string, more bool, err error) {
	for _, condition := range []string{`session = ? AND session <> ''`, `writer = ? AND writer <> ''`} {
		// The sends that earlier calls found are gone; those that aren't finished are few. So each call starts at
		// the beginning.
		if _, more, err = eraseSends(tx, done, condition, "", key); more || err != nil {
			return "", more, err
		}
	}
	for _, rows := range []struct {
		counted func(*Erased) *int64
		query   string
	}{
		{asksOf, `DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE session = ? LIMIT ?)`},
		{ratingsOf, `DELETE FROM ratings WHERE (person, channel, chat, message) IN (
			SELECT person, channel, chat, message FROM ratings WHERE session = ? LIMIT ?)`},
		{nil, `DELETE FROM proposals WHERE id IN (SELECT id FROM proposals WHERE session = ? LIMIT ?)`},
		{nil, `DELETE FROM notes WHERE (subject, about) IN (SELECT subject, about FROM notes WHERE about = ? LIMIT ?)`},
		{nil, `DELETE FROM proposal_rounds WHERE session IN (SELECT session FROM proposal_rounds WHERE session = ? LIMIT ?)`},
		{chatsOf, `DELETE FROM chats WHERE (channel, chat, thread) IN (SELECT channel, chat, thread FROM chats WHERE session = ? LIMIT ?)`},
	} {
		if more, err = eraseRows(tx, done, rows.counted, rows.query, key); more || err != nil {
			return "", more, err
		}
	}
	return "", false, nil
}

// strayUnit returns a unit that erases the records of sends that were begun but not finished, and whose messages
// are no longer on the bus: nobody would finish them.
func (what Erasure) strayUnit() unit {
	waiting := map[string]bool{}
	for _, id := range what.Waiting {
		waiting[sqldb.Text(id)] = true
	}
	return func(tx *sqldb.Tx, after string, done *Erased) (string, bool, error) {
		const unfinished = `SELECT DISTINCT send FROM parts WHERE state IN ('queued', 'sending') AND send > ? ORDER BY send LIMIT ?`
		ids, err := sqldb.Column(tx.Query(unfinished, after, unitRows))
		if err != nil || len(ids) == 0 {
			return "", false, err
		}
		for _, id := range ids {
			if waiting[id] {
				continue
			}
			var n int
			if err := tx.Get(`SELECT count(*) FROM sends WHERE id = ? AND begun < ?`, []any{id, toStamp(what.Asked)}, &n); err != nil {
				return "", false, err
			}
			if n == 0 {
				continue
			}
			if err := deleteSend(tx, done, id); err != nil {
				return "", false, err
			}
		}
		return ids[len(ids)-1], len(ids) == unitRows, nil
	}
}

// deleteSend deletes a send and its parts, given its id in its stored form.
func deleteSend(tx *sqldb.Tx, done *Erased, id string) error {
	if _, err := tx.Exec(`DELETE FROM parts WHERE send = ?`, id); err != nil {
		return err
	}
	return execCounting(tx, &done.Sends, `DELETE FROM sends WHERE id = ?`, id)
}
