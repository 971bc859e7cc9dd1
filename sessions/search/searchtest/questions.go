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

// A Question is a question to an index, with the ids of messages that answer it.
type Question struct {
	Number       int
	Language     string // en, de, ja, zh, or code
	Since, Until time.Time
	Answers      []string // the ids of the messages each of which answers it
	Words        string
}

// Tuning returns the questions with which rankings are tuned: two thirds of all.
func Tuning() ([]Question, error) { return choose(func(q Question) bool { return q.Number%3 != 0 }) }

// HeldOut returns the questions whose number is divisible by three. Look at them only once, when the ranking is
// finished: if you change the ranking after seeing what it misses, you have tuned it with these questions and
// must write new ones.
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
