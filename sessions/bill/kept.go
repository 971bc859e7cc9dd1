package bill

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/sessions/sqldb"
)

// KeptSums is the migration that adds the tables in which what was used is summed up already, so that sums over months
// need not read each call. {bytes} is replaced by a text type that sorts by bytes, {keyed} by the storage options of a
// table, and {sums} by KeptTriggers or KeptTriggersPostgres.
//
// The tables have the calls before the time `until`. SumUp adds the later ones in steps, once they are keptSumDelay old,
// which is longer than any transaction takes: until then nobody has to write to rows that all processes share. Of a
// call that is recorded later than that, and of one that is erased, {sums} add and subtract the numbers in the same
// transaction, no matter which release writes it. On PostgreSQL they first lock the row of used_until: so either SumUp
// sees what they have written, or they see how far SumUp has come. A long erasure from one session keeps that row locked
// until it is committed: SumUp and other erasures of such calls wait for it meanwhile, and appends don't.
//
// On PostgreSQL, the server's clock says how old a call is, for SumUp as for {sums}, because those of processes may differ.
const KeptSums = `
CREATE TABLE used_hours (
	hour         {bytes} NOT NULL,   -- such as 2026-01-31T15
	agent        TEXT NOT NULL,
	model        TEXT NOT NULL,
	` + keptColumns + `,
	PRIMARY KEY (hour, agent, model)
){keyed};
CREATE TABLE used_days (
	day          {bytes} NOT NULL,
	person       TEXT NOT NULL,
	agent        TEXT NOT NULL,
	model        TEXT NOT NULL,
	` + keptColumns + `,
	PRIMARY KEY (day, person, agent, model)
){keyed};
CREATE TABLE used_until (
	one   BIGINT PRIMARY KEY,
	until TEXT NOT NULL              -- in the form of the times of entries
);
INSERT INTO used_until (one, until) VALUES (1, '');
{sums}
`

// keptColumns are the columns for the sums of a Sum.
const keptColumns = `calls        BIGINT NOT NULL,
	input        BIGINT NOT NULL,
	cached       BIGINT NOT NULL,
	output       BIGINT NOT NULL,
	reasoning    BIGINT NOT NULL,
	microdollars BIGINT NOT NULL,
	estimated    BIGINT NOT NULL,
	unpriced     BIGINT NOT NULL`

// addSumsTo ends an INSERT into a table of kept sums: it adds the numbers to a row that is there.
func addSumsTo(table, key string) string {
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + changeSums("excluded", table, "+")
}

// changeSums returns the assignments that add numbers to sums, or subtract them.
func changeSums(numbers, table, sign string) string {
	var all []string
	for column := range strings.SplitSeq(totalColumns, ", ") {
		all = append(all, column+" = "+table+"."+column+" "+sign+" "+numbers+"."+column)
	}
	return strings.Join(all, ", ")
}

// sumColumns are the sums over calls.
const sumColumns = "count(*) AS calls, sum(input) AS input, sum(cached) AS cached, sum(output) AS output, sum(reasoning) AS reasoning, " +
	"sum(microdollars) AS microdollars, sum(estimated) AS estimated, sum(unpriced) AS unpriced"

// A keptTable is one of the tables of kept sums.
type keptTable struct {
	name   string
	key    string // its columns, separated by commas
	values string // their values for a call, under the same names
}

func keptTables() []keptTable {
	return []keptTable{
		{"used_hours", "hour, agent, model", "substr(at, 1, 13) AS hour, agent, model"},
		{"used_days", "day, person, agent, model", "day, person, agent, model"},
	}
}

// addCalls returns the statement that adds to a table the calls in a table or view with the columns of calls for which
// a condition holds.
func (k keptTable) addCalls(calls, condition string) string {
	return "INSERT INTO " + k.name + " (" + k.key + ", " + totalColumns + ") SELECT " + k.values + ", " + sumColumns + " FROM " + calls +
		" WHERE " + condition + k.groupBy() + addSumsTo(k.name, k.key)
}

// groupBy returns the GROUP BY for the values in from.
func (k keptTable) groupBy() string {
	all := []string{"1", "2", "3", "4"}
	return " GROUP BY " + strings.Join(all[:strings.Count(k.key, ",")+1], ", ")
}

// keyCondition returns the condition that a row of the table has the same key as a row with other names for its columns.
func (k keptTable) keyCondition(named func(column string) string) string {
	var same []string
	for column := range strings.SplitSeq(k.key, ", ") {
		same = append(same, column+" = "+named(column))
	}
	return strings.Join(same, " AND ")
}

// KeptTables returns the names of the tables, which are not copied to another database: SumUp fills them there.
func KeptTables() []string { return []string{"used_hours", "used_days", "used_until"} }

// KeptTriggers returns the triggers for SQLite. The one for deletions runs while the row is still there. It takes the
// key from the row itself, so that the database looks it up by index.
func KeptTriggers() string {
	const late = "at < (SELECT until FROM used_until)"
	ofOld := func(column string) string {
		return map[string]string{
			"hour": "substr(old.at, 1, 13)", "day": "substr(old.at, 1, 10)", "person": "old.person",
			"agent": "coalesce(old.data ->> 'agent', '')", "model": "coalesce(old.data ->> 'model', '')",
		}[column]
	}
	var added, removed strings.Builder
	for _, k := range keptTables() {
		added.WriteString(k.addCalls("calls", "session = new.session AND n = new.n") + ";\n")
		var less []string
		for column := range strings.SplitSeq(totalColumns, ", ") {
			one := "c." + column
			if column == "calls" {
				one = "1"
			}
			less = append(less, k.name+"."+column+" - "+one)
		}
		where := " WHERE " + k.keyCondition(ofOld)
		removed.WriteString("UPDATE " + k.name + " SET (" + totalColumns + ") = (SELECT " + strings.Join(less, ", ") + " FROM calls c WHERE c.session = old.session AND c.n = old.n)" + where + ";\n" +
			"DELETE FROM " + k.name + where + " AND calls <= 0;\n")
	}
	return "CREATE TRIGGER used_late AFTER INSERT ON entries WHEN new.kind = 'usage' AND new." + late + "\nBEGIN\n" + added.String() + "END;\n" +
		"CREATE TRIGGER used_gone BEFORE DELETE ON entries WHEN old.kind = 'usage' AND old.data <> '' AND old." + late + "\nBEGIN\n" + removed.String() + "END;\n"
}

// KeptTriggersPostgres returns the triggers for PostgreSQL. A loop has the server look up each row by index, whatever it
// assumes about the number of erased entries.
func KeptTriggersPostgres() string {
	const (
		begin = " RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE u TEXT; g RECORD; BEGIN\n"
		lock  = "SELECT until INTO u FROM used_until FOR UPDATE;\n"
		end   = "RETURN NULL;\nEND $$;\n"
		late  = "NEW.at < to_char(now() AT TIME ZONE 'UTC' - interval '" + lateCallAge + "', 'YYYY-MM-DD\"T\"HH24:MI:SS')"
	)
	var added, removed strings.Builder
	for _, k := range keptTables() {
		added.WriteString(k.addCalls("calls", "session = NEW.session AND n = NEW.n AND at < u") + ";\n")
		where := " WHERE " + k.keyCondition(func(column string) string { return "g." + column })
		removed.WriteString("FOR g IN SELECT " + k.values + ", " + sumColumns + " FROM (" + callsOf("gone") + ") AS c WHERE at < u" + k.groupBy() + " LOOP\n" +
			"UPDATE " + k.name + " SET " + changeSums("g", k.name, "-") + where + ";\nDELETE FROM " + k.name + where + " AND calls <= 0;\nEND LOOP;\n")
	}
	return "CREATE FUNCTION parley_add_late_usage()" + begin + lock + added.String() + end +
		"CREATE TRIGGER used_late AFTER INSERT ON entries FOR EACH ROW WHEN (NEW.kind = 'usage' AND " + late + ") EXECUTE FUNCTION parley_add_late_usage();\n" +
		"CREATE FUNCTION parley_subtract_usage()" + begin +
		"IF NOT EXISTS (SELECT 1 FROM gone WHERE kind = 'usage') THEN RETURN NULL; END IF;\n" + lock + removed.String() + end +
		"CREATE TRIGGER used_gone AFTER DELETE ON entries REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION parley_subtract_usage();\n"
}

const (
	// keptSumDelay is how old a call is before it is added to the kept sums. lateCallAge is how old a new call is for which the
	// trigger of PostgreSQL looks whether that has happened already. Databases have its value in their trigger, so
	// keptSumDelay must stay longer than that by more than any transaction takes.
	keptSumDelay = 2 * time.Hour
	lateCallAge  = "1 hour"
	// callsPerStep is how many calls a step of SumUp adds at most, so that writes wait for it only for a few milliseconds.
	callsPerStep = 300
)

// SumUp adds some of the calls to the kept sums that are not in there, the earliest first, and reports whether there
// are more. Several processes may call it, and one that dies leaves the rest to the next.
func (t Table) SumUp(ctx context.Context) (more bool, err error) {
	var was string
	if err := t.DB.Read.QueryRowContext(ctx, "SELECT until FROM used_until").Scan(&was); err != nil {
		return false, fmt.Errorf("sum up what was used: %w", err)
	}
	next, more, err := t.nextUntil(ctx, was)
	if err != nil || next <= was {
		return false, err
	}
	err = t.DB.Write(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec("UPDATE used_until SET until = ? WHERE until = ?", next, was)
		if err != nil || n == 0 { // another process has done it
			return err
		}
		for _, k := range keptTables() {
			if _, err := tx.Exec(k.addCalls("calls", "at >= ? AND at < ?"), was, next); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("sum up what was used: %w", err)
	}
	return more, nil
}

// settled returns the time before which calls are added to the kept sums. now is what this process's clock says.
func (t Table) settled(ctx context.Context, now time.Time) (string, error) {
	if t.DB.IsPostgres() {
		if err := t.DB.Read.QueryRowContext(ctx, "SELECT now()").Scan(&now); err != nil {
			return "", fmt.Errorf("ask the database for the time: %w", err)
		}
	}
	return sqldb.FormatTime(now.Add(-keptSumDelay)), nil
}

// nextUntil returns the time until which the next step of SumUp adds calls, if those before a time are added, and
// whether there are more.
func (t Table) nextUntil(ctx context.Context, was string) (next string, more bool, err error) {
	limit, err := t.settled(ctx, time.Now())
	if err != nil {
		return "", false, err
	}
	const usage = "SELECT at FROM entries WHERE kind = 'usage' AND at < ? AND at "
	err = t.DB.Read.QueryRowContext(ctx, usage+">= ? ORDER BY at LIMIT 1 OFFSET ?", limit, was, callsPerStep).Scan(&next)
	if err == nil && next == was { // so many at the same time
		err = t.DB.Read.QueryRowContext(ctx, usage+"> ? ORDER BY at LIMIT 1", limit, was).Scan(&next)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return limit, false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look for what was used: %w", err)
	}
	return next, true, nil
}

// A keptSum says where a question is answered: in which table of kept sums, by which of its columns for the time, and
// with which for the keys.
type keptSum struct{ table, period, firstKey, secondKey string }

// findKeptSum returns where a question is answered; false if no kept sums answer it.
func findKeptSum(one, two Grouping) (k keptSum, kept bool) {
	hours := map[Grouping]string{ByHour: "hour", ByDay: "substr(hour, 1, 10)", ByAgent: "agent", ByModel: "model", "": "''"}
	days := map[Grouping]string{ByDay: "day", ByPerson: "person", ByAgent: "agent", ByModel: "model", "": "''"}
	switch {
	case hours[one] != "" && hours[two] != "":
		return keptSum{"used_hours", "hour", hours[one], hours[two]}, true
	case days[one] != "" && days[two] != "":
		return keptSum{"used_days", "day", days[one], days[two]}, true
	}
	return k, false
}
