package recall

import (
	"context"
	"errors"
	"math"
	"slices"

	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/search/sight"
)

// An entryID identifies an entry by its session and number.
type entryID struct {
	session string
	n       int64
}

// isMarked reports whether strangers may have written some of a hit. What the asker said counts as theirs, and so
// does what anybody said in the asker's session. What others said elsewhere is marked, as it is when somebody
// quotes it to the agent. The agent's own words are marked if doubtful contains their entry (see doubtfulEntries).
func isMarked(who sight.Asker, h search.Hit, doubtful map[entryID]bool) bool {
	switch {
	case h.Untrusted:
		return true
	case mayRepeat(h.Kind):
		return doubtful[entryID{h.Session, h.N}]
	}
	return h.Session != who.Session && !slices.Contains(who.Accounts, h.Person)
}

// mayRepeat reports whether an entry of this kind may repeat what the agent had read before it.
func mayRepeat(kind sessions.Kind) bool {
	return kind == sessions.KindText || kind == sessions.KindSummary || kind == sessions.KindToolResult
}

// entriesLookedBack is how many entries before a hit are read to find out whether the agent had read anything by strangers
// by then.
const entriesLookedBack = 200

// firstEntryToRead returns the number of the first of these entries before entry n.
func firstEntryToRead(n int64) int64 { return max(1, n-entriesLookedBack) }

// doubtfulEntries returns the hits before which the agent had read something by strangers in the same session, so that its
// words may repeat it. If the last relevant entry is too far back to tell, the hit is included. Hits share one pass
// through the log if the entries before them overlap.
func (f *Finder) doubtfulEntries(ctx context.Context, hits []search.Hit) (map[entryID]bool, error) {
	numbers := map[string][]int64{}
	for _, h := range hits {
		if !h.Untrusted && mayRepeat(h.Kind) {
			numbers[h.Session] = append(numbers[h.Session], h.N)
		}
	}
	doubtful := map[entryID]bool{}
	for session, all := range numbers {
		slices.Sort(all)
		for len(all) > 0 {
			n := 1
			for n < len(all) && firstEntryToRead(all[n]) <= all[n-1] {
				n++
			}
			if err := f.addDoubtful(ctx, session, all[:n], doubtful); err != nil {
				return nil, err
			}
			all = all[n:]
		}
	}
	return doubtful, nil
}

// addDoubtful adds to doubtful those of a session's entries with these (sorted) numbers that are in doubt.
func (f *Finder) addDoubtful(ctx context.Context, session string, numbers []int64, doubtful map[entryID]bool) error {
	last, foreign := int64(0), false // the last entry that says something, and whether it may contain strangers' words
	judge := func(upTo int64) {
		for len(numbers) > 0 && numbers[0] <= upTo {
			n := numbers[0]
			if from := firstEntryToRead(n); last >= from && foreign || last < from && from > 1 {
				doubtful[entryID{session, n}] = true
			}
			numbers = numbers[1:]
		}
	}
	for e, err := range f.cfg.Sessions.Read(ctx, session, firstEntryToRead(numbers[0])) {
		if errors.Is(err, sessions.ErrNotFound) { // the session has just been erased
			for _, n := range numbers {
				doubtful[entryID{session, n}] = true
			}
			return nil
		}
		if err != nil {
			return err
		}
		if judge(e.N); len(numbers) == 0 {
			return nil
		}
		if anew, isForeign := trustEffect(e); anew || isForeign {
			last, foreign = e.N, isForeign
		}
	}
	judge(math.MaxInt64)
	return nil
}

// trustEffect reports whether an entry makes the agent forget everything it had read, as /new does (anew), or may
// contain what strangers wrote (foreign), as every entry may that this release can't read.
func trustEffect(e sessions.Entry) (anew, foreign bool) {
	data, known, err := sessions.DecodeAny(e)
	if err != nil || !known {
		return false, true
	}
	switch d := data.(type) {
	case sessions.Summary:
		return d.BeginsAnew(), d.Untrusted
	case sessions.ToolResult:
		return false, d.Untrusted
	case sessions.Fetched:
		return false, d.Untrusted || d.Picture != nil
	case sessions.User:
		return false, d.Untrusted || quotesOthers(e, d.Quotes)
	case sessions.Notice:
		return false, quotesOthers(e, d.Quotes)
	}
	return false, false
}

// quotesOthers reports whether strangers may have written a quote that came with an entry.
func quotesOthers(e sessions.Entry, quotes []sessions.Quote) bool {
	return slices.ContainsFunc(quotes, func(q sessions.Quote) bool { return q.MayBeFromStrangers(e.Kind, e.Person) })
}
