package sqlbook

import (
	"context"
	"errors"
	"fmt"

	"parley/channels"
	"parley/sessions/sqldb"
)

// schemaRatings adds the ratings of answers, and an index that finds an answer by its id on the platform.
const schemaRatings = `
ALTER TABLE sends ADD COLUMN session TEXT NOT NULL DEFAULT '';
CREATE INDEX parts_by_platform_id ON parts (platform_id) WHERE platform_id <> '';
CREATE TABLE ratings (
	person  TEXT NOT NULL,
	channel TEXT NOT NULL,
	chat    TEXT NOT NULL,
	message TEXT NOT NULL,
	thread  TEXT NOT NULL,
	session TEXT NOT NULL,
	turn    TEXT NOT NULL,
	good    INTEGER NOT NULL,
	rated   BIGINT NOT NULL,
	PRIMARY KEY (person, channel, chat, message)
);
CREATE INDEX ratings_by_session ON ratings (session)`

// ratings stores what people think of answers.
type ratings struct{ db *sqldb.DB }

// Rate implements channels.Ratings: in one transaction, it finds the answer and stores the rating.
func (rs *ratings) Rate(ctx context.Context, r channels.Rating) (kept channels.Rating, changed bool, err error) {
	err = rs.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		kept, changed = r, false
		known, err := findAnswer(tx, &kept)
		if err != nil || !known {
			return err
		}
		n, err := tx.Exec(`INSERT INTO ratings (person, channel, chat, message, thread, session, turn, good, rated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (person, channel, chat, message) DO UPDATE SET good = excluded.good, rated = excluded.rated WHERE ratings.good <> excluded.good`,
			append(textArgs(r.Person, r.At.Channel, r.At.Chat, r.Message, kept.At.Thread, kept.Session, kept.Turn), toBit(r.Good), toStamp(r.Rated))...)
		changed = n > 0
		return err
	})
	if err != nil {
		return channels.Rating{}, false, fmt.Errorf("keep a rating: %w", err)
	}
	return kept, changed, nil
}

// FindRatedAnswer implements channels.Ratings: it finds the answer that contains a message.
func (rs *ratings) FindRatedAnswer(ctx context.Context, r channels.Rating) (found channels.Rating, ok bool, err error) {
	err = rs.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		found = r
		ok, err = findAnswer(tx, &found)
		return err
	})
	if err != nil {
		return channels.Rating{}, false, fmt.Errorf("find an answer: %w", err)
	}
	return found, ok, nil
}

// findAnswer looks for the answer that contains r's message, and fills in r's session, turn and thread; known is
// false if no answer contains it. A draft has the same id on the platform as the answer that replaced it, but is a
// send of its own.
func findAnswer(tx *sqldb.Tx, r *channels.Rating) (known bool, err error) {
	rows, err := tx.Query(`SELECT s.id, s.thread, s.session FROM parts p JOIN sends s ON s.id = p.send
		WHERE p.platform_id = ? AND p.platform_id <> '' AND s.channel = ? AND s.chat = ? AND s.session <> ''`, textArgs(r.Message, r.At.Channel, r.At.Chat)...)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id, &r.At.Thread, &r.Session); err != nil {
			return false, err
		}
		restoreTexts(&id, &r.At.Thread, &r.Session)
		if turn, ok := channels.AnsweredTurn(channels.PartKey(id, 0)); ok {
			r.Turn, known = turn, true
			break
		}
	}
	return known, rows.Err()
}

// DeleteRating implements channels.Ratings: it deletes the rating if it still expresses the same opinion.
func (rs *ratings) DeleteRating(ctx context.Context, r channels.Rating) error {
	_, err := rs.db.Exec(ctx, `DELETE FROM ratings WHERE person = ? AND channel = ? AND chat = ? AND message = ? AND good = ?`,
		append(textArgs(r.Person, r.At.Channel, r.At.Chat, r.Message), toBit(r.Good))...)
	if err != nil {
		return fmt.Errorf("forget a rating: %w", err)
	}
	return nil
}

// Ratings implements channels.Ratings: it lists a session's ratings, oldest first.
func (rs *ratings) Ratings(ctx context.Context, session string) ([]channels.Rating, error) {
	return rs.ratings(ctx, "session", session)
}

// RatingsBy implements channels.Ratings: it lists a person's ratings, oldest first.
func (rs *ratings) RatingsBy(ctx context.Context, person string) ([]channels.Rating, error) {
	return rs.ratings(ctx, "person", person)
}

// ratings lists the ratings that have that value in a column.
func (rs *ratings) ratings(ctx context.Context, column, value string) ([]channels.Rating, error) {
	all, err := queryAll(ctx, rs.db.Read, scanRating, `SELECT person, channel, chat, thread, message, session, turn, good, rated
		FROM ratings WHERE `+column+` = ? ORDER BY rated, person, message`, textArgs(value)...)
	if err != nil {
		return nil, fmt.Errorf("list ratings: %w", err)
	}
	return all, nil
}

func scanRating(scan func(...any) error) (r channels.Rating, err error) {
	var good int
	var rated int64
	err = scan(&r.Person, &r.At.Channel, &r.At.Chat, &r.At.Thread, &r.Message, &r.Session, &r.Turn, &good, &rated)
	restoreTexts(&r.Person, &r.At.Channel, &r.At.Chat, &r.At.Thread, &r.Message, &r.Session, &r.Turn)
	r.Good, r.Rated = good != 0, timeOf(rated)
	return r, err
}
