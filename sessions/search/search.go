// Package search finds what was said in sessions by the words that were used, and by what they mean.
//
// An index contains hashes of the words of entries, and no texts: a hit's text is read from its entry, so
// no search finds what was erased. The tables are in the store; the test suite is in sessionstest.
//
// The files, in reading order:
//
//   - search.go: what an index promises
//   - words.go, said.go, keys.go: words of texts; what entries say; words as the index has them
//   - table.go, fill.go, state.go: the tables; filling them; how complete they are
//   - find.go, find_sqlite.go, find_postgres.go: finding entries; the queries of the databases for that
//   - rank.go, fuse.go, spoken.go: how well entries fit; the order of hits; where people have spoken
//   - meanings.go: finding entries by what they mean, too, and making the vectors for that
package search

import (
	"context"
	"time"

	"parley/sessions"
)

// The limits of a query.
const (
	MaxSessions = 200 // the most sessions that one query searches
	MaxHits     = 50  // the most hits that one query returns
	MaxWords    = 32  // the most words of a query that count; the others are ignored
	MaxPassage  = 600 // the maximum length of a hit's text, in bytes
)

// A Query asks for entries of some sessions. The caller has already decided that the asker may read them.
type Query struct {
	Words    string   // as a person or a model writes them
	Sessions []string // the keys of the sessions to look through; with none, nothing is found
	// Since and Until bound when it was said, Until excluded; the zero time is no bound.
	Since, Until time.Time
	Limit        int    // the most hits; 0 means 10
	ExcludedTurn string // a turn whose entries are not found
}

// A Hit is an entry that has words of the query, or means about the same.
type Hit struct {
	Session string
	N       int64 // the entry's number in the session's log
	Turn    string
	// Message is the id of the message that says it, or that it came with. For what the agent or a tool
	// said, it is the id of the message that began the turn, if there was one.
	Message string
	Kind    sessions.Kind
	At      time.Time
	Person  string // who said it: CHANNEL:USER; "" if the agent or a tool did
	Name    string // what the platform calls them
	Tool    string // the tool whose result it is
	Text    string // the passage with most of the words, at most MaxPassage bytes, on whole characters
	// Untrusted says that strangers may have written some of it.
	Untrusted bool
	Episode   bool // the text sums up a turn of Person; see [sessions.Episode]
	// Link is the https address of Message on its platform; "" if there is none. A store does not know
	// it: code that knows the platforms adds it.
	Link string
}

// An Index finds entries.
type Index interface {
	// Search returns the entries that fit the query best, the best first. An entry fits if it contains at
	// least one of the words, in any of its forms; the more words it contains, the rarer they are, and
	// the newer the entry is, the better. An index that knows what texts mean, such as [Meanings], also
	// returns entries that mean about the same. An entry is found as soon as its append has returned, and
	// no longer once its erasure, or that of its message, has returned. Entries before the newest /new
	// are found too.
	Search(ctx context.Context, q Query) ([]Hit, error)
	// SessionsSpokenIn returns the keys of an agent's sessions in which one of the people has said something, at
	// most limit; none if limit is 0. The sessions that were written to last come first.
	SessionsSpokenIn(ctx context.Context, agent string, people []string, limit int) ([]string, error)
}

// An Embedder turns texts into vectors: the more alike the meanings of two texts are, the smaller is the
// angle between their vectors.
type Embedder interface {
	// Embed returns a vector for each of the texts, in their order, all of the same length. It asks the
	// provider once. Its error contains nothing from the texts.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// An Embedding is a model, with the Embedder that asks it.
type Embedding struct {
	Model string // its name; "" if there is none
	Embedder
}

// A State says how complete an index is.
type State struct {
	Indexed   int64 // entries that are in the index
	Unindexed int64 // newer entries of the log that are not in the index: they are found, because searches read them
	Waiting   int64 // further entries, which are only found once they are indexed, such as those that an older release wrote
	Missing   int64 // entries that should be in the index but are not
	Stray     int64 // rows of the index whose entry does not exist
}

// A Rebuilder checks, completes and rebuilds an index while others use it.
type Rebuilder interface {
	// Compare compares the index with some of the entries. It returns how many of these should be in the
	// index but are not, and how many rows of the index have no entry.
	Compare(ctx context.Context) (missing, stray int64, err error)
	// State returns what Compare does, and how much is indexed. It may count all rows of the index, and
	// then takes longer the more there are. Behind and Waiting count all entries, and not only those that
	// have words.
	State(ctx context.Context) (State, error)
	// Fill indexes some of the entries that are not in the index, in one or two short transactions. It reports whether
	// there may be more, not counting what is said from now on. It continues where the last call of any process ended.
	Fill(ctx context.Context) (more bool, err error)
	// Rebuild makes Fill index everything again. Until that is done, searches find what is already
	// indexed.
	Rebuild(ctx context.Context) error
}
