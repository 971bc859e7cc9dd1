package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

const (
	// defaultHits is how many hits a query without a limit returns.
	defaultHits = 10
	// maxCandidates is how many entries are read and compared with the query.
	maxCandidates = 150
	// maxEntriesPerWord is how many entries with the same word are looked at in the sessions. If there are more,
	// on SQLite they are those of the newest sessions, and on PostgreSQL those of the sessions that were
	// used last. So a word that is in nearly all entries, and says little, costs no more than one that is
	// in some.
	maxEntriesPerWord = 1000
	// maxUnindexed is how many entries are read that are not in the index yet. There are more of them only
	// until Fill has indexed the entries that an older release wrote.
	maxUnindexed = 2000
	// maxVectorsRead is the most entries of the sessions, of any kind, whose vectors are compared with a
	// query. About a third of all entries have a vector.
	maxVectorsRead = 200_000
)

// A searchedSession is a session that a query searches.
type searchedSession struct {
	id            int64
	key           string
	last, indexed int64
	updated       string
}

// An entryPlace says where an entry is.
type entryPlace struct{ session, n int64 }

// A search is one call of Search.
type search struct {
	*Table
	Query
	words         []Word
	frequentWords map[key]float64 // see findFrequent
	sessions      map[int64]searchedSession
	entries       map[entryPlace]sessions.Entry // the entries that were read
	weights       []float64                     // of the words: how rare each is among the entries that the query could find
	wordSums      map[int64]float64             // the sums of the weights of the words in each entry, by rowOf
	meaning       meaning                       // nil if only words count
}

// A meaning is a function that finds the entries in parts of sessions whose meaning is nearest to that of
// a query, and how near an average entry is. It finds none if it cannot know what the query means.
type meaning func(ctx context.Context, in []vectors.Scope) (near []vectors.Near, average float64, err error)

// Search finds entries; see [Index].
func (t *Table) Search(ctx context.Context, q Query) ([]Hit, error) { return t.search(ctx, q, nil) }

func (t *Table) search(ctx context.Context, q Query, m meaning) ([]Hit, error) {
	words := WordsOf(q.Words)
	if len(words) == 0 || len(q.Sessions) == 0 {
		return nil, nil
	}
	t.db.Flush()
	s := &search{Table: t, Query: q, words: words, sessions: map[int64]searchedSession{}, entries: map[entryPlace]sessions.Entry{}, wordSums: map[int64]float64{}, meaning: m}
	hits, err := s.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("search in sessions: %w", err)
	}
	return hits, nil
}

func (s *search) find(ctx context.Context) ([]Hit, error) {
	if err := s.findSessions(ctx); err != nil || len(s.sessions) == 0 {
		return nil, err
	}
	if err := s.findPlaces(ctx); err != nil {
		return nil, err
	}
	found, err := s.candidates(ctx)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	limit := s.Limit
	if limit <= 0 {
		limit = defaultHits
	}
	best := rank(found, s.words, s.weights, time.Now(), min(limit, MaxHits))
	hits := make([]Hit, len(best))
	for i, c := range best {
		hits[i] = c.hit(s.weights)
		if c.Kind == sessions.KindToolResult {
			var err error
			if hits[i].Tool, err = s.toolOf(ctx, c.session.id, c.Entry); err != nil {
				return nil, err
			}
		}
	}
	return hits, nil
}

// candidates reads the entries that fit the query best, by their words and by their meaning.
func (s *search) candidates(ctx context.Context) (found []candidate, err error) {
	places := s.bestByWords()
	likeness, average := map[entryPlace]float64{}, 0.0
	if s.meaning != nil {
		var near []vectors.Near
		if near, average, err = s.meaning(ctx, s.scopes()); err != nil {
			return nil, err
		}
		for _, n := range near {
			p := entryPlace{n.Session, n.N}
			if likeness[p] = n.Likeness; !slices.Contains(places, p) {
				places = append(places, p)
			}
		}
	}
	if err := s.read(ctx, places); err != nil {
		return nil, err
	}
	for _, p := range places {
		if e, there := s.entries[p]; there && s.inTime(e.At) && (s.ExcludedTurn == "" || e.Turn != s.ExcludedTurn) {
			c := newCandidate(s.sessions[p.session], e, s.words)
			c.likeness, c.isNearest = likeness[p]
			found = append(found, c)
		}
	}
	subtractAverage(found, average)
	return found, nil
}

// scopes returns the sessions, the newest first, up to maxVectorsRead entries in all: a part of the last one,
// and none of those after it.
func (s *search) scopes() (in []vectors.Scope) {
	left := int64(maxVectorsRead)
	for _, one := range s.newestFirst() {
		if left <= 0 {
			break
		}
		in = append(in, vectors.Scope{Session: one.id, After: max(0, one.last-left)})
		left -= one.last
	}
	return in
}

// isTimed reports whether the query has a time range.
func (s *search) isTimed() bool { return !s.Since.IsZero() || !s.Until.IsZero() }

// inTime reports whether a time is within the bounds of the query.
func (s *search) inTime(at time.Time) bool {
	return (s.Since.IsZero() || !at.Before(s.Since)) && (s.Until.IsZero() || at.Before(s.Until))
}

// findSessions looks up the sessions of the query, the first MaxSessions. It leaves out those that do not exist.
func (s *search) findSessions(ctx context.Context) (err error) {
	marks, args := placeholders(s.Sessions[:min(len(s.Sessions), MaxSessions)])
	found, err := s.db.Read.QueryContext(ctx, "SELECT id, key, last, indexed, updated FROM sessions WHERE key IN ("+marks+")", args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var in searchedSession
		if err := found.Scan(&in.id, &in.key, &in.last, &in.indexed, &in.updated); err != nil {
			return err
		}
		in.key = sqldb.Untext(in.key)
		s.sessions[in.id] = in
	}
	return found.Err()
}

// newestFirst returns the sessions, the most recently written first.
func (s *search) newestFirst() []searchedSession {
	list := make([]searchedSession, 0, len(s.sessions))
	for _, in := range s.sessions {
		list = append(list, in)
	}
	slices.SortFunc(list, func(a, b searchedSession) int {
		return cmp.Or(cmp.Compare(b.updated, a.updated), cmp.Compare(b.id, a.id))
	})
	return list
}

// findPlaces finds the entries that have any of the words. It begins with those that are not in the index
// yet, because Fill may index them meanwhile.
func (s *search) findPlaces(ctx context.Context) error {
	behind, err := s.readUnindexed(ctx)
	if err != nil {
		return err
	}
	all := 0.0
	for _, in := range s.sessions {
		all += float64(in.last)
	}
	if err := s.findFrequent(ctx); err != nil {
		return err
	}
	s.weights = make([]float64, len(s.words))
	for i, w := range s.words {
		having, isAll, err := s.indexedWith(ctx, w)
		if err != nil {
			return err
		}
		for p, forms := range behind {
			if row := rowOf(p.session, p.n); slices.ContainsFunc(w.Forms, func(f string) bool { return forms[f] }) && !slices.Contains(having, row) {
				having = append(having, row)
			}
		}
		n := float64(len(having))
		if !isAll { // other entries have it as often
			n *= max(1, all/s.entriesAround(having))
		}
		s.weights[i] = math.Log(1 + (max(all, n)-n+0.5)/(n+0.5))
		for _, row := range having {
			s.wordSums[row] += s.weights[i]
		}
	}
	return nil
}

// entriesAround returns how many entries the sessions of these rows have.
func (s *search) entriesAround(rows []int64) (n float64) {
	counted := map[int64]bool{}
	for _, row := range rows {
		if id := row >> numberBits; !counted[id] {
			counted[id] = true
			n += float64(s.sessions[id].last)
		}
	}
	return n
}

// readUnindexed reads the entries that are not in the index yet, at most maxUnindexed, and returns the forms of
// each entry's words.
func (s *search) readUnindexed(ctx context.Context) (map[entryPlace]map[string]bool, error) {
	var parts []string
	var args []any
	left := int64(maxUnindexed)
	for _, in := range s.newestFirst() {
		if in.indexed >= in.last || left <= 0 {
			continue
		}
		from := max(in.indexed, in.last-left)
		left -= in.last - from
		parts, args = append(parts, "SELECT "+entryColumns+" FROM entries e WHERE e.session = ? AND e.n > ? AND e.kind IN "+mayHaveWords), append(args, in.id, from)
	}
	if err := s.readParts(ctx, parts, args, 2); err != nil {
		return nil, err
	}
	behind := map[entryPlace]map[string]bool{}
	for p, e := range s.entries {
		behind[p] = map[string]bool{}
		for form := range contentOf(e).forms() {
			behind[p][form] = true
		}
	}
	return behind, nil
}

// bestByWords returns the entries with the most and the rarest words, at most maxCandidates. Among equals,
// the newer ones come first.
func (s *search) bestByWords() (places []entryPlace) {
	type likely struct {
		row  int64
		sum  float64
		rank int // the rank of its session among the newest
	}
	ranks := map[int64]int{}
	for i, in := range s.newestFirst() {
		ranks[in.id] = i
	}
	list := make([]likely, 0, len(s.wordSums))
	for row, sum := range s.wordSums {
		if rank, given := ranks[row>>numberBits]; given {
			list = append(list, likely{row, sum, rank})
		}
	}
	slices.SortFunc(list, func(a, b likely) int {
		return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.rank, b.rank), cmp.Compare(b.row, a.row))
	})
	for _, l := range list[:min(len(list), maxCandidates)] {
		places = append(places, entryPlace{l.row >> numberBits, l.row & (maxEntries - 1)})
	}
	return places
}

// indexedWith returns the rows (see rowOf) of the indexed entries that contain a word in one of its
// forms. isAll is false if there may be more than maxEntriesPerWord.
func (s *search) indexedWith(ctx context.Context, w Word) (rows []int64, isAll bool, err error) {
	anywhere, most, among := s.anywhereQuerySQLite, s.maxAnywhereSQLite(), s.sessionQuerySQLite
	if s.db.IsPostgres() {
		anywhere, most, among = s.anywhereQueryPostgres, s.maxAnywherePostgres(w), s.sessionQueryPostgres
	}
	if most > 0 && !s.isTimed() {
		rows, looked, err := s.queryRows(ctx, anywhere, w)
		if err != nil || looked < most {
			return rows, true, err
		}
	}
	rows, looked, err := s.queryRows(ctx, among, w)
	return rows, looked < maxEntriesPerWord, err
}

// queryRows runs the query that querying makes for a word. The query returns a single row: the number of
// entries that it has read and, as one text separated by commas, the numbers of the matching entries (see
// rowOf). A row for each entry would take many times as long.
func (s *search) queryRows(ctx context.Context, querying func(Word) (string, []any), w Word) (rows []int64, looked int, err error) {
	query, args := querying(w)
	var text sql.NullString
	if err := s.db.Read.QueryRowContext(ctx, query, args...).Scan(&looked, &text); err != nil || text.String == "" {
		return nil, looked, err
	}
	rows = make([]int64, 0, 1+strings.Count(text.String, ","))
	for one := range strings.SplitSeq(text.String, ",") {
		row, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return nil, looked, err
		}
		rows = append(rows, row)
	}
	return rows, looked, nil
}

// keysOf returns the hashes of a word's forms, joined by an operator.
func keysOf(w Word, or string) string {
	keys := make([]string, len(w.Forms))
	for i, f := range w.Forms {
		keys[i] = string(keyOf(f))
	}
	return "(" + strings.Join(keys, or) + ")"
}

// timeCondition returns what limits a query to its time range: a join with the entry, a condition, and their
// arguments.
func (s *search) timeCondition(on string) (join, condition string, args []any) {
	if !s.isTimed() {
		return "", "", nil
	}
	condition, args = " AND e.at >= ?", []any{timeOf(s.Since)}
	if !s.Until.IsZero() {
		condition, args = condition+" AND e.at < ?", append(args, timeOf(s.Until))
	}
	return " JOIN entries e ON " + on, condition, args
}

// read reads the entries that were not read yet. Entries that were erased meanwhile stay missing.
func (s *search) read(ctx context.Context, places []entryPlace) error {
	rows := []int64{}
	for _, p := range places {
		if _, there := s.entries[p]; !there {
			rows = append(rows, rowOf(p.session, p.n))
		}
	}
	if s.db.IsPostgres() {
		return s.scan(s.db.Read.QueryContext(ctx, "SELECT "+entryColumns+" FROM unnest(CAST(? AS bigint[])) AS row JOIN entries e ON e.session = row >> 28 AND e.n = row & 268435455", rows))
	}
	list, err := plainjson.Marshal(rows)
	if err != nil {
		return err
	}
	return s.scan(s.db.Read.QueryContext(ctx, "SELECT "+entryColumns+" FROM json_each(?) AS row CROSS JOIN entries e ON e.session = row.value >> 28 AND e.n = row.value & 268435455", string(list)))
}

// scan adds the entries in a query's result to those that were read, and closes it.
func (s *search) scan(found *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for found.Next() {
		id, e, err := scanEntry(found)
		if err != nil {
			return errors.Join(err, found.Close())
		}
		s.entries[entryPlace{id, e.N}] = e
	}
	return errors.Join(found.Err(), found.Close())
}

// selectsPerStatement is the most SELECTs in one statement.
const selectsPerStatement = 100

// readParts reads the entries that several SELECTs find. Each SELECT has the same number of arguments.
func (s *search) readParts(ctx context.Context, parts []string, args []any, each int) error {
	for len(parts) > 0 {
		n := min(len(parts), selectsPerStatement)
		if err := s.scan(s.db.Read.QueryContext(ctx, strings.Join(parts[:n], " UNION ALL "), args[:n*each]...)); err != nil {
			return err
		}
		parts, args = parts[n:], args[n*each:]
	}
	return nil
}

// maxCallDistance is the maximum number of entries between a result and its call.
const maxCallDistance = 1000

// toolOf returns the name of the tool whose result an entry is; "" if its call is no longer known.
func (s *search) toolOf(ctx context.Context, session int64, result sessions.Entry) (string, error) {
	e := sessions.Entry{Kind: sessions.KindToolUse}
	var data string
	err := s.db.Read.QueryRowContext(ctx, "SELECT data FROM entries WHERE session = ? AND n < ? AND n > ? AND kind = 'tool_use' AND call = ? ORDER BY n DESC LIMIT 1",
		session, result.N, result.N-maxCallDistance, sqldb.Text(result.Call)).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	e.Data = []byte(data)
	use, err := sessions.Decode[sessions.ToolUse](e)
	if err != nil {
		return "", nil //nolint:nilerr // a newer release wrote it
	}
	return use.Name, nil
}

// entryColumns are the columns that are read from an entry e.
const entryColumns = "e.session, e.n, e.turn, e.kind, e.at, e.cause, e.person, e.call, e.data"

// scanEntry reads an entry and the number of its session.
func scanEntry(rows *sql.Rows) (session int64, e sessions.Entry, err error) {
	var turn, kind, at, cause, person, call, data string
	if err := rows.Scan(&session, &e.N, &turn, &kind, &at, &cause, &person, &call, &data); err != nil {
		return 0, e, err
	}
	e.Turn, e.Kind, e.Cause = sqldb.Untext(turn), sessions.Kind(sqldb.Untext(kind)), sqldb.Untext(cause)
	e.Person, e.Call = sqldb.Untext(person), sqldb.Untext(call)
	if data != "" {
		e.Data = []byte(data)
	}
	e.At, err = sqldb.ParseTime(at)
	return session, e, err
}

// timeOf returns a time in the format of the tables. For the zero time it returns "", which sorts before
// all others.
func timeOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return sqldb.FormatTime(at)
}
