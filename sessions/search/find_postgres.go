package search

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// sessionsPerScan is how many sessions PostgreSQL looks for together with a word in one scan of the
	// index. In a larger scan, it compares each entry of these sessions with all of them; a smaller one costs
	// about as much as finding the word.
	sessionsPerScan = 4
	// For at most fewSessionsPostgres sessions, PostgreSQL looks for the word together with the sessions. If there
	// are more, it first looks through the entries of all sessions that have the word, unless it knows that
	// there are too many: reading entriesPerSessionCost entries takes about as long as looking in one of the sessions.
	fewSessionsPostgres   = 25
	entriesPerSessionCost = 8
	// frequenciesLifetime is how long a process uses the numbers of frequent words that it has read.
	frequenciesLifetime = time.Minute
)

// frequencies are the numbers of entries with the most frequent words, as PostgreSQL has estimated them.
type frequencies struct {
	read    time.Time
	entries map[key]float64
}

// findFrequent asks PostgreSQL which words are in so many entries that anywhereQueryPostgres would be in vain.
// A query with a limit cannot find that out, because the server collects all entries with a word before it
// returns the first. So this takes what the server has counted in a sample when it last analyzed the table:
// how often about the thousand most frequent words occur.
func (s *search) findFrequent(ctx context.Context) error {
	if !s.db.IsPostgres() || len(s.sessions) <= fewSessionsPostgres || s.isTimed() {
		return nil
	}
	known := s.frequencies.Load()
	if now := time.Now(); known == nil || now.Sub(known.read) > frequenciesLifetime {
		entries, err := s.readFrequencies(ctx)
		if err != nil {
			return fmt.Errorf("read how frequent words are: %w", err)
		}
		known = &frequencies{now, entries}
		s.frequencies.Store(known)
	}
	s.frequentWords = known.entries
	return nil
}

// readFrequencies reads what findFrequent takes; nothing, if the server has not analyzed the table yet.
func (t *Table) readFrequencies(ctx context.Context) (map[key]float64, error) {
	var text sql.NullString
	err := t.db.Read.QueryRowContext(ctx, `SELECT string_agg(concat(counted.form, ' ', counted.share * c.reltuples), ' ')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = 'words'
		CROSS JOIN LATERAL unnest(CAST(CAST(s.most_common_elems AS text) AS text[]), s.most_common_elem_freqs) AS counted (form, share)
		WHERE c.oid = to_regclass('entry_words') AND counted.form ~ '^[0-9a-v]{8}$'`).Scan(&text)
	if err != nil {
		return nil, err
	}
	entries := map[key]float64{}
	for pair := range slices.Chunk(strings.Fields(text.String), 2) {
		if entries[key(pair[0])], err = strconv.ParseFloat(pair[1], 64); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// maxAnywherePostgres does on PostgreSQL what maxAnywhereSQLite does.
func (s *search) maxAnywherePostgres(w Word) int {
	most, having := entriesPerSessionCost*len(s.sessions), 0.0
	for _, f := range w.Forms {
		having += s.frequentWords[keyOf(f)]
	}
	if len(s.sessions) <= fewSessionsPostgres || having > float64(most) {
		return 0
	}
	return most
}

// anywhereQueryPostgres does on PostgreSQL what anywhereQuerySQLite does.
func (s *search) anywhereQueryPostgres(w Word) (query string, args []any) {
	ids := make([]int64, 0, len(s.sessions))
	for id := range s.sessions {
		ids = append(ids, id)
	}
	return `SELECT count(*), string_agg(CAST(CASE WHEN session = ANY (CAST(? AS bigint[])) THEN (session << 28) + n END AS text), ',')
		FROM (SELECT session, n FROM entry_words WHERE words @@ CAST(? AS tsquery) LIMIT ?) AS found`,
		[]any{ids, keysOf(w, " | "), s.maxAnywherePostgres(w)}
}

// sessionQueryPostgres looks for the word together with some of the sessions at a time, those that were used last first,
// until it has enough.
func (s *search) sessionQueryPostgres(w Word) (query string, args []any) {
	join, condition, times := s.timeCondition("e.session = w.session AND e.n = w.n")
	var scans []string
	for some := range slices.Chunk(s.newestFirst(), sessionsPerScan) {
		var keys []string
		for _, in := range some {
			keys = append(keys, sessionKey(in.id))
		}
		scans = append(scans, "("+strings.Join(keys, " | ")+") & "+keysOf(w, " | "))
	}
	args = append(append([]any{scans}, times...), maxEntriesPerWord, maxEntriesPerWord)
	return `SELECT count(*), string_agg(CAST(row AS text), ',') FROM (SELECT row FROM unnest(CAST(? AS text[])) AS scan CROSS JOIN LATERAL (
			SELECT (w.session << 28) + w.n AS row FROM entry_words w` + join + ` WHERE w.words @@ CAST(scan AS tsquery)` + condition + ` LIMIT ?
		) AS together LIMIT ?) AS found`, args
}
