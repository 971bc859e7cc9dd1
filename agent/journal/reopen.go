package journal

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"parley/sessions"
)

// Unfinished returns the ids of the turns that have not ended, or whose replies are not published, in the order
// in which they began.
func Unfinished(records []Record) []string {
	var ids []string
	open, done := map[string]bool{}, map[string]bool{}
	for i := range records {
		r := &records[i]
		switch d := r.Data.(type) {
		case sessions.TurnStarted:
			ids = append(ids, r.Turn)
			open[r.Turn] = true
		case sessions.TurnDone:
			if open[r.Turn] { // most turns are known to be over from their first record; see FinishedTurn
				open[r.Turn], done[r.Turn] = len(d.Outbound) > 0, true
			}
		}
		if r.Kind == sessions.KindPublished && done[r.Turn] { // otherwise this is an ask that a waiting turn published
			open[r.Turn] = false
		}
	}
	kept := ids[:0]
	for _, id := range ids {
		if open[id] {
			kept = append(kept, id)
		}
	}
	return kept
}

// KeepForReopen prepares a journal to stay in memory until its session is worked on again. It removes the records that
// reading the log again would not return either, because a summary hides them or they only record the progress
// of a finished turn. It returns roughly how many bytes of memory the journal takes, and false if the journal
// can't be kept, because its log can't be opened again. Callers must no longer use records that they got
// before.
func (j *Journal) KeepForReopen() (size int, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	log, ok := j.log.(sessions.ReopenableLog)
	if !ok {
		return 0, false
	}
	log.Release()
	j.records, j.replacedResults = j.loggedRecords(), nil
	j.hideCovered()
	j.records = withoutProgress(j.records, j.finished.count)
	j.finished.grow(j.records)
	size = j.finished.size
	for i := j.finished.count; i < len(j.records); i++ {
		size += sizeOf(&j.records[i])
	}
	return size, true
}

// Reopen opens the log of a journal that was kept, for the next work on its session. From then on only holders
// of a lease with this fence or a higher one may write to it. Reopen returns false if the log has changed since
// or can't be opened again: then it must be read again.
func (j *Journal) Reopen(ctx context.Context, fence int64, logger *slog.Logger) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	log, ok := j.log.(sessions.ReopenableLog)
	if !ok {
		return false, nil
	}
	still, err := log.Reopen(ctx, fence)
	if err != nil {
		return false, fmt.Errorf("reopen the log: %w", err)
	}
	j.slog, j.next, j.unconfirmed = logger, j.log.Next(), false
	return still, nil
}

// ReopenLater does what Reopen does, but together with the first append, which returns sessions.ErrConflict if
// the log has changed since. It returns false, and does nothing, if a turn has not ended or the log can't be
// reopened that way. Until the first append succeeds, the caller must do nothing else that has an effect.
func (j *Journal) ReopenLater(fence int64, logger *slog.Logger) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	log, ok := j.log.(sessions.ReopenableLog)
	if !ok || len(Unfinished(j.records[j.finished.count:])) > 0 {
		return false, nil
	}
	if err := log.ReopenLater(fence); err != nil {
		return false, fmt.Errorf("reopen the log: %w", err)
	}
	j.slog, j.next, j.unconfirmed, j.fence = logger, j.log.Next(), true, fence
	return true, nil
}

// IsUnconfirmed reports whether ReopenLater has reopened the log and nothing was appended since.
func (j *Journal) IsUnconfirmed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unconfirmed
}

// Confirm reopens the log now if ReopenLater left that to the first append. It returns sessions.ErrConflict if
// the log has changed since.
func (j *Journal) Confirm(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.unconfirmed {
		return nil
	}
	switch still, err := j.log.(sessions.ReopenableLog).Reopen(ctx, j.fence); { //nolint:forcetypeassert // ReopenLater has checked the type
	case err != nil:
		return fmt.Errorf("reopen the log: %w", err)
	case !still:
		return fmt.Errorf("reopen the log: %w", sessions.ErrConflict)
	}
	j.unconfirmed = false
	return nil
}

// hideCovered removes the records that sessions.Log.Entries would leave out: those that the newest summary
// hides, unless their turn has not ended. The caller holds the lock.
func (j *Journal) hideCovered() {
	newest, at := sessions.Summary{}, -1
	for i := len(j.records) - 1; i >= 0 && at < 0; i-- {
		if s, is := j.records[i].Data.(sessions.Summary); is {
			newest, at = s, i
			newest.Covers = min(newest.Covers, j.records[i].N-1) // no summary hides itself
		}
	}
	if at < 0 {
		return
	}
	if at >= j.finished.count { // it is new, and may hide any record
		j.finished = finishedPrefix{}
	}
	open := map[string]bool{}
	for _, id := range Unfinished(j.records[j.finished.count:]) {
		open[id] = true
	}
	hidden := func(r Record) bool { return newest.Hides(r.N) && !open[r.Turn] }
	if slices.ContainsFunc(j.records[j.finished.count:], hidden) {
		rest := slices.DeleteFunc(slices.Clone(j.records[j.finished.count:]), hidden)
		j.records = append(slices.Clip(j.records[:j.finished.count]), rest...)
	}
}

// sizeOf returns roughly how much memory a record takes: its fields, its data, and what is cached with it.
func sizeOf(r *Record) int {
	const fields, made, frame = 250, 220, 160
	size := fields + len(r.Turn) + len(r.Cause) + len(r.Person) + len(r.Call) + r.Size
	if r.cache != nil { // counted even if nothing is cached yet: soon something will be
		size += made
		if r.Kind != sessions.KindText { // others are shown in a frame, which copies their text
			size += frame + r.Size
		}
	}
	return size
}
