package search

import (
	"math"
	"strconv"
	"strings"
)

// For at most fewSessions, SQLite finds the entries with a word by looking for the word together with the
// sessions. If there are more than maxSearchedSingly, it first checks whether at most maxAnywhere entries of all
// sessions have the word. For more than fewSessions it looks through all entries that have the word.
const (
	maxSearchedSingly = 4
	fewSessions       = 64
	maxAnywhere       = 3000
)

// maxAnywhereSQLite returns how many entries of all sessions are looked through for a word; 0 for none.
func (s *search) maxAnywhereSQLite() int {
	if n := len(s.sessions); n <= maxSearchedSingly || n > fewSessions {
		return 0
	}
	return maxAnywhere
}

// sessionKeys returns, for SQLite, the words that the entries of the sessions have in the index, and a
// list of the sessions' numbers in JSON.
func (s *search) sessionKeys() (keys, ids string) {
	var words, numbers []string
	for _, in := range s.newestFirst() {
		words, numbers = append(words, sessionKey(in.id)), append(numbers, strconv.FormatInt(in.id, 10))
	}
	return "(" + strings.Join(words, " OR ") + ")", "[" + strings.Join(numbers, ",") + "]"
}

// anywhereQuerySQLite looks through the entries with a word in all sessions, but through at most
// maxAnywhere of them.
func (s *search) anywhereQuerySQLite(w Word) (query string, args []any) {
	_, ids := s.sessionKeys()
	lowest, highest := s.span()
	return `SELECT count(*), group_concat(CASE WHEN row >> 28 IN (SELECT value FROM json_each(?)) THEN row END)
		FROM (SELECT rowid AS row FROM entry_words WHERE entry_words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?) AS found`,
		[]any{ids, keysOf(w, " OR "), lowest, highest, maxAnywhere}
}

// span returns the lowest and the highest row that entries of the sessions can have.
func (s *search) span() (lowest, highest int64) {
	lowest = math.MaxInt64
	for id := range s.sessions {
		lowest, highest = min(lowest, rowOf(id, 0)), max(highest, rowOf(id, maxEntries-1))
	}
	return lowest, highest
}

func (s *search) sessionQuerySQLite(w Word) (query string, args []any) {
	join, condition, times := s.timeCondition("e.session = w.rowid >> 28 AND e.n = w.rowid & 268435455")
	keys, ids := s.sessionKeys()
	if len(s.sessions) <= fewSessions {
		args = append([]any{keys + " AND " + keysOf(w, " OR ")}, times...)
	} else {
		lowest, highest := s.span()
		condition = " AND w.rowid BETWEEN ? AND ? AND w.rowid >> 28 IN (SELECT value FROM json_each(?))" + condition
		args = append([]any{keysOf(w, " OR "), lowest, highest, ids}, times...)
	}
	return "SELECT count(*), group_concat(row) FROM (SELECT w.rowid AS row FROM entry_words w" + join + " WHERE entry_words MATCH ?" + condition + " ORDER BY w.rowid DESC LIMIT ?) AS found",
		append(args, maxEntriesPerWord)
}
