// Package bill sums up what model calls have cost, and limits what they may cost.
//
// bill.go sums up usage, kept.go keeps sums, budget.go limits spending.
//
// Each call's usage is recorded in the log, in the entry that is written with its answer; the view
// "calls" shows these entries as rows. When entries are erased, their numbers are added to the table
// past_usage, by day, agent and model, without a person or a session. So are the numbers of calls that
// were made outside of any session. Days and months are in UTC.
package bill

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/sessions/sqldb"
)

// A Grouping says what each sum of usage covers: a day, a person, a session and so on; or a combination
// of two of these, separated by a comma, such as "day,model".
type Grouping string

// MaxSums is the most sums that Usage returns.
const MaxSums = 10_000

// The values of Grouping.
const (
	ByHour    Grouping = "hour"
	ByDay     Grouping = "day"
	ByPerson  Grouping = "person"
	BySession Grouping = "session"
	ByAgent   Grouping = "agent"
	ByModel   Grouping = "model"
)

// AllGroupings returns the values of Grouping that consist of one name.
func AllGroupings() []Grouping {
	return []Grouping{ByHour, ByDay, ByPerson, BySession, ByAgent, ByModel}
}

// A Sum contains the totals of a group of model calls: what they have used and cost.
type Sum struct {
	// Key is the hour, day, person, session, agent or model; "" for a person or session that was erased,
	// and for calls that were made for nobody. The hour of erased calls is not known, so they are in the
	// sum of their day.
	Key          string `json:"key"`
	SecondKey    string `json:"then,omitempty"` // the second key, if sums are grouped by two
	Calls        int64  `json:"calls"`
	Input        int64  `json:"input"`     // tokens, including cached ones
	Cached       int64  `json:"cached"`    // the part of Input that the provider had in its cache
	Output       int64  `json:"output"`    // tokens, including those of reasoning
	Reasoning    int64  `json:"reasoning"` // the part of Output that was the model's reasoning
	Microdollars int64  `json:"microdollars"`
	Estimated    int64  `json:"estimated"` // how many of the calls have estimated tokens, because no provider counted them
	Unpriced     int64  `json:"unpriced"`  // how many of the calls have no known cost
}

// totalColumns are the columns of a Sum other than its keys.
const totalColumns = "calls, input, cached, output, reasoning, microdollars, estimated, unpriced"

// pastUsageTable creates the table with the usage of calls whose entries were erased.
const pastUsageTable = `
CREATE TABLE past_usage (
	day          TEXT NOT NULL,
	agent        TEXT NOT NULL,
	model        TEXT NOT NULL,
	calls        BIGINT NOT NULL,
	input        BIGINT NOT NULL,
	cached       BIGINT NOT NULL,
	output       BIGINT NOT NULL,
	reasoning    BIGINT NOT NULL,
	microdollars BIGINT NOT NULL,
	estimated    BIGINT NOT NULL,
	unpriced     BIGINT NOT NULL,
	PRIMARY KEY (day, agent, model)
);
CREATE INDEX entries_usage ON entries (at) WHERE kind = 'usage';
DROP VIEW usage;
`

// usageView creates a view that sums up calls, for people who query by hand.
const usageView = `
CREATE VIEW usage AS
SELECT s.key AS session, c.person, c.agent, c.model, c.day,
	count(*) AS calls, sum(c.input) AS input, sum(c.cached) AS cached, sum(c.output) AS output, sum(c.reasoning) AS reasoning,
	sum(c.microdollars) AS microdollars, sum(c.estimated) AS estimated, sum(c.unpriced) AS unpriced
FROM calls c JOIN sessions s ON s.id = c.session
GROUP BY s.key, c.person, c.agent, c.model, c.day
UNION ALL
SELECT '', '', agent, model, day, calls, input, cached, output, reasoning, microdollars, estimated, unpriced FROM past_usage;
`

// SQLite is the migration that adds the views and the table to a schema that has entries
// and sessions, and an older view usage.
const SQLite = pastUsageTable + `
CREATE VIEW calls AS
SELECT session, n, turn, kind, at, cause, person, substr(at, 1, 10) AS day,
	coalesce(data ->> 'agent', '')       AS agent,
	coalesce(data ->> 'model', '')       AS model,
	coalesce(data ->> 'input', 0)        AS input,
	coalesce(data ->> 'cached', 0)       AS cached,
	coalesce(data ->> 'output', 0)       AS output,
	coalesce(data ->> 'reasoning', 0)    AS reasoning,
	coalesce(data ->> 'microdollars', 0) AS microdollars,
	coalesce(data ->> 'estimated', 0)    AS estimated,
	CASE WHEN data ->> 'microdollars' IS NULL AND coalesce(data ->> 'input', 0) + coalesce(data ->> 'output', 0) > 0 THEN 1 ELSE 0 END AS unpriced
FROM entries WHERE kind = 'usage' AND data <> '';
` + usageView

// Postgres is the same migration for PostgreSQL. It leaves out documents with an escaped
// NUL: PostgreSQL stores them as text but cannot read them as JSON.
const Postgres = pastUsageTable + `
CREATE VIEW calls AS
` + callColumns + `FROM entries` + callsWhere + `;
` + usageView

// callColumns and callsWhere are what callsOf consists of.
const (
	callColumns = `SELECT session, n, turn, kind, at, cause, person, substr(at, 1, 10) AS day,
	coalesce(d ->> 'agent', '')                  AS agent,
	coalesce(d ->> 'model', '')                  AS model,
	coalesce((d ->> 'input')::bigint, 0)         AS input,
	coalesce((d ->> 'cached')::bigint, 0)        AS cached,
	coalesce((d ->> 'output')::bigint, 0)        AS output,
	coalesce((d ->> 'reasoning')::bigint, 0)     AS reasoning,
	coalesce((d ->> 'microdollars')::bigint, 0)  AS microdollars,
	CASE WHEN d ->> 'estimated' = 'true' THEN 1 ELSE 0 END AS estimated,
	CASE WHEN d ->> 'microdollars' IS NULL AND coalesce((d ->> 'input')::bigint, 0) + coalesce((d ->> 'output')::bigint, 0) > 0 THEN 1 ELSE 0 END AS unpriced
`
	callsWhere = `, LATERAL (SELECT CASE WHEN position('\u0000' IN data) = 0 THEN data::json END AS d) AS doc
WHERE kind = 'usage' AND data <> ''`
)

// callsOf returns the query on PostgreSQL for the calls that a table with the columns of entries contains.
func callsOf(table string) string { return callColumns + "FROM " + table + callsWhere }

// A Table reads usage from a database. Several processes may use the same one at a time.
type Table struct{ DB *sqldb.DB }

// The errors of Usage.
var (
	// ErrUnknownGrouping says that a Grouping has an unknown value.
	ErrUnknownGrouping = errors.New("usage is summed up by hour, day, person, session, agent or model, or by two of these")
	// ErrTooManySums says that there would be more than MaxSums sums.
	ErrTooManySums = errors.New("there are too many totals")
)

// columnsOf returns the SQL for the column of one grouping: in calls, and in past_usage.
func (g Grouping) columnsOf() (calls, past string, err error) {
	switch g {
	case ByHour: // in the form 2026-01-31T15
		return "substr(c.at, 1, 13)", "day", nil
	case ByDay, ByAgent, ByModel:
		return "c." + string(g), string(g), nil
	case ByPerson:
		return "c.person", "''", nil
	case BySession: // outside of the join, which uses the session's number
		return "s.key", "''", nil
	}
	return "", "", ErrUnknownGrouping
}

// Usage sums up usage from the day that contains from to the day that contains to.
func (t Table) Usage(ctx context.Context, by Grouping, from, to time.Time) (all []Sum, err error) {
	one, two, both := strings.Cut(string(by), ",")
	key, past, err := Grouping(one).columnsOf()
	if err != nil {
		return nil, err
	}
	then, pastThen := "''", "''"
	if both {
		if then, pastThen, err = Grouping(two).columnsOf(); err != nil {
			return nil, err
		}
	}
	join := ""
	if Grouping(one) == BySession || Grouping(two) == BySession {
		join = " JOIN sessions s ON s.id = c.session"
	}
	first, after := from.UTC().Format(time.DateOnly), to.UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	var columns []string
	for column := range strings.SplitSeq(totalColumns, ", ") {
		columns = append(columns, "CAST(sum("+column+") AS BIGINT)")
	}
	since, kept, args := "?", "", []any{first, after, first, after}
	if k, ok := findKeptSum(Grouping(one), Grouping(two)); ok { // one statement reads how far the sums go, and what follows
		since = "(SELECT CASE WHEN until > ? THEN until ELSE ? END FROM used_until)"
		kept = "\n\t\tUNION ALL SELECT " + k.firstKey + ", " + k.secondKey + ", " + totalColumns + " FROM " + k.table + " WHERE " + k.period + " >= ? AND " + k.period + " < ?"
		args = []any{first, first, after, first, after, first, after}
	}
	found, err := t.DB.Read.QueryContext(ctx, "SELECT key, also, "+strings.Join(columns, ", ")+` FROM (
		SELECT `+key+` AS key, `+then+` AS also, 1 AS calls, c.input, c.cached, c.output, c.reasoning, c.microdollars, c.estimated, c.unpriced
		FROM calls c`+join+` WHERE c.at >= `+since+` AND c.at < ?
		UNION ALL SELECT `+past+`, `+pastThen+`, `+totalColumns+` FROM past_usage WHERE day >= ? AND day < ?`+kept+`) AS used
		GROUP BY key, also ORDER BY key, also LIMIT ?`, append(args, MaxSums+1)...)
	if err != nil {
		return nil, fmt.Errorf("sum up usage: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var s Sum
		err := found.Scan(&s.Key, &s.SecondKey, &s.Calls, &s.Input, &s.Cached, &s.Output, &s.Reasoning, &s.Microdollars, &s.Estimated, &s.Unpriced)
		if err != nil {
			return nil, fmt.Errorf("sum up usage: %w", err)
		}
		s.Key, s.SecondKey = sqldb.Untext(s.Key), sqldb.Untext(s.SecondKey)
		all = append(all, s)
	}
	if len(all) > MaxSums {
		return nil, ErrTooManySums
	}
	return all, found.Err()
}

// KeepUsage adds the numbers of calls to past_usage that are recorded in the entries for which the SQL
// condition is true. It is called before these entries are erased.
func KeepUsage(tx *sqldb.Tx, condition string, args ...any) error {
	_, err := tx.Exec(`
		INSERT INTO past_usage (day, agent, model, `+totalColumns+`)
		SELECT day, agent, model, count(*), sum(input), sum(cached), sum(output), sum(reasoning), sum(microdollars), sum(estimated), sum(unpriced)
		FROM calls WHERE `+condition+` GROUP BY day, agent, model
		`+addSums, args...)
	if err != nil {
		return fmt.Errorf("keep the numbers of what was used: %w", err)
	}
	return nil
}

// Note adds the numbers of calls that were made for no session, agent or person to those of their day. It
// does not wait: a process that dies right after that loses them.
func (t Table) Note(model string, at time.Time, s Sum) {
	t.DB.Start(func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`
			INSERT INTO past_usage (day, agent, model, `+totalColumns+`) VALUES (?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?)
			`+addSums, at.UTC().Format(time.DateOnly), sqldb.Text(model), s.Calls, s.Input, s.Cached, s.Output, s.Reasoning, s.Microdollars, s.Estimated, s.Unpriced)
		return err
	})
}

// Noted returns what Note has counted for a model, in micro-dollars, from the day that contains from to
// the day that contains to.
func (t Table) Noted(ctx context.Context, model string, from, to time.Time) (micro int64, err error) {
	err = t.DB.Read.QueryRowContext(ctx, "SELECT coalesce(sum(microdollars), 0) FROM past_usage WHERE day >= ? AND day <= ? AND agent = '' AND model = ?",
		from.UTC().Format(time.DateOnly), to.UTC().Format(time.DateOnly), sqldb.Text(model)).Scan(&micro)
	if err != nil {
		return 0, fmt.Errorf("read what a model has cost: %w", err)
	}
	return micro, nil
}

// addSums ends an INSERT into past_usage.
const addSums = `ON CONFLICT (day, agent, model) DO UPDATE SET
	calls = past_usage.calls + excluded.calls, input = past_usage.input + excluded.input, cached = past_usage.cached + excluded.cached,
	output = past_usage.output + excluded.output, reasoning = past_usage.reasoning + excluded.reasoning,
	microdollars = past_usage.microdollars + excluded.microdollars, estimated = past_usage.estimated + excluded.estimated,
	unpriced = past_usage.unpriced + excluded.unpriced`

// Grouped formats a number with a comma between its thousands.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Dollars formats micro-dollars as dollars: with two decimals from one cent on, and with up to six for
// smaller amounts.
func Dollars(micro int64) string {
	if micro == 0 {
		return "$0"
	}
	if micro < 10_000 {
		return "$" + strings.TrimRight(strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64), "0")
	}
	return "$" + strconv.FormatFloat(float64(micro)/1e6, 'f', 2, 64)
}

// DollarsToFour formats micro-dollars as dollars, so that amounts can be compared with each other and
// with a cap. From one cent on it rounds them to four decimals, and omits the last two of whole cents.
func DollarsToFour(micro int64) string {
	if micro < 10_000 || micro%10_000 == 0 {
		return Dollars(micro)
	}
	return "$" + strconv.FormatFloat(float64(micro)/1e6, 'f', 4, 64)
}

// DollarsAlike formats amounts of micro-dollars that are listed below each other: all with as many
// decimals as the smallest of them needs, which are two, four or six.
func DollarsAlike(micro ...int64) []string {
	decimals := 2
	for _, m := range micro {
		switch {
		case m == 0:
		case m < 100:
			decimals = 6
		case m < 10_000:
			decimals = max(decimals, 4)
		}
	}
	texts := make([]string, len(micro))
	for i, m := range micro {
		texts[i] = "$" + strconv.FormatFloat(float64(m)/1e6, 'f', decimals, 64)
	}
	return texts
}
