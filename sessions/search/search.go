// Package search finds what was said in sessions by the words that were used, and by what they mean.
//
// An index holds hashes of the words of entries and no texts: a hit's text is read from its entry, so that what is
// erased is found nowhere. The store has the tables; sessionstest has the suite.
//
// The files, in reading order:
//
//   - search.go: what an index promises
//   - words.go, said.go, keys.go: words of texts; what entries say; words as the index has them
//   - table.go, fill.go, state.go: the tables; filling them; how complete they are
//   - find.go, rank.go, fuse.go, spoken.go: finding entries; how well they fit; the order of hits; where people have spoken
//   - meanings.go: finding entries by what they mean, too, and making the vectors for that
package search

import (
	"context"
	"time"

	"parley/sessions"
)

// The bounds of a query.
const (
	MostSessions = 200 // that one query looks through
	MostHits     = 50  // that one query returns
	MostWords    = 32  // of a query that count; the others are ignored
	MaxPassage   = 600 // bytes of a hit's text
)

// A Query asks for entries of some sessions. Whoever asks has decided already that the asker may read them.
type Query struct {
	Words    string   // as a person or a model writes them
	Sessions []string // the keys of the sessions to look through; with none, nothing is found
	// Since and Until bound when it was said, Until excluded; the zero time is no bound.
	Since, Until time.Time
	Limit        int    // the most hits; 0 means 10
	NotTurn      string // nothing of this turn is found
}

// A Hit is an entry that has words of the query.
type Hit struct {
	Session string
	N       int64 // the entry's number in the session's log
	Turn    string
	// Message is the id of the message that says it, or that it came with; of what the agent or a tool said, the id of
	// the one that began the turn, if one did.
	Message string
	Kind    sessions.Kind
	At      time.Time
	Person  string // who said it: CHANNEL:USER; "" if the agent or a tool did
	Name    string // what the platform calls them
	Tool    string // whose result it is
	Text    string // the passage with most of the words, at most MaxPassage bytes, on whole characters
	// Untrusted says that strangers may have written some of it, as when it was first read.
	Untrusted bool
	Episode   bool // the text says in short what a turn of Person was about; see [sessions.Episode]
	// Link is the https address of Message on its platform; "" for none. A store knows none: who knows the platforms
	// adds it.
	Link string
}

// An Index finds entries.
type Index interface {
	// Search returns the entries that fit the query best, the best first. An entry fits that has one of the
	// words at least, in any of its forms; the more and the rarer ones it has, and the newer it is, the better. An
	// index that knows what texts mean, as [Meanings] do, also returns entries that mean about the same.
	// An entry is found as soon as its append has returned, and not any more once its erasure, or that of its
	// message, has. Entries before the newest /new are found too.
	Search(ctx context.Context, q Query) ([]Hit, error)
	// Spoken returns the keys of the sessions of an agent in which one of the people has said something, the
	// ones with the newest entries first, at most limit.
	Spoken(ctx context.Context, agent string, people []string, limit int) ([]string, error)
}

// An Embedder turns texts into vectors: the more alike two texts are in what they mean, the smaller is the angle between
// their vectors.
type Embedder interface {
	// Embed returns a vector for each of the texts, in their order, all of one length. It asks once. Its error has
	// nothing of the texts.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// An Embedding is the model that an Embedder asks.
type Embedding struct {
	Model string // its name; "" if there is none
	Embedder
}

// A State says how complete an index is.
type State struct {
	Indexed int64 // entries that are in the index
	Behind  int64 // entries of the log that came after what is in the index: they are found, because searches read them
	Waiting int64 // further entries, which are not found before they are in the index, such as those that an older release wrote
	Missing int64 // entries that should be in the index and are not
	Stray   int64 // rows of the index whose entry is not there
}

// A Rebuilder is an Index that can be completed while others use it.
type Rebuilder interface {
	// Compare compares the index with some of the entries, and returns how many of these it should have and has not,
	// and how many rows it has whose entry is not there.
	Compare(ctx context.Context) (missing, stray int64, err error)
	// State returns what Compare does, and how far the index is. It may count all rows of the index, and so takes
	// longer the more there are. Of the entries that are behind or wait it counts all, and not only the ones that
	// have words.
	State(ctx context.Context) (State, error)
	// Fill indexes some of the entries that are not in the index, in one short transaction, and says whether there may
	// be more. It goes on where the last call ended, in whichever process that was.
	Fill(ctx context.Context) (more bool, err error)
	// Rebuild begins to fill the index anew; Fill then does it. Until it has, what is indexed is found.
	Rebuild(ctx context.Context) error
}
