package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"parley/sessions"
	"parley/sessions/schedules"
	"parley/sessions/sqldb"
)

// maxTurnEntriesSearched is how many entries of a log are searched for the end of a turn.
const maxTurnEntriesSearched = 3000

// scheduleRuns is the migration that adds the index for the runs of a schedule. It contains only entries
// that a schedule has caused, so few appends write to it. {schedule} is the id of that schedule.
const scheduleRuns = `CREATE INDEX entries_scheduled ON entries (session, ({schedule}), n) WHERE ` + isScheduled + `;`

// The parts of the index in SQL: which entries are in it, and their {schedule}, as package schedules
// forms the ids.
const (
	isScheduled         = `substr(cause, 1, 9) = 'schedule:'`
	scheduledBy         = `substr(cause, 10, instr(substr(cause, 10), ':') - 1)`
	scheduledByPostgres = `split_part(cause, ':', 2)`
)

// ScheduleRuns returns the turns that a schedule has begun, the newest first, at most limit: those of its
// slots, and those that somebody has asked for. It reads only these and, for each turn, the entries up to
// its end, no matter how many other runs and entries there are.
func (s *reader) ScheduleRuns(ctx context.Context, of schedules.Schedule, limit int) ([]schedules.Run, error) {
	s.db.Flush()
	var session int64
	err := s.queries.session.QueryRowContext(ctx, sqldb.Text(of.Session)).Scan(&session)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil // nothing has been said there yet
	}
	if err != nil {
		return nil, fmt.Errorf("look up session %s: %w", of.Session, err)
	}
	all, err := s.runsOf(ctx, session, of.ID, limit)
	for i := range all {
		if err == nil {
			err = s.readEnd(ctx, &all[i], session)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the runs of schedule %s: %w", of.ID, err)
	}
	return all, nil
}

// runsOf returns the newest runs of a schedule, without how they ended.
func (s *reader) runsOf(ctx context.Context, session int64, id string, limit int) (all []schedules.Run, err error) {
	by := scheduledBy
	if s.db.IsPostgres() {
		by = scheduledByPostgres
	}
	found, err := s.db.Read.QueryContext(ctx, "SELECT n, turn, at, cause FROM entries WHERE session = ? AND "+isScheduled+" AND "+by+" = ? ORDER BY n DESC LIMIT ?",
		session, sqldb.Text(id), max(0, limit))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var r schedules.Run
		var turn, at, cause string
		if err := found.Scan(&r.N, &turn, &at, &cause); err != nil {
			return nil, err
		}
		if r.Begun, err = sqldb.ParseTime(at); err != nil {
			return nil, err
		}
		r.ID, r.Turn = sqldb.Untext(cause), sqldb.Untext(turn)
		all = append(all, r)
	}
	return all, found.Err()
}

// readEnd fills in how the turn of a run ended, if it has ended.
func (s *reader) readEnd(ctx context.Context, r *schedules.Run, session int64) error {
	var end row
	err := s.db.Read.QueryRowContext(ctx, "SELECT "+entryColumns+" FROM entries WHERE session = ? AND n > ? AND n < ? AND turn = ? AND kind = 'turn_done' ORDER BY n LIMIT 1",
		session, r.N, r.N+maxTurnEntriesSearched, sqldb.Text(r.Turn)).Scan(end.scanTargets()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := end.toEntry()
	if err != nil {
		return err
	}
	done, err := sessions.Decode[sessions.TurnDone](e)
	r.State, r.Code, r.Ended = done.State, done.Code, e.At
	return err
}
