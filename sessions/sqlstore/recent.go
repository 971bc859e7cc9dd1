package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// recency is the migration that adds the indexes for the sessions that were used last: of all, of an
// agent, of a channel, and of a chat. They contain the time of the last append in steps of ten minutes,
// so that they are written once in that time, and not with each append. {fill} keeps the columns of the
// index up to date, no matter which release writes.
const recency = `
ALTER TABLE sessions ADD COLUMN active {bytes} NOT NULL DEFAULT '';  -- the beginning of updated
ALTER TABLE sessions ADD COLUMN agent {bytes} NOT NULL DEFAULT '';   -- the parts of the key, encoded as there
ALTER TABLE sessions ADD COLUMN channel {bytes} NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN chat {bytes} NOT NULL DEFAULT '';    -- with the channel
{fill}
CREATE INDEX sessions_by_time ON sessions (active);
CREATE INDEX sessions_by_agent ON sessions (agent, active);
CREATE INDEX sessions_by_channel ON sessions (channel, active);
CREATE INDEX sessions_by_chat ON sessions (chat, active);
CREATE INDEX sessions_in_chat ON sessions (chat, key);
`

// fillRecency is {fill} on SQLite, where only this release writes.
const fillRecency = `
UPDATE sessions SET active = substr(updated, 1, 15), agent = substr(key, 1, instr(key, ':') - 1), chat = substr(key, instr(key, ':') + 1);
UPDATE sessions SET channel = substr(chat, 1, instr(chat, ':') - 1);
UPDATE sessions SET chat = channel || ':' || substr(chat, length(channel) + 2, instr(substr(chat, length(channel) + 2) || ':', ':') - 1);
CREATE TRIGGER sessions_active AFTER UPDATE OF updated ON sessions WHEN substr(new.updated, 1, 15) <> old.active
BEGIN UPDATE sessions SET active = substr(new.updated, 1, 15) WHERE id = new.id; END;
`

// fillRecencyPostgres is {fill} on PostgreSQL, where the release before may still write.
const fillRecencyPostgres = `
CREATE FUNCTION parley_note_recency() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	NEW.active := substr(NEW.updated, 1, 15);
	NEW.agent := split_part(NEW.key, ':', 1);
	NEW.channel := split_part(NEW.key, ':', 2);
	NEW.chat := NEW.channel || ':' || split_part(NEW.key, ':', 3);
	RETURN NEW;
END $$;
CREATE TRIGGER sessions_created BEFORE INSERT ON sessions FOR EACH ROW WHEN (NEW.chat = '') EXECUTE FUNCTION parley_note_recency();
CREATE TRIGGER sessions_active BEFORE UPDATE OF updated ON sessions FOR EACH ROW WHEN (substr(NEW.updated, 1, 15) <> OLD.active)
	EXECUTE FUNCTION parley_note_recency();
UPDATE sessions SET updated = updated;
`

// keyColumns returns the values of the columns agent, channel and chat for a session's key.
func keyColumns(key string) (agent, channel, chat string) {
	parts := strings.SplitN(key, ":", 4)
	return parts[0], parts[1], parts[1] + ":" + parts[2]
}

// activeOf returns the value of the column active for a time that formatTime has formatted.
func activeOf(updated string) string { return updated[:15] }

const (
	// mostLooked is the most sessions that Recent looks at for one page.
	mostLooked = 5000
	// looksAtOnce is how many of them it reads at once if it filters them.
	looksAtOnce = 500
)

// Recent lists the sessions that were used last; see [sessions.Reader].
func (s *reader) Recent(ctx context.Context, q sessions.SessionQuery) (page sessions.SessionPage, err error) {
	if q.Limit <= 0 {
		return page, nil
	}
	s.db.Flush()
	filter := filterOf(q)
	at := q.After
	for looked := 0; ; {
		n := q.Limit + 1
		if filter.filters() {
			n = min(looksAtOnce, mostLooked-looked)
		}
		found, err := s.newest(ctx, q, at, n)
		if err != nil {
			return sessions.SessionPage{}, fmt.Errorf("list recent sessions: %w", err)
		}
		for i, info := range found {
			if len(page.Sessions) == q.Limit {
				page.Next = &found[i-1]
				return page, nil
			}
			if at = &found[i]; filter.match(info) {
				page.Sessions = append(page.Sessions, info)
			}
		}
		if looked += len(found); len(found) < n {
			return page, nil
		}
		if looked >= mostLooked || len(page.Sessions) == q.Limit {
			page.Next = at
			return page, nil
		}
	}
}

// newest reads the sessions that follow another in the order of Recent, and uses the index for the
// narrowest condition of the query.
func (s *reader) newest(ctx context.Context, q sessions.SessionQuery, after *sessions.Info, limit int) ([]sessions.Info, error) {
	with, from, where, args := s.source(q)
	since := sqldb.FormatTime(q.Since)
	where, args = append(where, "active >= ? AND updated >= ?"), append(args, activeOf(since), since)
	if after != nil {
		at := sqldb.FormatTime(after.Updated)
		where, args = append(where, "active <= ? AND (updated < ? OR updated = ? AND key > ?)"), append(args, activeOf(at), at, at, sqldb.Text(after.Key))
	}
	const order = " ORDER BY active DESC, updated DESC, key"
	// The inner query reads no titles, because it may have to sort more sessions than are listed.
	found, err := s.db.Read.QueryContext(ctx, with+"SELECT "+infoColumns+" FROM (SELECT * FROM "+from+" WHERE "+strings.Join(where, " AND ")+order+" LIMIT ?) AS s"+titledInfo+order,
		append(args, limit)...)
	if err != nil {
		return nil, err
	}
	return scanInfos(found)
}

// source returns the parts of newest's query that select sessions: its WITH, the table, the conditions,
// and their arguments.
func (s *reader) source(q sessions.SessionQuery) (with, from string, where []string, args []any) {
	if q.Keys != nil {
		given, keys := "SELECT value FROM json_each(?)", any(bill.Texts(q.Keys))
		if s.db.Postgres() {
			given = "SELECT unnest(CAST(? AS text[]))"
		} else if raw, err := plainjson.Marshal(keys); err == nil { // a list of texts can be encoded
			keys = string(raw)
		}
		where, args = append(where, "key IN ("+given+")"), append(args, keys)
	}
	if q.Person != "" {
		where, args = append(where, "id IN ("+sessionsOfPerson+")"), append(args, sqldb.Text(q.Person), sqldb.Text(q.Person))
	}
	switch {
	case len(where) > 0: // these are few compared to all sessions, so they are selected first
		if q.Agent != "" {
			where, args = append(where, "agent = ?"), append(args, sessions.EncodePart(q.Agent))
		}
		if q.Channel != "" {
			where, args = append(where, "channel = ?"), append(args, sessions.EncodePart(q.Channel))
		}
		if q.Chat != "" {
			where, args = append(where, "chat = ?"), append(args, chatColumn(q.Channel, q.Chat))
		}
		return "WITH few AS MATERIALIZED (SELECT * FROM sessions WHERE " + strings.Join(where, " AND ") + ") ", "few", nil, args
	case q.Chat != "":
		return "", "sessions", []string{"chat = ?"}, []any{chatColumn(q.Channel, q.Chat)}
	case q.Channel != "":
		return "", "sessions", []string{"channel = ?"}, []any{sessions.EncodePart(q.Channel)}
	case q.Agent != "":
		return "", "sessions", []string{"agent = ?"}, []any{sessions.EncodePart(q.Agent)}
	}
	if s.db.Postgres() {
		return "", "sessions", nil, nil
	}
	return "", "sessions INDEXED BY sessions_by_time", nil, nil // without INDEXED BY, SQLite would not use the index if it assumed that the condition holds for all rows
}

// chatColumn returns the value of the column chat for a chat of a channel.
func chatColumn(channel, chat string) string {
	return sessions.EncodePart(channel) + ":" + sessions.EncodePart(chat)
}

// ListIn lists the sessions of a chat; see [sessions.Reader].
func (s *reader) ListIn(ctx context.Context, channel, chat, after string, limit int) ([]sessions.Info, error) {
	s.db.Flush()
	found, err := s.db.Read.QueryContext(ctx, "SELECT "+infoColumns+" FROM sessions s"+titledInfo+" WHERE s.chat = ? AND s.key > ? ORDER BY s.key LIMIT ?",
		chatColumn(channel, chat), sqldb.Text(after), max(0, limit))
	if err != nil {
		return nil, fmt.Errorf("list the sessions of a chat: %w", err)
	}
	list, err := scanInfos(found)
	if err != nil {
		return nil, fmt.Errorf("list the sessions of a chat: %w", err)
	}
	return list, nil
}

// sessionsOfPerson selects the numbers of the sessions in which a person has spoken. It steps from one
// session to the next in the index, because a person may have said thousands of things in each.
const sessionsOfPerson = `
	WITH RECURSIVE spoken (session) AS (
		SELECT min(session) FROM entries WHERE person = ? AND person <> ''
		UNION ALL
		SELECT (SELECT min(session) FROM entries WHERE person = ? AND person <> '' AND session > spoken.session) FROM spoken WHERE spoken.session IS NOT NULL
	) SELECT session FROM spoken WHERE session IS NOT NULL`

// An infoFilter contains the conditions of a query that newest has not checked. An empty field matches all.
type infoFilter struct {
	agent string
	words []string
}

// filterOf returns the conditions that newest leaves to be checked.
func filterOf(q sessions.SessionQuery) infoFilter {
	r := infoFilter{words: strings.Fields(strings.ToLower(q.Words))}
	if q.Keys == nil && q.Person == "" && q.Channel != "" {
		r.agent = q.Agent
	}
	return r
}

func (r infoFilter) filters() bool { return r.agent != "" || len(r.words) > 0 }

func (r infoFilter) match(info sessions.Info) bool {
	if !r.filters() {
		return true
	}
	if r.agent != "" && r.agent != info.Agent {
		return false
	}
	title := strings.ToLower(info.Title)
	return !slices.ContainsFunc(r.words, func(word string) bool { return !strings.Contains(title, word) })
}
