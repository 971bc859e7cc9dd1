package journal

import (
	"iter"
	"slices"

	"parley/sessions"
)

// Over replaces the data of the record with which a turn began, once the turn is over. From then on
// it only matters that the turn began there.
type Over struct{}

// withoutCourse removes records that only describe the progress of finished turns, because they make
// a journal grow. Of the turns' beginnings and ends, it keeps only the places. It also keeps the
// newest record, whose number is the length of the log, and the newest usage of a turn, from which
// the next one is estimated. sessions.Peeker leaves out the same records. The slice is changed in
// place, so the caller must be its only user.
func withoutCourse(records []Record) []Record {
	open := map[string]bool{"": true}
	for _, id := range Unfinished(records) {
		open[id] = true
	}
	usage := newestUsage(records)
	kept := records[:0]
	for i := range records {
		r := &records[i]
		if !open[r.Turn] {
			switch {
			case r.Kind == sessions.KindTurnStarted:
				r.Data, r.Size = Over{}, 0
			case r.Kind == sessions.KindTurnDone:
				r.Data, r.Size = sessions.TurnDone{}, 0
			case r.Kind.IsCourse() && i != usage && i != len(records)-1:
				continue
			}
		}
		if len(kept) == i { // nothing was left out so far
			kept = records[:i+1]
			continue
		}
		kept = append(kept, *r)
	}
	clear(records[len(kept):])
	return kept
}

// newestUsage returns which record is the newest usage of a turn; -1 if there is none.
func newestUsage(records []Record) int {
	for i, r := range slices.Backward(records) {
		if r.Kind == sessions.KindUsage && r.Turn != "" {
			return i
		}
	}
	return -1
}

// ReadTurn returns all records of a turn among the entries of a log, which begin with the turn. It reads
// no further than to the turn's last entry: that its replies are published, or its end if it has none.
func ReadTurn(entries iter.Seq2[sessions.Entry, error], turn string) ([]Record, error) {
	var records []Record
	done := false
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if e.Turn != turn {
			continue
		}
		r, err := decode(e)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		end, ends := r.Data.(sessions.TurnDone)
		if ends && len(end.Outbound) == 0 || done && r.Kind == sessions.KindPublished {
			break
		}
		done = done || ends
	}
	return records, nil
}

// IsOver reports whether a turn is over and the records no longer have its course. from is the number
// of its first entry.
func IsOver(records []Record, turn string) (from int64, is bool) {
	for _, r := range records {
		if _, over := r.Data.(Over); over && r.Turn == turn {
			return r.N, true
		}
	}
	return 0, false
}
