package journal

import (
	"iter"

	"parley/sessions"
)

// Over replaces the data of the record with which a turn began, once the turn is over. From then on
// it only matters that the turn began there.
type Over struct{}

// A finished is the part of a journal's records that comes before all that is still to be done: it has no record
// of a turn that has not ended, and none that withoutCourse would remove. Whoever looks for such records need not
// look there, so work on a turn takes no longer the more turns there were before it.
type finished struct {
	n    int // how many records it has
	size int // of these, as sizeOf returns it
}

// grow adds all records that follow and belong to it.
func (f *finished) grow(records []Record) {
	open := map[string]bool{}
	for _, id := range Unfinished(records[f.n:]) {
		open[id] = true
	}
	for ; f.n < len(records); f.n++ {
		r := &records[f.n]
		if r.Turn != "" && (open[r.Turn] || r.Kind.IsCourse()) {
			return
		}
		f.size += sizeOf(r)
	}
}

// withoutCourse removes records that only describe the progress of finished turns, because they make
// a journal grow. Of the turns' beginnings and ends, it keeps only the places. It also keeps the
// newest record, whose number is the length of the log, and the newest usage of a turn, from which
// the next one is estimated. sessions.Peeker leaves out the same records. The slice is changed in
// place, so the caller must be its only user. The first records, as many as finished, are left as they are.
func withoutCourse(records []Record, finished int) []Record {
	open := map[string]bool{"": true}
	for _, id := range Unfinished(records[finished:]) {
		open[id] = true
	}
	usage := newestUsage(records)
	kept := records[:finished]
	for i := finished; i < len(records); i++ {
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
	for i := len(records) - 1; i >= 0; i-- {
		if r := &records[i]; r.Kind == sessions.KindUsage && r.Turn != "" {
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
