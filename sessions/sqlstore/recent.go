package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/participants"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// recencyMigration is the migration that adds the indexes for the sessions that were used last: of all, of an
// agent, of a channel, and of a chat. They contain the time of the last append in steps of ten minutes,
// so that they are written once in that time, and not with each append. {fill} keeps the columns of the
// index up to date, no matter which release writes.
const recencyMigration = `
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

// activeOf returns the value of the column active for a time that sqldb.FormatTime has formatted.
func activeOf(updated string) string { return updated[:15] }

const (
	// maxSessionsRead is the most sessions that Recent looks at for one page.
	maxSessionsRead = 5000
	// sessionsPerRead is how many of them it reads at once if it filters them.
	sessionsPerRead = 500
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
			n = min(sessionsPerRead, maxSessionsRead-looked)
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
		if looked >= maxSessionsRead || len(page.Sessions) == q.Limit {
			page.Next = at
			return page, nil
		}
	}
}

// newest reads the sessions that follow another in the order of Recent, and uses the index for the
// narrowest condition of the query.
func (s *reader) newest(ctx context.Context, q sessions.SessionQuery, after *sessions.Info, limit int) ([]sessions.Info, error) {
	of, err := s.selection(ctx, q)
	if err != nil {
		return nil, err
	}
	since, until := activeOf(sqldb.FormatTime(q.Since)), ""
	of.addCondition("active >= ? AND updated >= ?", since, sqldb.FormatTime(q.Since))
	if after != nil {
		at := sqldb.FormatTime(after.Updated)
		until = activeOf(at)
		of.addCondition("active <= ? AND (updated < ? OR updated = ? AND key > ?)", until, at, at, sqldb.Text(after.Key))
	}
	const order = "active DESC, updated DESC, key"
	few, args := of.newest(order, limit)
	if of.hasHour {
		few, args = of.newestByHour(order, limit, since, until)
	}
	// The inner query reads no titles, because it may have to sort more sessions than are listed.
	found, err := s.db.Read.QueryContext(ctx, of.with+"SELECT "+infoColumns+" FROM ("+few+") AS s"+titledInfo+" ORDER BY "+order+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	return scanInfos(found)
}

// A sessionSelection is the part of newest's query that selects sessions: its WITH, the table, the conditions, and their
// arguments.
type sessionSelection struct {
	with, from string
	where      []string
	args       []any
	hasHour    bool // whether from has the column hour of participants
}

// addCondition adds a condition.
func (o *sessionSelection) addCondition(condition string, args ...any) {
	o.where, o.args = append(o.where, condition), append(o.args, args...)
}

// newest returns the query for the first sessions in an order, and its arguments.
func (o *sessionSelection) newest(order string, limit int) (query string, args []any) {
	return "SELECT * FROM " + o.from + " WHERE " + strings.Join(o.where, " AND ") + " ORDER BY " + order + " LIMIT ?", append(slices.Clone(o.args), limit)
}

// newestByHour does the same for sessions from the table of participants, whose rows with an hour are in the same order
// by index. since and until are values of the column active; until may be empty.
func (o *sessionSelection) newestByHour(order string, limit int, since, until string) (query string, args []any) {
	timed := sessionSelection{from: o.from, where: slices.Clone(o.where), args: slices.Clone(o.args)}
	timed.addCondition("hour >= ?", participants.Hour(since))
	if until != "" {
		timed.addCondition("hour <= ?", participants.Hour(until))
	}
	large := sessionSelection{from: o.from, where: slices.Clone(o.where), args: slices.Clone(o.args)}
	large.addCondition("hour = ''")
	query, args = timed.newest("hour DESC, "+order, limit)
	more, of := large.newest(order, limit)
	return "SELECT * FROM (" + query + ") AS timed UNION ALL SELECT * FROM (" + more + ") AS large", append(args, of...)
}

// selection returns the sessions of a query, without the conditions on times.
func (s *reader) selection(ctx context.Context, q sessions.SessionQuery) (of sessionSelection, err error) {
	switch {
	case q.Keys != nil:
		s.addKeys(&of, q)
	case q.Person != "":
		return s.selectOfPerson(ctx, q)
	case q.Chat != "":
		of = sessionSelection{from: "sessions"}
		of.addCondition("chat = ?", chatColumn(q.Channel, q.Chat))
	case q.Channel != "":
		of = sessionSelection{from: "sessions"}
		of.addCondition("channel = ?", sessions.EncodePart(q.Channel))
	case q.Agent != "":
		of = sessionSelection{from: "sessions"}
		of.addCondition("agent = ?", sessions.EncodePart(q.Agent))
	case s.db.IsPostgres():
		of.from = "sessions"
	default:
		of.from = "sessions INDEXED BY sessions_by_time" // without INDEXED BY, SQLite would not use the index if it assumed that the condition holds for all rows
	}
	return of, nil
}

// addKeys selects the sessions with the query's keys. They are few compared to all sessions, so they are selected
// first.
func (s *reader) addKeys(of *sessionSelection, q sessions.SessionQuery) {
	given, keys := "SELECT value FROM json_each(?)", any(bill.StoredTexts(q.Keys))
	if s.db.IsPostgres() {
		given = "SELECT unnest(CAST(? AS text[]))"
	} else if raw, err := plainjson.Marshal(keys); err == nil { // a list of texts can be encoded
		keys = string(raw)
	}
	of.addCondition("key IN ("+given+")", keys)
	if q.Person != "" {
		of.addCondition(participants.SpokeIn, sqldb.Text(q.Person))
	}
	of.addPlaceConditions(q)
	of.selectFirst()
}

// selectOfPerson selects the sessions in which the query's person has spoken.
func (s *reader) selectOfPerson(ctx context.Context, q sessions.SessionQuery) (of sessionSelection, err error) {
	complete, err := s.participants.Complete(ctx)
	if err != nil {
		return of, err
	}
	person := sqldb.Text(q.Person)
	if complete {
		of = sessionSelection{from: "participants CROSS JOIN sessions", hasHour: true} // SQLite reads the tables of a CROSS JOIN in this order
		of.addCondition("participants.person = ? AND sessions.id = participants.session", person)
		of.addPlaceConditions(q)
		return of, nil
	}
	of.addCondition("id IN ("+sessionsOfPerson+")", person, person)
	of.addPlaceConditions(q)
	of.selectFirst()
	return of, nil
}

// addPlaceConditions adds the query's conditions on agent, channel and chat.
func (o *sessionSelection) addPlaceConditions(q sessions.SessionQuery) {
	if q.Agent != "" {
		o.addCondition("agent = ?", sessions.EncodePart(q.Agent))
	}
	if q.Channel != "" {
		o.addCondition("channel = ?", sessions.EncodePart(q.Channel))
	}
	if q.Chat != "" {
		o.addCondition("chat = ?", chatColumn(q.Channel, q.Chat))
	}
}

// selectFirst makes the query select the sessions that meet the conditions so far before it evaluates anything
// else.
func (o *sessionSelection) selectFirst() {
	o.with, o.from = "WITH few AS MATERIALIZED (SELECT * FROM sessions WHERE "+strings.Join(o.where, " AND ")+") ", "few"
	o.where = nil
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
