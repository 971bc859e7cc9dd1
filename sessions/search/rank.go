package search

import (
	"cmp"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"parley/sessions"
)

// Bonuses and penalties in the score of a hit, as fractions of what its words are worth.
const (
	bonusExact     = 0.15 // a word as it was written, and not only another form of it
	bonusRepeated  = 0.10 // a word that is said again
	bonusNear      = 0.35 // all words of the query that it has, one next to the other
	bonusPhrase    = 0.30 // the words of the query in the same order
	bonusAllWords  = 0.25 // each word of the query
	bonusNew       = 0.15 // said just now; half as much after halfLife
	penaltyLong    = 0.12 // subtracted for a text that is ten times as long as usualTextBytes
	usualTextBytes = 300  // bytes
	halfLife       = 30 * 24 * time.Hour
)

// weight returns the weight of an entry compared with what a person has said. Most of what an episode
// contains was also said in its turn.
func (c candidate) weight() float64 {
	if c.fromEpisode {
		return 0.75
	}
	switch c.Kind {
	case sessions.KindToolResult:
		return 0.8
	case sessions.KindSummary:
		return 0.85
	case sessions.KindText:
		return 0.95
	}
	return 1
}

// A candidate is an entry that may be a hit, with the places where it has words of the query.
type candidate struct {
	session searchedSession
	sessions.Entry
	content
	matches     []match // in order
	nameHasWord []bool  // by word: whether the name of the person who said it contains the word
	isNearest   bool    // whether its vector is among those that are most like the query's
	likeness    float64 // its likeness to the query's vector; in the ranking, how much it exceeds that of an average entry
}

// A match is a word of the query in a text.
type match struct {
	word     int // the word's index
	isExact  bool
	place    int // among the words of the text
	from, to int // in bytes
}

// newCandidate looks for the words of a query in an entry.
func newCandidate(in searchedSession, e sessions.Entry, words []Word) candidate {
	c := candidate{session: in, Entry: e, content: contentOf(e), nameHasWord: make([]bool, len(words))}
	byForm := map[string][]int{}
	for i, w := range words {
		for _, f := range w.Forms {
			byForm[f] = append(byForm[f], i)
		}
	}
	place, end := 0, 0
	for t := range tokens(c.text) {
		if t.from >= end { // neither a part of the previous word, nor the compound that contains it
			place, end = place+1, t.to
		}
		for _, i := range byForm[t.stemmed] {
			c.matches = append(c.matches, match{i, t.exact == words[i].Exact, place, t.from, t.to})
		}
	}
	for t := range tokens(c.name) {
		for _, i := range byForm[t.stemmed] {
			c.nameHasWord[i] = true
		}
	}
	return c
}

// score returns how well an entry fits the query. It depends on nothing but its arguments.
func (c candidate) score(words []Word, weights []float64, now time.Time) float64 {
	all, sum, extra, has := 0.0, 0.0, 0.0, 0
	for i := range words {
		all += weights[i]
		times, exact := 0, false
		for _, m := range c.matches {
			if m.word == i {
				times, exact = times+1, exact || m.isExact
			}
		}
		if times == 0 && !c.nameHasWord[i] {
			continue
		}
		has++
		sum += weights[i]
		if exact {
			extra += bonusExact * weights[i]
		}
		extra += bonusRepeated * weights[i] * (1 - 1/float64(max(times, 1)))
	}
	if sum == 0 || all == 0 {
		return 0
	}
	if has == len(words) {
		extra += bonusAllWords * all
	}
	near, phrase := c.nearness(weights)
	sum += extra + bonusNear*near + bonusPhrase*phrase
	sum *= c.weight()
	sum *= 1 - penaltyLong*max(0, min(2, math.Log10(float64(len(c.text))/usualTextBytes)))
	return sum * newnessFactor(c, now)
}

// nearness returns what the words are worth that have another one near them, less the farther away it is;
// and what those are worth that follow each other as in the query.
func (c candidate) nearness(weights []float64) (near, phrase float64) {
	best, inOrder := map[int]float64{}, map[int]bool{}
	for i, m := range c.matches {
		for _, o := range c.matches[i+1:] {
			if o.place-m.place > 12 {
				break
			}
			if o.word == m.word || o.place == m.place {
				continue
			}
			n := 1 / math.Sqrt(float64(o.place-m.place))
			best[m.word], best[o.word] = max(best[m.word], n), max(best[o.word], n)
			if o.word == m.word+1 && o.place == m.place+1 {
				inOrder[m.word], inOrder[o.word] = true, true
			}
		}
	}
	for w, n := range best {
		near += n * weights[w]
	}
	for w := range inOrder {
		phrase += weights[w]
	}
	return near, phrase
}

func (c candidate) hit(weights []float64) Hit {
	return Hit{
		Session: c.session.key, N: c.N, Turn: c.Turn, Message: cmp.Or(c.message, c.Turn), Kind: c.Kind, At: c.At, Person: c.Person, Name: c.name,
		Text: c.passage(weights), Untrusted: c.untrusted, Episode: c.fromEpisode,
	}
}

// passage returns the part of the text that contains the most of the words.
func (c candidate) passage(weights []float64) string {
	if len(c.text) <= MaxPassage {
		return c.text
	}
	first, last, most := 0, 0, -1.0
	for i, m := range c.matches {
		sum, seen, to := 0.0, map[int]bool{}, m.to
		for _, o := range c.matches[i:] {
			if o.to-m.from > MaxPassage {
				break
			}
			if to = max(to, o.to); !seen[o.word] {
				seen[o.word] = true
				sum += weights[o.word]
			}
		}
		if sum > most {
			first, last, most = m.from, to, sum
		}
	}
	// One third of the remaining room goes before the words, and two thirds after them.
	from := max(0, first-(MaxPassage-(last-first))/3)
	to := min(len(c.text), from+MaxPassage)
	from = max(0, to-MaxPassage)
	for from > 0 && from < first && !utf8.RuneStart(c.text[from]) {
		from++
	}
	for to < len(c.text) && !utf8.RuneStart(c.text[to]) {
		to--
	}
	if i := strings.IndexAny(c.text[from:max(from, first)], " \n"); from > 0 && i >= 0 {
		from += i + 1 // begin with a whole word
	}
	if i := strings.LastIndexAny(c.text[last:to], " \n"); to < len(c.text) && i >= 0 {
		to = last + i
	}
	return strings.TrimSpace(c.text[from:to])
}
