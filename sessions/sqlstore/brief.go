package sqlstore

import (
	"context"
	"strconv"
	"strings"

	"parley/sessions"
)

// readBrief reads the entries that Peek returns from a span that ends with the newest entry.
func (s *logs) readBrief(ctx context.Context, l *log, from, last int64) ([]sessions.Entry, error) {
	if s.queries.whole == nil {
		return readEntries(ctx, s.queries.brief, nil, briefArgs(l.session, from, last)...)
	}
	packed, next, err := s.readPacks(ctx, l.session, from)
	if err != nil || next > last {
		return withoutStale(packed, last), err
	}
	entries, size, err := s.readUnpacked(ctx, l.session, next, last)
	if err != nil {
		return nil, err
	}
	if len(entries) >= minPackedEntries && 0 < size && size <= maxPackedBytesPerEntry*len(entries) {
		s.pack(l, from, next, last)
	}
	if len(packed) == 0 {
		return entries, nil
	}
	return withoutStale(append(packed, entries...), last), nil
}

// briefArgs returns the arguments of the queries for brief.
func briefArgs(session, from, last int64) []any {
	return []any{session, from, last, last, session, from, last}
}

// readUnpacked reads the entries of a span in brief, without packs. size is the length of the text that had them
// all, or 0 if their columns could not be told apart in it.
func (s *logs) readUnpacked(ctx context.Context, session, from, last int64) (entries []sessions.Entry, size int, err error) {
	args := briefArgs(session, from, last)
	var count int
	var text string
	if err := s.queries.whole.QueryRowContext(ctx, args...).Scan(&count, &text); err != nil {
		return nil, 0, err
	}
	entries, ok, err := splitEntries(text, count)
	if err != nil || ok {
		return entries, len(text), err
	}
	entries, err = readEntries(ctx, s.queries.brief, nil, args...)
	return entries, 0, err
}

// splitEntries splits the text that briefInOne has selected. It returns false if a column contains a
// separator, so that columns cannot be told apart, or if the entries are not in order.
func splitEntries(text string, count int) (entries []sessions.Entry, ok bool, err error) {
	if count == 0 {
		return nil, true, nil
	}
	if strings.Count(text, entrySeparator) != count-1 || strings.Count(text, columnSeparator) != count*(columnsOfEntry-1) {
		return nil, false, nil
	}
	entries = make([]sessions.Entry, 0, count)
	turns, kinds, people := newTextCache(2), newTextCache(8), newTextCache(4)
	var last int64
	for range count {
		var columns [columnsOfEntry]string
		for i := range columns[1:] {
			columns[i], text, ok = strings.Cut(text, columnSeparator)
			if !ok {
				return nil, false, nil
			}
		}
		columns[columnsOfEntry-1], text, _ = strings.Cut(text, entrySeparator)
		n, err := strconv.ParseInt(columns[0], 10, 64)
		if err != nil || n <= last {
			return nil, false, nil //nolint:nilerr // the caller then reads them in another way
		}
		last = n
		r := row{n: n, turn: turns.text(columns[1]), kind: kinds.text(columns[2]), at: columns[3], cause: turns.text(columns[4]), person: people.text(columns[5]), call: strings.Clone(columns[6]), data: columns[7]}
		e, err := r.toEntry()
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, e)
	}
	return entries, true, nil
}

// columnsOfEntry is how many columns of an entry briefInOne selects.
const columnsOfEntry = 8

// textCache holds the newest different texts of a column. Entries name the same turns, kinds and people again
// and again; textCache keeps one copy of each in memory, without the long text that it was part of.
type textCache struct {
	texts    []string
	nextSlot int
}

// newTextCache makes a textCache for that many texts.
func newTextCache(size int) textCache { return textCache{texts: make([]string, size)} }

// text returns the stored text that is equal to this one. If there is none, it stores a copy and returns
// that.
func (k *textCache) text(text string) string {
	if text == "" {
		return ""
	}
	for _, known := range k.texts {
		if known == text {
			return known
		}
	}
	k.nextSlot = (k.nextSlot + 1) % len(k.texts)
	k.texts[k.nextSlot] = strings.Clone(text)
	return k.texts[k.nextSlot]
}
