package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// The order by words and the one by meaning are merged by places, because what either counts cannot be compared with
// what the other does.
const (
	// firstPlace is from where on places are counted: the higher, the less the first ones are worth in comparison
	// with those that follow.
	firstPlace = 10
	// worthMeaning is what a place in the order by meaning is worth in comparison with one by words. Whoever is first by
	// meaning alone comes behind the third by words alone: who asks for a name or a number wants that one.
	worthMeaning = 0.8
)

// A ranking is an order of texts, the best first, each once.
type ranking struct {
	worth float64 // of its places
	texts []string
}

// fuse merges rankings by reciprocal ranks: the higher a text is in each of them, and the more have it, the higher it is
// in the result. Among equals those come first that are in the earlier ranking.
func fuse(rankings ...ranking) []string {
	sums := map[string]float64{}
	var merged []string
	for _, r := range rankings {
		for i, text := range r.texts {
			if _, known := sums[text]; !known {
				merged = append(merged, text)
			}
			sums[text] += r.worth / float64(firstPlace+i)
		}
	}
	slices.SortStableFunc(merged, func(a, b string) int { return cmp.Compare(sums[b], sums[a]) })
	return merged
}

// byMeaning returns what an entry is worth for what it means: nothing if its vector is not among those that stand out.
func (c candidate) byMeaning(now time.Time) float64 {
	return c.like * c.worth() * newness(c, now)
}

// newness is a factor: higher for what was said lately.
func newness(c candidate, now time.Time) float64 {
	return 1 + worthNew*math.Exp2(-float64(max(0, now.Sub(c.At)))/float64(halfLife))
}

// keepStandingOut takes away the likeness of candidates that are not much more like the query than an average entry. How
// alike two texts are at least, and at most, differs from model to model.
func keepStandingOut(found []candidate, average float64) {
	best := 0.0
	for i := range found {
		if found[i].near {
			found[i].like -= average
			best = max(best, found[i].like)
		}
	}
	for i := range found {
		if !found[i].near || found[i].like < best/2 {
			found[i].like = 0
		}
	}
}

// rank returns the best of the candidates, the best first. Of texts that were said several times it keeps the
// newest.
func rank(found []candidate, words []Word, weights []float64, now time.Time, limit int) []candidate {
	newest := map[string]candidate{}
	best := fuse(
		ranking{1, order(found, newest, func(c candidate) float64 { return c.score(words, weights, now) })},
		ranking{worthMeaning, order(found, newest, func(c candidate) float64 { return c.byMeaning(now) })},
	)
	best = best[:min(limit, len(best))]
	list := make([]candidate, len(best))
	for i, text := range best {
		list[i] = newest[text]
	}
	return list
}

// order returns the texts of candidates that are worth something, each once, the best first, and keeps the newest
// candidate of each.
func order(found []candidate, newest map[string]candidate, worth func(candidate) float64) (texts []string) {
	type scored struct {
		candidate
		score float64
	}
	list := make([]scored, 0, len(found))
	for _, c := range found {
		if s := worth(c); s > 0 {
			list = append(list, scored{c, s})
		}
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), b.At.Compare(a.At), cmp.Compare(b.in.id, a.in.id), cmp.Compare(b.N, a.N))
	})
	known := map[string]bool{}
	for _, s := range list {
		text := strings.Join(strings.Fields(Fold(s.text)), " ")
		if kept, again := newest[text]; !again || s.At.After(kept.At) {
			newest[text] = s.candidate
		}
		if !known[text] {
			known[text] = true
			texts = append(texts, text)
		}
	}
	return texts
}
