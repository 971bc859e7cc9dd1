package sqlstore

import (
	"context"
	"strconv"
	"strings"

	"parley/sessions"
)

// readBrief reads what Peek returns of a span of entries up to the newest.
func (s *logs) readBrief(ctx context.Context, session, from, last int64) ([]sessions.Entry, error) {
	args := []any{session, from, last, last, session, from, last}
	if s.queries.whole == nil {
		return readEntries(ctx, s.queries.brief, nil, args...)
	}
	var count int
	var text string
	if err := s.queries.whole.QueryRowContext(ctx, args...).Scan(&count, &text); err != nil {
		return nil, err
	}
	entries, ok, err := splitEntries(text, count)
	if err != nil || ok {
		return entries, err
	}
	return readEntries(ctx, s.queries.brief, nil, args...)
}

// splitEntries takes apart what briefInOne has selected. It returns false if a column has a separator
// in it, and so cannot be told from others, or if the entries are not in their order.
func splitEntries(text string, count int) (entries []sessions.Entry, ok bool, err error) {
	if count == 0 {
		return nil, true, nil
	}
	if strings.Count(text, entrySeparator) != count-1 || strings.Count(text, columnSeparator) != count*(columnsOfEntry-1) {
		return nil, false, nil
	}
	entries = make([]sessions.Entry, 0, count)
	var known recent
	for one := range strings.SplitSeq(text, entrySeparator) {
		if strings.Count(one, columnSeparator) != columnsOfEntry-1 {
			return nil, false, nil
		}
		var columns [columnsOfEntry]string
		for i := range columns {
			columns[i], one, _ = strings.Cut(one, columnSeparator)
		}
		n, err := strconv.ParseInt(columns[0], 10, 64)
		if err != nil || len(entries) > 0 && n <= entries[len(entries)-1].N {
			return nil, false, nil //nolint:nilerr // it is read in another way
		}
		r := row{n, known.text(columns[1]), known.text(columns[2]), columns[3], known.text(columns[4]), known.text(columns[5]), strings.Clone(columns[6]), columns[7]}
		e, err := r.toEntry()
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, e)
	}
	return entries, true, nil
}

// columnsOfEntry is how many columns briefInOne selects of an entry.
const columnsOfEntry = 8

// recent holds the newest different texts that were taken apart. Entries name the same turns, kinds and
// people again and again; each is kept in memory once, and without the text that it was a part of.
type recent struct {
	texts [16]string
	next  int
}

// text returns the text that is the same as this, and a copy if there is none.
func (k *recent) text(text string) string {
	for _, known := range k.texts {
		if known == text {
			return known
		}
	}
	text = strings.Clone(text)
	k.texts[k.next%len(k.texts)] = text
	k.next++
	return text
}
