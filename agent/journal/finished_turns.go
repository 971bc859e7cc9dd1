package journal

import (
	"iter"

	"parley/sessions"
)

// FinishedTurn replaces the data of a turn's first record once the turn is over. From then on, only the place where the
// turn began matters.
type FinishedTurn struct{}

// A finishedPrefix is the part at the beginning of a journal's records that needs no more work: it contains no record
// of an unfinished turn (see Unfinished), and none that withoutProgress would remove. Searches for such records can
// skip it, so the work on a turn doesn't take longer the more turns there were before.
type finishedPrefix struct {
	count int // the number of its records
	size  int // their total size, by sizeOf
}

// grow adds as many of the following records as belong to it.
func (f *finishedPrefix) grow(records []Record) {
	open := map[string]bool{}
	for _, id := range Unfinished(records[f.count:]) {
		open[id] = true
	}
	for ; f.count < len(records); f.count++ {
		r := &records[f.count]
		if r.Turn != "" && (open[r.Turn] || r.Kind.IsProgressOnly()) {
			return
		}
		f.size += sizeOf(r)
	}
}

// withoutProgress removes records that only describe the progress of finished turns, because they make a journal
// grow. Of the records with which turns began and ended, it removes only the data. It also keeps the newest
// record, whose number is the length of the log, and the newest usage of a turn, which is used to estimate the
// next one. sessions.Peeker leaves out the same records. The slice is changed in place, so nobody but the
// caller may use it. The first done records were treated by an earlier call, and stay as they are.
func withoutProgress(records []Record, done int) []Record {
	open := map[string]bool{"": true}
	for _, id := range Unfinished(records[done:]) {
		open[id] = true
	}
	usage := newestUsage(records)
	kept := records[:done]
	for i := done; i < len(records); i++ {
		r := &records[i]
		if !open[r.Turn] {
			switch {
			case r.Kind == sessions.KindTurnStarted:
				r.Data, r.Size = FinishedTurn{}, 0
			case r.Kind == sessions.KindTurnDone:
				r.Data, r.Size = sessions.TurnDone{}, 0
			case r.Kind.IsProgressOnly() && i != usage && i != len(records)-1:
				continue
			}
		}
		if len(kept) == i { // nothing was removed so far
			kept = records[:i+1]
			continue
		}
		kept = append(kept, *r)
	}
	clear(records[len(kept):])
	return kept
}

// newestUsage returns the index of the newest usage of a turn; -1 if there is none.
func newestUsage(records []Record) int {
	for i := len(records) - 1; i >= 0; i-- {
		if r := &records[i]; r.Kind == sessions.KindUsage && r.Turn != "" {
			return i
		}
	}
	return -1
}

// ReadTurn returns all records of a turn. The entries are from a log, beginning with the turn's first. It stops
// reading at the turn's last entry: the one that says its replies are published, or the turn's end if it has no
// replies.
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
		r, err := Decode(e)
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

// IsOver reports whether a turn is over and the records of its progress were removed. from is the number of its
// first entry.
func IsOver(records []Record, turn string) (from int64, is bool) {
	for _, r := range records {
		if _, over := r.Data.(FinishedTurn); over && r.Turn == turn {
			return r.N, true
		}
	}
	return 0, false
}
