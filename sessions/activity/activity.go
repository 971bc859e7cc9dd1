// Package activity counts by hour what a fleet has done: how turns ended, how long people waited for
// answers, and how tool calls went.
//
// activity.go counts, summary.go reads the counts back.
//
// The store counts a turn in the write that appends the turn's end to its log. A log accepts that only
// once, so each turn is counted once, no matter who resumes it. The counts contain nothing about people,
// sessions or texts; so they need no change when somebody's data is erased.
package activity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// Migration is the migration that adds the table of counts; {bytes} is replaced by a text type that sorts
// by bytes, and {counts} by the storage options of a small table.
//
// A count is the sum of its shards. Each process of a fleet writes to a shard of its own, so that no two
// of them wait for each other at the end of a turn. What is counted is a single text, such as turn/done
// or took/1500, so a release that counts more things needs no other table.
const Migration = `
CREATE TABLE activity (
	hour  {bytes} NOT NULL,   -- such as 2026-01-31T15, in UTC
	what  {bytes} NOT NULL,
	shard BIGINT NOT NULL,    -- 0: the sum of those of an hour long past
	n     BIGINT NOT NULL,
	PRIMARY KEY (hour, what, shard)
){counts};
`

// CountLifetime is how long counts are kept.
const CountLifetime = 90 * 24 * time.Hour

// The ways in which turns end, as they are counted.
const (
	turnDone    = "done"
	turnFailed  = "failed"
	turnStopped = "stopped"
	turnGivenUp = "given_up" // it was interrupted too often
	turnRefused = "refused"  // a rule kept it from doing anything
)

// The prefixes of the names of what is counted.
const (
	turnPrefix      = "turn/"
	firstTextPrefix = "first/" // how long it took until people could read something
	answerPrefix    = "took/"  // how long the answer took
	toolPrefix      = "tool/"  // tool/NAME/OUTCOME
)

// overflowBucket is the bucket for times above the greatest bound.
const overflowBucket = "more"

// bucketBounds returns the upper bounds of the buckets in which durations are counted, in milliseconds. The
// buckets of several hours and processes can be added up.
func bucketBounds() []int64 {
	return []int64{
		100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000, 15_000, 20_000, 30_000, 45_000,
		60_000, 90_000, 120_000, 180_000, 300_000, 600_000, 900_000, 1_800_000,
	}
}

// bucket returns the name of the bucket for a duration.
func bucket(ms int64) string {
	all := bucketBounds()
	i, _ := slices.BinarySearch(all, ms)
	if i == len(all) {
		return overflowBucket
	}
	return strconv.FormatInt(all[i], 10)
}

// A Count is something that is counted in an hour, and how often it happened.
type Count struct {
	Hour   string `json:"hour"`
	What   string `json:"what"`
	Number int64  `json:"n"`
}

// maxTools limits how many different tool calls of one turn are counted.
const maxTools = 200

// AddTurn returns counts together with those of a turn that ended in this hour, such as 2026-01-31T15.
// Counts of the same thing are merged. Of the turn's tools, only the first maxTools are counted.
func AddTurn(counts []Count, done sessions.TurnDone, hour string) []Count {
	all := slices.Clone(counts)
	for _, what := range counted(done) {
		all = append(all, Count{Hour: hour, What: what, Number: 1})
	}
	if f := done.Figures; f != nil {
		for _, c := range f.Calls[:min(len(f.Calls), maxTools)] {
			all = append(all, Count{Hour: hour, What: sqldb.Text(toolPrefix + c.Tool + "/" + c.Outcome), Number: int64(c.N)})
		}
	}
	return mergeCounts(all)
}

// counted returns what is counted for a turn in addition to its calls.
func counted(done sessions.TurnDone) []string {
	f := done.Figures
	if f != nil && f.Task {
		return nil // its answer goes to the agent that handed out the task, not to people
	}
	state := stateOf(done)
	all := []string{turnPrefix + state}
	if f == nil || state != turnDone { // a release without figures ended the turn, or there is no answer
		return all
	}
	all = append(all, answerPrefix+bucket(f.TookMS))
	if f.FirstMS > 0 {
		all = append(all, firstTextPrefix+bucket(f.FirstMS))
	}
	return all
}

// stateOf returns how a turn ended, as one of the states that are counted.
func stateOf(done sessions.TurnDone) string {
	switch {
	case done.Refused:
		return turnRefused
	case done.Code == sessions.CodeGaveUp:
		return turnGivenUp
	case done.State == sessions.TurnCompleted:
		return turnDone
	case done.State == sessions.TurnCancelled:
		return turnStopped
	}
	return turnFailed
}

// mergeCounts adds up counts of the same thing, and sorts them in the order of their rows, so that no two
// writes that count the same things wait for each other.
func mergeCounts(all []Count) []Count {
	slices.SortStableFunc(all, func(a, b Count) int {
		return strings.Compare(a.Hour+" "+a.What, b.Hour+" "+b.What)
	})
	sum := all[:0]
	for _, c := range all {
		if last := len(sum) - 1; last >= 0 && sum[last].Hour == c.Hour && sum[last].What == c.What {
			sum[last].Number += c.Number
			continue
		}
		sum = append(sum, c)
	}
	return sum
}

// HourLayout is the format of the stored hours. It is a prefix of the format of all times in the tables.
const HourLayout = "2006-01-02T15"

// hourOf returns the hour of a time in the stored format.
func hourOf(at time.Time) string { return at.UTC().Format(HourLayout) }

// A Table stores the counts in a database. Several processes may use the same one at a time.
type Table struct {
	db    *sqldb.DB
	shard int64
	adds  []string     // the statements of AddIn, by their number of rows
	swept atomic.Value // the hour in which sweep last ran
}

// maxRowsAdded is the most rows of one statement of AddIn. Most turns need no more.
const maxRowsAdded = 8

// NewTable returns the Table of one process.
func NewTable(db *sqldb.DB) *Table {
	t := &Table{db: db}
	if db.IsPostgres() { // only one process at a time uses a SQLite file
		t.shard = 1 + rand.Int64N(1<<40)
	}
	for n := range maxRowsAdded + 1 {
		t.adds = append(t.adds, insertRow+"VALUES "+strings.TrimPrefix(strings.Repeat(", (?, ?, ?, ?)", n), ", ")+onConflictAdd)
	}
	return t
}

const insertRow = "INSERT INTO activity (hour, what, shard, n) "

const onConflictAdd = " ON CONFLICT (hour, what, shard) DO UPDATE SET n = activity.n + excluded.n"

// AddIn adds counts within a transaction, on either kind of database.
func (t *Table) AddIn(tx *sqldb.Tx, counts []Count) error {
	for some := range slices.Chunk(counts, maxRowsAdded) {
		args := make([]any, 0, 4*len(some))
		for _, c := range some {
			args = append(args, c.Hour, c.What, t.shard, c.Number)
		}
		if _, err := tx.Exec(t.adds[len(some)], args...); err != nil {
			return fmt.Errorf("count what a turn has done: %w", err)
		}
	}
	return nil
}

// Clause returns, for PostgreSQL, a clause that adds counts if the clause moved, which comes before it, returns a
// row; "" if there are no counts. Its arguments are numbered from next on. With arrays PostgreSQL would plan the
// statement again each time.
func (t *Table) Clause(counts []Count, next int) (text string, args []any, err error) {
	if len(counts) == 0 {
		return "", nil, nil
	}
	raw, err := plainjson.Marshal(counts)
	if err != nil {
		return "", nil, fmt.Errorf("encode what a turn has done: %w", err)
	}
	return fmt.Sprintf(", noted AS ("+insertRow+`
		SELECT c.hour, c.what, $%d::bigint, c.n FROM moved, json_to_recordset($%d::text::json) AS c (hour TEXT, what TEXT, n BIGINT)`+onConflictAdd+")", next, next+1),
		[]any{t.shard, string(raw)}, nil
}

const (
	sweepRows  = 1000           // the most rows that one sweep deletes or adds up
	foldAge    = 26 * time.Hour // the age at which the shards of an hour are added up
	foldWithin = 8 * 24 * time.Hour
)

// Sweep deletes some of the counts that are older than CountLifetime, and adds up the shards of hours that are
// over. It does so once an hour in each process, in small steps. Nobody waits for it; if it fails, the
// next sweep does the same.
func (t *Table) Sweep(now time.Time) {
	hour := hourOf(now)
	if t.swept.Swap(hour) == hour {
		return
	}
	t.db.Start(func(tx *sqldb.Tx) error { return t.sweepIn(tx, now) })
}

// sweepIn does what Sweep does, within a transaction.
func (t *Table) sweepIn(tx *sqldb.Tx, now time.Time) error {
	free := "" // so that two processes that sweep at once do not wait for each other's rows
	if t.db.IsPostgres() {
		free = " FOR UPDATE SKIP LOCKED"
	}
	_, err := tx.Exec(`DELETE FROM activity WHERE (hour, what, shard) IN (
		SELECT hour, what, shard FROM activity WHERE hour < ? ORDER BY hour LIMIT ?`+free+`)`, hourOf(now.Add(-CountLifetime)), sweepRows)
	if err != nil || !t.db.IsPostgres() {
		return err
	}
	// Each process adds up only the rows that it has deleted itself.
	_, err = tx.Exec(`WITH old AS (
			DELETE FROM activity WHERE (hour, what, shard) IN (
				SELECT hour, what, shard FROM activity WHERE hour >= ? AND hour < ? AND shard <> 0 ORDER BY hour, what, shard LIMIT ?`+free+`)
			RETURNING hour, what, n
		) `+insertRow+"SELECT hour, what, 0, sum(n) FROM old GROUP BY hour, what ORDER BY hour, what"+onConflictAdd,
		hourOf(now.Add(-foldWithin)), hourOf(now.Add(-foldAge)), sweepRows)
	return err
}
