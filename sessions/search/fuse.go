package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// The rankings by words and by meaning are merged by places in the ranking, because their scores cannot
// be compared with each other.
const (
	// rankOffset is the number from which places are counted: the higher it is, the smaller is the
	// advantage of the first places over the following ones.
	rankOffset = 10
	// meaningWeight is the weight of a place in the ranking by meaning, compared with one by words. An
	// entry that is only first by meaning comes after the third by words alone, because whoever asks for
	// a name or a number wants exactly that.
	meaningWeight = 0.8
)

// A ranking is a list of texts without repetitions, the best first.
type ranking struct {
	weight float64 // the weight of its places
	texts  []string
}

// fuse merges rankings by reciprocal ranks: a text ranks higher the higher it is in each ranking, and the
// more rankings contain it. Among equals, the order of the earlier ranking counts.
func fuse(rankings ...ranking) []string {
	sums := map[string]float64{}
	var merged []string
	for _, r := range rankings {
		for i, text := range r.texts {
			if _, known := sums[text]; !known {
				merged = append(merged, text)
			}
			sums[text] += r.weight / float64(rankOffset+i)
		}
	}
	slices.SortStableFunc(merged, func(a, b string) int { return cmp.Compare(sums[b], sums[a]) })
	return merged
}

// meaningScore returns the score of an entry for its meaning; 0 if its vector does not stand out.
func (c candidate) meaningScore(now time.Time) float64 {
	return c.likeness * c.weight() * newnessFactor(c, now)
}

// newnessFactor returns a factor for the score that is higher for newer entries.
func newnessFactor(c candidate, now time.Time) float64 {
	return 1 + bonusNew*math.Exp2(-float64(max(0, now.Sub(c.At)))/float64(halfLife))
}

// subtractAverage subtracts the average likeness from that of each candidate, and sets the likeness of
// those that do not stand out to 0. The range of likenesses between texts differs from model to model.
func subtractAverage(found []candidate, average float64) {
	best := 0.0
	for i := range found {
		if found[i].isNearest {
			found[i].likeness -= average
			best = max(best, found[i].likeness)
		}
	}
	for i := range found {
		if !found[i].isNearest || found[i].likeness < best/2 {
			found[i].likeness = 0
		}
	}
}

// rank returns the best candidates, the best first. Of texts that were said several times it keeps the
// newest.
func rank(found []candidate, words []Word, weights []float64, now time.Time, limit int) []candidate {
	newest := map[string]candidate{}
	best := fuse(
		ranking{1, rankedTexts(found, newest, func(c candidate) float64 { return c.score(words, weights, now) })},
		ranking{meaningWeight, rankedTexts(found, newest, func(c candidate) float64 { return c.meaningScore(now) })},
	)
	best = best[:min(limit, len(best))]
	list := make([]candidate, len(best))
	for i, text := range best {
		list[i] = newest[text]
	}
	return list
}

// rankedTexts returns the texts of candidates with a positive score, each once, the best first. It records the
// newest candidate for each text.
func rankedTexts(found []candidate, newest map[string]candidate, worth func(candidate) float64) (texts []string) {
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
		return cmp.Or(cmp.Compare(b.score, a.score), b.At.Compare(a.At), cmp.Compare(b.session.id, a.session.id), cmp.Compare(b.N, a.N))
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
