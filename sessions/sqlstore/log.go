package sqlstore

import (
	"strings"

	"parley/sessions"
	"parley/sessions/activity"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
	"parley/sessions/subscriptions"
)

var _ interface {
	bill.Log
	sessions.Publisher
	sessions.ReopenableLog
	sessions.SoonLog
	sessions.Titler
} = (*log)(nil)

// logs opens the logs of sessions.
type logs struct {
	db            *sqldb.DB
	queries       *queries
	tokens        *tokens
	activity      *activity.Table
	subscriptions *subscriptions.Table
	inserts       []string                                                            // the INSERT statements, by their number of rows
	sharer        Sharer                                                              // nil if messages are stored elsewhere
	queryAtStart  func(session string, started sessions.Entry) (TurnStartQuery, bool) // see QueryAtTurnStart; may be nil
}

// maxInsert is the most rows of one INSERT.
const maxInsert = 8

func newLogs(db *sqldb.DB, q *queries, t *tokens) *logs {
	s := &logs{db: db, queries: q, tokens: t, activity: activity.NewTable(db), subscriptions: subscriptions.NewTable(db)}
	const values = ", (?, ?, ?, ?, ?, ?, ?, ?, ?)"
	for n := range maxInsert + 1 {
		s.inserts = append(s.inserts, "INSERT INTO entries (session, "+entryColumns+") VALUES "+
			strings.TrimPrefix(strings.Repeat(values, n), ", "))
	}
	return s
}

// A log is a session's log, opened under one fence, for one caller at a time.
type log struct {
	logs     *logs
	key      string
	session  int64
	fence    int64 // the holder's fence; the session's row has a lower one until the first append after ReopenLater
	erasures int64 // the session's count of erasures when the log was opened
	entries  []sessions.Entry
	state    state // what the session's row said after this holder's last append
}

// raisesFence reports whether the next append has to raise the session's fence.
func (l *log) raisesFence() bool { return l.state.fence != l.fence }

// Entries returns the entries that Open has read, until they are released; see
// [sessions.Log].
func (l *log) Entries() []sessions.Entry { return l.entries }

// Next returns the number of the next entry.
func (l *log) Next() int64 { return l.state.lastEntry + 1 }

// Release removes the entries from memory; see [sessions.ReopenableLog].
func (l *log) Release() { l.entries = nil }

// A TurnStartQuery is an SQL query that runs in the statement that begins a turn, so that it needs no statement of
// its own.
type TurnStartQuery struct {
	// Query returns a query over tables in the same database, whose result is one text or NULL. Its
	// arguments are numbered from first on.
	Query func(first int) (query string, args []any)
	// Result is called with the result, "" for NULL, once the turn has begun. If more than one statement had to begin
	// the turn, or the statement's answer was lost, it isn't called: whoever needs the result then sends the query.
	Result func(text string)
}

// QueryAtTurnStart sets the function that returns the query to run when a turn of a session begins with the
// entry started; false means none. On SQLite it is never called. QueryAtTurnStart must be called before the first
// session is opened.
func (s *logs) QueryAtTurnStart(query func(session string, started sessions.Entry) (TurnStartQuery, bool)) {
	s.queryAtStart = query
}

// A Sharer publishes messages in the writes of others: it is a bus that stores its messages in the
// store's database.
type Sharer interface {
	// Share returns a share that publishes a message in the same transaction as a write of the store, or an error
	// if the message can never be published.
	Share(topic, key, id string, body []byte) (sqldb.Share, error)
}

// PublishBy lets logs publish messages together with their entries; see [sessions.Publisher]. c must use
// the same database as the store. PublishBy must be called before the first session is opened.
func (s *logs) PublishBy(c Sharer) { s.sharer = c }

// appendOutcome is the outcome of an append.
type appendOutcome struct {
	refused    error // why nothing was written, such as a higher fence; a retry would not help
	state      state // the log's state afterwards
	rows       []row // the entries as they are in the log
	changed    bill.Changed
	eventCount int // how many events were recorded for subscribers
}
