package searchtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/sqlstore"
)

func corpus(t *testing.T) []Message {
	t.Helper()
	all, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mustAsk(t *testing.T, ask func() ([]Question, error)) []Question {
	t.Helper()
	chosen, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

func everyQuestion(t *testing.T) []Question {
	t.Helper()
	all := append(mustAsk(t, Tuning), mustAsk(t, HeldOut)...)
	slices.SortFunc(all, func(a, b Question) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func TestCorpus(t *testing.T) {
	all := corpus(t)
	if len(all) != Size {
		t.Errorf("the corpus has %d messages, want %d", len(all), Size)
	}
	ids, texts, last := map[string]bool{}, map[string]bool{}, map[string]time.Time{}
	kinds, filling := map[sessions.Kind]int{}, 0
	from, to := time.Date(2025, time.November, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	for _, m := range all {
		if ids[m.ID] {
			t.Errorf("two messages are %s", m.ID)
		}
		if m.Text == "" || !utf8.ValidString(m.Text) || strings.ContainsAny(m.Text, "{}\u200b") || strings.TrimSpace(m.Text) != m.Text {
			t.Errorf("%s says %q", m.ID, m.Text)
		}
		if m.At.Before(from) || !m.At.Before(to) || !m.At.After(last[m.Chat]) {
			t.Errorf("%s is said at %s, after %s", m.ID, m.At, last[m.Chat])
		}
		if first := last[m.Chat].IsZero(); first && m.Kind != sessions.KindUser || m.Kind == sessions.KindUser && m.Who == Agent {
			t.Errorf("%s is said by %s, with nobody before", m.ID, m.Who)
		}
		ids[m.ID], texts[m.Text], last[m.Chat] = true, true, m.At
		kinds[m.Kind]++
		if m.ID[0] == 'g' {
			filling++
		}
	}
	if share := float64(filling) / Size; share < 0.9 || share > 0.95 {
		t.Errorf("a share of %.2f fills the corpus up", share)
	}
	if len(texts) < Size*3/4 {
		t.Errorf("the corpus has %d different texts", len(texts))
	}
	if len(last) != 10 || kinds[sessions.KindText] < 800 || kinds[sessions.KindToolResult] < 150 {
		t.Errorf("the corpus has %d chats and the kinds %v", len(last), kinds)
	}
}

// TestCorpusIsUnchanged fails if messages or questions change. They may change only as long as no ranking has
// been tuned with them: afterward, all earlier measurements would be void.
func TestCorpusIsUnchanged(t *testing.T) {
	all := corpus(t)
	if !reflect.DeepEqual(all, corpus(t)) {
		t.Error("the corpus is another one the second time")
	}
	const want = "0cd71e9bd57da892215bec5d0fd35ae9cbdd7427e170e3f7cf3bdd040bfc9188"
	if got := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%v\n%v", all, everyQuestion(t)))); got != want {
		t.Errorf("the corpus is not as it was: its hash is %s, want %s", got, want)
	}
}

func TestQuestions(t *testing.T) {
	said := map[string]Message{}
	for _, m := range corpus(t) {
		said[m.ID] = m
	}
	languages := map[string]int{}
	for i, q := range everyQuestion(t) {
		if q.Number != i+1 {
			t.Errorf("question %d has the number %d", i+1, q.Number)
		}
		languages[q.Language]++
		if len(q.Answers) == 0 || len(q.Answers) > 3 {
			t.Errorf("question %d has %d answers", q.Number, len(q.Answers))
		}
		for _, id := range q.Answers {
			m, ok := said[id]
			if !ok || id[0] != 'f' {
				t.Errorf("%s, which answers question %d, is no message that somebody wrote", id, q.Number)
			}
			if m.At.Before(q.Since) || !q.Until.IsZero() && !m.At.Before(q.Until) {
				t.Errorf("%s, which answers question %d, is out of its bounds", id, q.Number)
			}
		}
	}
	if want := map[string]int{"en": 60, "de": 25, "ja": 6, "zh": 4, "code": 5}; !reflect.DeepEqual(languages, want) {
		t.Errorf("the questions are %v, want %v", languages, want)
	}
	if a, b := len(mustAsk(t, Tuning)), len(mustAsk(t, HeldOut)); a != 67 || b != 33 {
		t.Errorf("%d questions are for tuning and %d are held out", a, b)
	}
	for _, q := range mustAsk(t, HeldOut) {
		if q.Number%3 != 0 {
			t.Errorf("question %d is held out", q.Number)
		}
	}
}

// TestQuestionsCanBeAnswered checks that each question has a word, in some form, in common with an answer and
// with few other messages.
func TestQuestionsCanBeAnswered(t *testing.T) {
	said := map[string]map[string]bool{} // by word, the ids of the messages that contain it
	for _, m := range corpus(t) {
		for _, w := range wordsOf(m.Text) {
			if said[w] == nil {
				said[w] = map[string]bool{}
			}
			said[w][m.ID] = true
		}
	}
	for _, q := range everyQuestion(t) {
		telling := slices.ContainsFunc(wordsOf(q.Words), func(word string) bool {
			having := map[string]bool{}
			for w, ids := range said {
				if isFormOf(w, word) {
					maps.Copy(having, ids)
				}
			}
			return len(having) <= Size/40 && slices.ContainsFunc(q.Answers, func(id string) bool { return having[id] })
		})
		if !telling {
			t.Errorf("question %d has no telling word of its answers: %s", q.Number, q.Words)
		}
	}
}

// wordsOf returns the words of a text in lower case and without diacritics; scripts without spaces give pairs
// of characters.
func wordsOf(text string) (words []string) {
	text = strings.NewReplacer("ä", "a", "ö", "o", "ü", "u", "ß", "ss", "ae", "a", "oe", "o", "ue", "u").Replace(strings.ToLower(text))
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		letters := []rune(w)
		if letters[0] < 0x2e80 || len(letters) < 2 {
			words = append(words, w)
			continue
		}
		for i := range len(letters) - 1 {
			words = append(words, string(letters[i:i+2]))
		}
	}
	return words
}

// isFormOf reports whether two words are forms of one word, or one is a part of the other.
func isFormOf(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) < 4 || len(b) < 4 {
		return false
	}
	if len(a) >= 5 && strings.Contains(b, a) || len(b) >= 5 && strings.Contains(a, b) {
		return true
	}
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return same >= 4 && max(len(a), len(b))-same <= 3
}

// TestLoad reads back what Load has appended.
func TestLoad(t *testing.T) {
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := Load(t, s)
	if len(l.Sessions) != 10 || len(l.ids) != Size {
		t.Errorf("loaded %d messages into %d sessions", len(l.ids), len(l.Sessions))
	}
	kinds := []sessions.Kind{sessions.KindUser, sessions.KindText, sessions.KindToolResult}
	read := 0
	for _, key := range l.Sessions {
		for e, err := range s.Read(t.Context(), key, 1) {
			if err != nil {
				t.Fatal(err)
			}
			id, ok := l.ids[place{key, e.N}]
			if is := slices.Contains(kinds, e.Kind); ok != is {
				t.Errorf("entry %d of %s is a %s and the message %q", e.N, key, e.Kind, id)
			}
			if !ok {
				continue
			}
			read++
			m := l.messages[id]
			if got := textOf(t, e); got != m.Text || !e.At.Equal(m.At) || e.Kind != m.Kind || (e.Person != "") != (m.Kind == sessions.KindUser) {
				t.Errorf("%s is %q at %s by %s, want %q at %s by %s", id, got, e.At, e.Person, m.Text, m.At, m.Who)
			}
		}
	}
	if read != Size {
		t.Errorf("read %d messages", read)
	}
}

func textOf(t *testing.T, e sessions.Entry) string {
	t.Helper()
	data, _, err := sessions.DecodeAny(e)
	if err != nil {
		t.Fatal(err)
	}
	switch data := data.(type) {
	case sessions.User:
		return data.Text
	case sessions.Text:
		return data.Text
	case sessions.ToolResult:
		var text string
		var fields struct{ Stdout string }
		if json.Unmarshal(data.Content, &text) != nil && json.Unmarshal(data.Content, &fields) == nil {
			return fields.Stdout
		}
		return text
	}
	return ""
}

// A bm25Index counts words as they are written. A search has to be better than that.
type bm25Index struct {
	messages []Message
	places   []place
	lengths  []float64
	average  float64
	where    map[string]map[int]float64 // how often messages have a word
}

func newBM25Index(messages []Message) (*bm25Index, Loaded) {
	c := &bm25Index{messages: messages, where: map[string]map[int]float64{}}
	l := Loaded{ids: map[place]string{}, messages: map[string]Message{}}
	for i, m := range messages {
		words := wordsOf(m.Text)
		for _, w := range words {
			if c.where[w] == nil {
				c.where[w] = map[int]float64{}
			}
			c.where[w][i]++
		}
		c.places = append(c.places, place{m.Chat, int64(i)})
		c.lengths = append(c.lengths, float64(len(words)))
		c.average += float64(len(words)) / float64(len(messages))
		l.ids[c.places[i]], l.messages[m.ID] = m.ID, m
	}
	return c, l
}

// Search ranks messages by BM25.
func (c *bm25Index) Search(_ context.Context, q search.Query) ([]search.Hit, error) {
	scores := map[int]float64{}
	words := wordsOf(q.Words)
	slices.Sort(words)
	for _, w := range slices.Compact(words) {
		n := float64(len(c.where[w]))
		for i, times := range c.where[w] {
			if at := c.messages[i].At; at.Before(q.Since) || !q.Until.IsZero() && !at.Before(q.Until) {
				continue
			}
			scores[i] += math.Log(1+(float64(len(c.messages))-n+0.5)/(n+0.5)) * times * 2.2 / (times + 0.3 + 0.9*c.lengths[i]/c.average)
		}
	}
	var best []int
	for i := range scores {
		best = append(best, i)
	}
	slices.SortFunc(best, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a)) })
	var hits []search.Hit
	for _, i := range best[:min(q.Limit, len(best))] {
		hits = append(hits, search.Hit{Session: c.places[i].session, N: c.places[i].n})
	}
	return hits, nil
}

func (c *bm25Index) SessionsSpokenIn(context.Context, string, []string, int) ([]string, error) {
	return nil, nil
}

// TestCorpusDifficulty asks an index that knows neither word forms nor stop words: it must find some answers,
// and must not find all.
func TestCorpusDifficulty(t *testing.T) {
	c, l := newBM25Index(corpus(t))
	r := l.Measure(t, c, mustAsk(t, Tuning))
	t.Logf("who counts words only has %.3f", r.Recall())
	if r.Recall() < 0.6 || r.Recall() > 0.8 {
		t.Error(r)
	}
}

// A wrongIndex finds the first answer of each question at a given place, below irrelevant messages.
type wrongIndex struct {
	*bm25Index
	questions []Question
	place     int // from 0
}

func (x wrongIndex) Search(_ context.Context, q search.Query) ([]search.Hit, error) {
	i := slices.IndexFunc(x.questions, func(of Question) bool { return of.Words == q.Words })
	var hits []search.Hit
	for n, m := range x.messages {
		if len(hits) < x.place && !slices.Contains(x.questions[i].Answers, m.ID) {
			hits = append(hits, search.Hit{Session: x.places[n].session, N: x.places[n].n})
		}
	}
	n := slices.IndexFunc(x.messages, func(m Message) bool { return m.ID == x.questions[i].Answers[0] })
	return append(hits, search.Hit{Session: x.places[n].session, N: x.places[n].n}), nil
}

func TestMeasure(t *testing.T) {
	c, l := newBM25Index(corpus(t))
	few := everyQuestion(t)[:3]
	for at, want := range map[int]float64{0: 1, 4: 1, 5: 0} {
		r := l.Measure(t, wrongIndex{c, few, at}, few)
		if r.Recall() != want || len(r.Missed) != 3-3*int(want) {
			t.Errorf("with the answer at place %d the recall is %v, want %v", at, r.Recall(), want)
		}
		if text := r.String(); want == 0 && (!strings.Contains(text, few[0].Words) || !strings.Contains(text, "want f001")) {
			t.Errorf("the result says nothing about what it misses: %s", text)
		}
	}
}
