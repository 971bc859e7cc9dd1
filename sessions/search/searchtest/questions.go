package searchtest

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"
)

//go:embed testdata/questions.txt
var questions string

// A Question is asked of an index.
type Question struct {
	Number       int
	Language     string // en, de, ja, zh, or code
	Since, Until time.Time
	Answers      []string // the ids of the messages each of which answers it
	Words        string
}

// Tuning returns the questions by which rankings are tuned: two thirds.
func Tuning() ([]Question, error) { return choose(func(q Question) bool { return q.Number%3 != 0 }) }

// HeldOut returns the questions whose number is divisible by three. They are looked at once, when the ranking
// is finished: whoever changes the ranking after it has seen what it misses of these has tuned it by them, and
// has to write other questions.
func HeldOut() ([]Question, error) { return choose(func(q Question) bool { return q.Number%3 == 0 }) }

func choose(wanted func(Question) bool) (chosen []Question, err error) {
	for n, line := range strings.Split(questions, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		q, err := parseQuestion(line)
		if err != nil {
			return nil, fmt.Errorf("line %d of the questions: %w", n+1, err)
		}
		if wanted(q) {
			chosen = append(chosen, q)
		}
	}
	return chosen, nil
}

func parseQuestion(line string) (q Question, err error) {
	parts := strings.SplitN(line, " | ", 6)
	if len(parts) != 6 {
		return q, fmt.Errorf("%d columns, want 6", len(parts))
	}
	if q.Number, err = strconv.Atoi(parts[0]); err != nil {
		return q, err
	}
	q.Language, q.Answers, q.Words = parts[1], strings.Fields(parts[4]), parts[5]
	for i, bound := range []*time.Time{&q.Since, &q.Until} {
		if parts[2+i] == "-" {
			continue
		}
		if *bound, err = time.Parse(time.DateOnly, parts[2+i]); err != nil {
			return q, err
		}
	}
	return q, nil
}
