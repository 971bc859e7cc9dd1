package scale

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/channels/sqlbook"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/hometest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqlstore"
)

// A population describes what a home contains before it is measured. Of every ten conversations,
//
//   - five are private chats of people with the bot on Telegram, each of whom has only this one,
//   - four are topics of groups on Telegram, in which two of a few people speak,
//   - and one is a thread of the token "ada".
//
// The conversations were last used at regular times over spread days, in the order of their numbers. The book has the
// answers of 30 days, which is how long it keeps them.
type population struct {
	conversations int
	turns         int // turns of each conversation; each turn has six entries
}

const (
	spread = 300 // days
	// firstPrivate is the number of the person in the first private chat. People with lower numbers are in groups, or
	// in chats that a test starts.
	firstPrivate = 1_000_000
)

// lastPrivate returns the number of the Telegram user whose private chat was used last.
func (p population) lastPrivate() int { return firstPrivate + p.conversations/10*10 }

// conversation is the SQL for the conversation with the number i: the channel, chat and thread of its key, and the
// people who speak there. Its columns are i, channel, chat, thread, one and two. {time} is the function of the database
// that formats a time.
const conversation = `SELECT i,
	CASE WHEN i % 10 = 9 THEN 'web' ELSE 'telegram' END AS channel,
	CASE WHEN i % 10 = 9 THEN 'ada' WHEN i % 2 = 0 THEN '' || (1000000 + i) ELSE '-' || (1000 + i % 100) END AS chat,
	CASE WHEN i % 2 = 0 THEN '' ELSE '' || i END AS thread,
	CASE WHEN i % 10 = 9 THEN 'web:ada' WHEN i % 2 = 0 THEN 'telegram:' || (1000000 + i) ELSE 'telegram:' || (1000 + i % 1000) END AS one,
	CASE WHEN i % 10 = 9 THEN 'web:ada' WHEN i % 2 = 0 THEN 'telegram:' || (1000000 + i) ELSE 'telegram:' || (1000 + (i + 77) % 1000) END AS two
	FROM numbers`

// with is the beginning of each statement that adds rows for the conversations with the numbers $1 to $2.
const with = `WITH RECURSIVE numbers (i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < CAST($2 AS BIGINT)),
	said AS (` + conversation + `) `

// turn is the SQL for a table of the turns of a conversation: t is the number of the turn, ago the seconds between it
// and the last turn, and person the one who begins it.
const turn = `, rounds (t) AS (VALUES {rounds}), turns AS (SELECT said.*, t, (CAST($3 AS BIGINT) - 1 - t) * 60 + (CAST($4 AS BIGINT) - i) * CAST($5 AS BIGINT) AS ago,
	CASE WHEN t % 2 = 0 THEN one ELSE two END AS person, 'm' || i || '-' || t AS id FROM said, rounds) `

// text is the SQL for what is said in a turn: words that differ from turn to turn, and words that all turns have.
// SQLite concatenates before it computes remainders, so each remainder is in parentheses.
const text = `'The word of the day is w' || ((i * 31 + t) % 4999) || ' or perhaps v' || ((i * 7 + t) % 499) || ', and nothing else that anybody has said about it so far.'`

// statements add the rows of some conversations. $1 and $2 are the numbers of the first and the last conversation; $3
// is the number of turns of each; $4 is the number of all conversations; and $5 is the number of seconds between the
// last turns of two consecutive conversations.
var statements = []string{
	with + turn + `INSERT INTO sessions (key, fence, last, summary, covers, unfinished, created, updated, active, agent, channel, chat, title)
		SELECT 'main:' || channel || ':' || chat || CASE WHEN thread = '' THEN '' ELSE ':' || thread END, 1, 6 * CAST($3 AS BIGINT), 0, 0, '',
			{time ago}, {time ago}, substr({time ago}, 1, 15), 'main', channel, channel || ':' || chat, 2
		FROM turns WHERE t = CAST($3 AS BIGINT) - 1 ORDER BY i`,
	with + turn + `, kinds (k, kind) AS (VALUES (1, 'turn_started'), (2, 'user'), (3, 'text'), (4, 'usage'), (5, 'turn_done'), (6, 'published'))
		INSERT INTO entries (session, n, turn, kind, at, cause, person, call, data)
		SELECT i, 6 * t + k, id, kind, {time ago}, CASE WHEN kind = 'user' THEN id ELSE '' END, CASE WHEN k IN (1, 2, 4) THEN person ELSE '' END, '',
			CASE k WHEN 1 THEN '{"route":{"at":{"channel":"' || channel || '","chat":"' || chat || '"},"private":true},"agent":"main"}'
				WHEN 4 THEN '{"model":"scripted","agent":"main","input":1200,"output":80,"first_ms":300,"microdollars":460}'
				WHEN 5 THEN '{"state":"done","outbound":[{"id":"' || id || '#reply","text":"' || ` + text + ` || '"}]}'
				WHEN 6 THEN '' ELSE '{"text":"' || ` + text + ` || '"}' END
		FROM turns, kinds
		ORDER BY i, t, k`,
	with + turn + `INSERT INTO audit (at, kind, person, agent, session, turn, call, tool, arguments, verdict, result, exit_code, bytes, elapsed_ms, detail)
		SELECT {time ago}, 'turn', person, 'main', 'main:' || channel || ':' || chat || CASE WHEN thread = '' THEN '' ELSE ':' || thread END, id, '', '', '', '', 'done', '', 0, 2000, ''
		FROM turns`,
	with + turn + `INSERT INTO chats (channel, chat, thread, session, shared, seen, person, name)
		SELECT channel, chat, thread, 'main:' || channel || ':' || chat || CASE WHEN thread = '' THEN '' ELSE ':' || thread END,
			CASE WHEN one = two THEN 0 ELSE 1 END, {micro ago}, CASE WHEN one = two THEN one ELSE '' END, '' FROM turns WHERE t = 0`,
	with + turn + `INSERT INTO sends (id, channel, chat, thread, begun, session) SELECT id || '#reply', channel, chat, thread, {micro ago},
			'main:' || channel || ':' || chat || CASE WHEN thread = '' THEN '' ELSE ':' || thread END FROM turns WHERE ago < 30 * 24 * 3600`,
	with + turn + `INSERT INTO parts (send, part, state, body, plain, platform_id, interrupted, code, changed)
		SELECT id || '#reply', 0, 'sent', '', '', id, 0, '', {micro ago} FROM turns WHERE ago < 30 * 24 * 3600`,
	with + turn + `INSERT INTO pairings (person, chat, code, approved, owner, changed, expires)
		SELECT one, channel || ':' || chat, '', 1, 0, {micro ago}, 0 FROM turns WHERE t = 0 AND i % 2 = 0`,
}

// fill adds the population to the databases of a home or of a fleet. now is the time at which the last conversation was
// last used.
func (p population) fill(t testing.TB, db *sql.DB, postgres bool, now time.Time) {
	t.Helper()
	var turns []string
	for n := range p.turns {
		turns = append(turns, fmt.Sprintf("(%d)", n))
	}
	at := strings.NewReplacer("{rounds}", strings.Join(turns, ", "),
		"{time ago}", fmt.Sprintf("strftime('%%Y-%%m-%%dT%%H:%%M:%%S.000000Z', %d - ago, 'unixepoch')", now.Unix()), "{micro ago}", fmt.Sprintf("(%d - ago) * 1000000", now.Unix()))
	if postgres {
		at = strings.NewReplacer("{rounds}", strings.Join(turns, ", "),
			"{time ago}", fmt.Sprintf("to_char(to_timestamp(%d - ago) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.000000\"Z\"')", now.Unix()), "{micro ago}", fmt.Sprintf("(%d - ago) * 1000000", now.Unix()))
	}
	const atOnce = 2000
	gap := max(1, spread*24*3600/p.conversations)
	for first := 1; first <= p.conversations; first += atOnce {
		tx, err := db.BeginTx(t.Context(), nil)
		parleytest.Must(t, err)
		for _, statement := range statements {
			args := []any{first, min(first+atOnce-1, p.conversations), p.turns, p.conversations, gap}
			if _, err := tx.ExecContext(t.Context(), at.Replace(statement), args...); err != nil {
				t.Fatalf("%v: %s", err, statement)
			}
		}
		parleytest.Must(t, tx.Commit())
	}
}

// settle does the background work of a server: it indexes the words of all messages, and sums up the usage.
func settle(t testing.TB, s *sqlstore.Store) {
	t.Helper()
	for more := true; more; {
		var err error
		more, err = s.Words().Fill(t.Context())
		parleytest.Must(t, err)
	}
	for more := true; more; {
		var err error
		more, err = s.Bill().SumUp(t.Context())
		parleytest.Must(t, err)
	}
}

// fillHome creates a home with the population in a directory.
func (p population) fillHome(t testing.TB, dir string, now time.Time) {
	t.Helper()
	h := hometest.Open(t, dir)
	h.Close() // the tables are there
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, homedb.File)+"?_pragma=synchronous(off)&_pragma=cache_size(-200000)")
	parleytest.Must(t, err)
	p.fill(t, db, false, now)
	parleytest.Must(t, db.Close())
	h = hometest.Open(t, dir)
	settle(t, h.Store)
	h.Close()
}

// fillServer creates the tables with the population in a PostgreSQL database.
func (p population) fillServer(t testing.TB, place string, now time.Time) {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), place)
	parleytest.Must(t, err)
	defer s.Close()
	b, err := sqlbook.Open(context.Background(), place)
	parleytest.Must(t, err)
	parleytest.Must(t, b.Close())
	db, err := sql.Open("pgx", place)
	parleytest.Must(t, err)
	p.fill(t, db, true, now)
	_, err = db.ExecContext(t.Context(), "ANALYZE")
	parleytest.Must(t, err)
	parleytest.Must(t, db.Close())
	settle(t, s)
}
