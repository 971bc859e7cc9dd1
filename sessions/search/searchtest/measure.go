package searchtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/sessions"
	"parley/sessions/search"
)

// MaxRank is how many of the first hits count.
const MaxRank = 5

// A Loaded is a corpus that was loaded into a store.
type Loaded struct {
	Sessions []string // the keys of the sessions that have it
	ids      map[place]string
	messages map[string]Message // by id
}

// A place identifies an entry by its session and number.
type place struct {
	session string
	n       int64
}

// Load appends the corpus to a store, with the times at which it was said: each chat is a session, and each
// message of a person begins a turn. All sessions are those of one agent, and one person may read them all.
func Load(t testing.TB, s sessions.Store) Loaded {
	t.Helper()
	all, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	chats := map[string][]Message{}
	l := Loaded{ids: map[place]string{}, messages: map[string]Message{}}
	for _, m := range all {
		chats[m.Chat] = append(chats[m.Chat], m)
		l.messages[m.ID] = m
	}
	for chat, messages := range chats {
		key, err := KeyOf(chat)
		if err != nil {
			t.Fatal(err)
		}
		l.Sessions = append(l.Sessions, key)
		log, err := s.Open(t.Context(), key, 1)
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(turnsOf(messages), 100) {
			l.append(t, log, key, slices.Concat(part...))
		}
	}
	slices.Sort(l.Sessions)
	return l
}

// append appends messages to a session, divided into turns as a real session's.
func (l Loaded) append(t testing.TB, log sessions.Log, key string, messages []Message) {
	t.Helper()
	var entries []sessions.Entry
	turn := ""
	add := func(m Message, kind sessions.Kind, data any) *sessions.Entry {
		e, err := sessions.NewEntry(turn, kind, data)
		if err != nil {
			t.Fatal(err)
		}
		e.At = m.At
		entries = append(entries, e)
		return &entries[len(entries)-1]
	}
	first := log.Next()
	for i, m := range messages {
		switch m.Kind {
		case sessions.KindUser:
			turn = "t" + m.ID
			add(m, sessions.KindTurnStarted, sessions.TurnStarted{Route: json.RawMessage(`{}`), Agent: "main"})
			e := add(m, m.Kind, sessions.User{Name: m.Who, Text: m.Text, Sent: m.At})
			e.Cause, e.Person = m.ID, PersonOf(m)
		case sessions.KindText:
			add(m, m.Kind, sessions.Text{Text: m.Text})
		case sessions.KindToolResult:
			add(m, sessions.KindToolUse, sessions.ToolUse{Name: m.Tool, Args: json.RawMessage(`{}`)}).Call = m.ID
			add(m, m.Kind, sessions.ToolResult{Content: contentOf(t, m), Untrusted: m.Tool == "web"}).Call = m.ID
		}
		l.ids[place{key, first + int64(len(entries)) - 1}] = m.ID
		if i == len(messages)-1 || messages[i+1].Kind == sessions.KindUser {
			add(m, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
		}
	}
	if err := log.Append(t.Context(), first, entries...); err != nil {
		t.Fatal(err)
	}
}

// turnsOf divides the messages of a chat into turns: each message of a person begins one.
func turnsOf(messages []Message) (turns [][]Message) {
	for _, m := range messages {
		if m.Kind == sessions.KindUser {
			turns = append(turns, nil)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], m)
	}
	return turns
}

// contentOf returns a tool's result as the model sees it: those of the shell have fields, others are a text.
func contentOf(t testing.TB, m Message) json.RawMessage {
	t.Helper()
	var content any = m.Text
	if m.Tool == "shell" {
		content = map[string]any{"exit_code": 0, "stdout": m.Text, "stderr": ""}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// KeyOf returns the key of the session of a chat: Nora's are private and in Telegram, the others are channels in Slack.
func KeyOf(chat string) (string, error) {
	if private, topic, _ := strings.Cut(chat, "-"); private == "nora" {
		return sessions.Key("main", "telegram", "71001", topic)
	}
	return sessions.Key("main", "slack", "C0"+strings.ToUpper(chat), "")
}

// PersonOf returns the id of who said a message, as entries have it.
func PersonOf(m Message) string {
	if strings.HasPrefix(m.Chat, "nora") {
		return "telegram:71001"
	}
	return "slack:U" + strings.Map(func(r rune) rune {
		if r < 'A' || r > 'Z' {
			return -1
		}
		return r
	}, strings.ToUpper(m.Who))
}

// A Result says how well an index has answered the questions.
type Result struct {
	QuestionCount, AnsweredCount int
	Missed                       []Miss
}

// Recall returns the share of the questions that have an answer among the first hits.
func (r Result) Recall() float64 { return float64(r.AnsweredCount) / float64(max(r.QuestionCount, 1)) }

// String lists the questions without an answer, with the hits that were found instead.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "recall at %d: %d of %d questions, %.3f\n", MaxRank, r.AnsweredCount, r.QuestionCount, r.Recall())
	for _, m := range r.Missed {
		fmt.Fprintf(&b, "%d %s: %s\n", m.Question.Number, m.Question.Language, m.Question.Words)
		for _, a := range m.Answers {
			fmt.Fprintf(&b, "   want %s %q\n", a.ID, a.Text)
		}
		for _, h := range m.Hits {
			fmt.Fprintf(&b, "    got %s %q\n", h.ID, h.Text)
		}
	}
	return b.String()
}

// A Miss is a question that has no answer among the first hits.
type Miss struct {
	Question      Question
	Answers, Hits []Message
}

// Measure asks an index questions, and counts those that it answers: one of the messages that answer a question
// is among the first five hits. The corpus must be in the index's store, and may have other sessions beside it.
func (l Loaded) Measure(t testing.TB, x search.Index, questions []Question) Result {
	t.Helper()
	r := Result{QuestionCount: len(questions)}
	for _, q := range questions {
		hits, err := x.Search(t.Context(), search.Query{Words: q.Words, Sessions: l.Sessions, Since: q.Since, Until: q.Until, Limit: MaxRank})
		if err != nil {
			t.Fatalf("question %d, %s: %v", q.Number, q.Words, err)
		}
		miss := Miss{Question: q}
		found := false
		for _, h := range hits[:min(MaxRank, len(hits))] {
			id, ok := l.ids[place{h.Session, h.N}]
			if !ok {
				t.Errorf("question %d, %s: found entry %d of %s, which is no message", q.Number, q.Words, h.N, h.Session)
			}
			found = found || slices.Contains(q.Answers, id)
			miss.Hits = append(miss.Hits, l.messages[id])
		}
		if found {
			r.AnsweredCount++
			continue
		}
		for _, id := range q.Answers {
			miss.Answers = append(miss.Answers, l.messages[id])
		}
		r.Missed = append(r.Missed, miss)
	}
	return r
}
