// Package searchtest measures how well search finds things. It has a year of a team's messages, and a hundred
// questions about them.
//
// corpus.go has the messages: those that questions ask for are in testdata/facts.txt, and generate.go makes
// the others from testdata/distractors.txt. questions.go has the questions, and measure.go appends the
// messages to a store and measures how many answers an index finds in it.
//
// Messages and questions were fixed before any ranking was tuned, and a test checks their hash. Whoever
// changes them must say so, because figures from before can't be compared with those from after.
package searchtest

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/sessions"
)

// Size is the number of messages in the corpus.
const Size = 5000

//go:embed testdata/facts.txt
var facts string

// A Message is one message of the corpus.
type Message struct {
	ID   string // f and a number if somebody wrote it by hand, g and a number if it fills the corpus up
	At   time.Time
	Chat string
	Who  string // the person's name; Agent if the agent wrote it, or a tool
	Kind sessions.Kind
	Tool string // whose result it is
	Text string
}

// Agent is who said what no person did.
const Agent = "agent"

// An exchange is a series of messages in one chat that no other message interrupts.
type exchange []Message

// Corpus returns all messages, in each chat by time. They are the same each time.
func Corpus() ([]Message, error) {
	written, err := parseFacts(facts)
	if err != nil {
		return nil, err
	}
	all, err := fill(written, Size)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b exchange) int { return a[0].At.Compare(b[0].At) })
	return slices.Concat(all...), nil
}

// parseFacts reads messages as the beginning of facts.txt says.
func parseFacts(text string) ([]exchange, error) {
	var all []exchange
	fresh := true
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			fresh = true
			continue
		}
		m, err := parseMessage(line)
		if err != nil {
			return nil, fmt.Errorf("line %d of the facts: %w", n+1, err)
		}
		if fresh {
			all = append(all, nil)
		}
		fresh = false
		all[len(all)-1] = append(all[len(all)-1], m)
	}
	return all, nil
}

func parseMessage(line string) (Message, error) {
	parts := strings.SplitN(line, " | ", 6)
	if len(parts) != 6 {
		return Message{}, fmt.Errorf("%d columns, want 6", len(parts))
	}
	at, err := time.Parse("2006-01-02 15:04", parts[1])
	if err != nil {
		return Message{}, err
	}
	m := Message{ID: parts[0], At: at, Chat: parts[2], Who: parts[3], Kind: sessions.Kind(parts[4]), Text: unfold(parts[5])}
	if tool, ok := strings.CutPrefix(parts[4], "tool:"); ok {
		m.Kind, m.Tool = sessions.KindToolResult, tool
	}
	if m.Kind != sessions.KindUser && m.Kind != sessions.KindText && m.Kind != sessions.KindToolResult {
		return Message{}, fmt.Errorf("no kind of message: %s", parts[4])
	}
	return m, nil
}

// unfold restores the line breaks of a text that a file has on one line.
func unfold(text string) string { return strings.ReplaceAll(text, `\n`, "\n") }
