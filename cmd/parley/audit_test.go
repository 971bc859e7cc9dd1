package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/workspace"
)

// An audit is what a storm has left: on the platform, in the log, on disk, in
// the book, and in Redis.
type audit struct {
	storm      *storm
	violations []string

	messages, turns, calls   int
	repeats                  int // of sends on the platform
	interrupted              int // sends of which the book says that nobody can tell
	resumed, rerun, givenUp  int
	interruptedBy            map[string]int // by send
	expected                 map[int64]map[string][]string
	twice                    []string // what was sent more than once
	late                     int      // calls that were refused for coming too late, and made again
	slowest                  time.Duration
	slowestOf                string
	entriesByKind            map[sessions.Kind]int
	membersThatEndedThemself int
}

// audit ends the fleet in good order and looks at everything.
func (s *storm) audit() *audit {
	s.t.Helper()
	a := &audit{storm: s, expected: map[int64]map[string][]string{}, entriesByKind: map[sessions.Kind]int{}}
	a.measure()
	s.dismiss()
	client := s.client()
	for _, key := range s.keys(client) {
		kind, _, _ := strings.Cut(key, ":")
		lives := client.PTTL(s.t.Context(), fleetPrefix+":{0}:"+key).Val()
		if len(leftovers([]string{key})) > 0 || (kind == "hold" || kind == "events") && lives < 0 {
			a.wrong("Redis still has %s, for %v", key, lives)
		}
	}
	a.readBook()
	a.readLogs()
	a.readPlatform()
	a.membersThatEndedThemself = len(s.alone)
	return a
}

func (a *audit) wrong(format string, args ...any) {
	a.violations = append(a.violations, fmt.Sprintf(format, args...))
}

// String is the run in one line of a table.
func (a *audit) String() string {
	s := a.storm
	var deeds []string
	for _, what := range slices.Sorted(maps.Keys(s.deeds)) {
		deeds = append(deeds, fmt.Sprintf("%s ×%d", what, s.deeds[what]))
	}
	return fmt.Sprintf("seed %d: %d messages in %d sessions, %d turns, %d calls; %s; %d turns resumed, %d calls begun again, %d turns given up aloud, "+
		"%d calls too late and made again, %d sends interrupted, %d of them seen twice; slowest answer %v (%s); %v in all; %d processes ended by themselves; %d violations",
		s.seed, a.messages, s.chats, a.turns, a.calls, strings.Join(deeds, ", "), a.resumed, a.rerun, a.givenUp,
		a.late, a.interrupted, a.repeats, a.slowest.Round(time.Millisecond), a.slowestOf, s.took.Round(time.Second), a.membersThatEndedThemself, len(a.violations))
}

// leftovers are the keys that an idle bus should not have: it keeps ids against
// repetition, numbers that only grow, names of topics, and for a while events
// and holds.
func leftovers(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool {
		kind, _, _ := strings.Cut(key, ":")
		return slices.Contains([]string{"seen", "clock", "contact", "topics", "events", "hold", "wake"}, kind)
	})
}

// measure finds the slowest answer.
func (a *audit) measure() {
	for _, chat := range a.storm.said {
		answers := map[string]time.Time{}
		for _, m := range a.storm.tg.Sent(chat[0].chat) {
			if _, again := answers[m.Text]; !again {
				answers[m.Text] = m.At
			}
		}
		for _, m := range chat {
			if at, ok := answers[m.answer()]; ok && at.Sub(m.at) > a.slowest {
				a.slowest, a.slowestOf = at.Sub(m.at), m.mark()
			}
		}
	}
}

func (a *audit) readBook() {
	a.interruptedBy = map[string]int{}
	for _, row := range sqldbtest.Query(a.storm.t, "pgx", a.storm.pg.URL(), "SELECT send, sum(interrupted) FROM parts GROUP BY send") {
		send, n, _ := strings.Cut(row, " ")
		a.interruptedBy[send], _ = strconv.Atoi(n)
		a.interrupted += a.interruptedBy[send]
	}
	for _, row := range sqldbtest.Query(a.storm.t, "pgx", a.storm.pg.URL(), "SELECT send, part, state, code FROM parts WHERE state <> 'sent'") {
		a.wrong("the book has a part that was not sent: %s", row)
	}
	for _, row := range sqldbtest.Query(a.storm.t, "pgx", a.storm.pg.URL(), "SELECT key, unfinished FROM sessions WHERE unfinished NOT IN ('', '[]', 'null')") {
		a.wrong("the store has a turn that is not finished: %s", row)
	}
}

// readLogs holds each session's log against what was said in it.
func (a *audit) readLogs() {
	t := a.storm.t
	store, err := sqlstore.Open(t.Context(), a.storm.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	spaces, err := workspace.New(workspace.Config{Root: a.storm.root})
	if err != nil {
		t.Fatal(err)
	}
	defer spaces.Close()
	for _, chat := range a.storm.said {
		key := fmt.Sprintf("main:telegram:%d", chat[0].chat)
		l := newLedger(a, key, chat)
		for e, err := range store.Read(t.Context(), key, 1) {
			if errors.Is(err, sessions.ErrNotFound) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			l.enter(e)
		}
		l.close()
		dir, err := spaces.Open(key)
		if err != nil {
			t.Fatal(err)
		}
		l.inspect(dir)
	}
}

// A ledger is one session's log as it is read.
type ledger struct {
	*audit
	key     string
	chat    []said
	heard   []string // what people said, in the log's order
	turns   map[string]*turnSeen
	calls   map[string]*callSeen
	spoiled bool // a turn was given up
}

type turnSeen struct {
	done, published int
	state           string
}

type callSeen struct {
	use              sessions.ToolUse
	turn             string
	started, results int
}

func newLedger(a *audit, key string, chat []said) *ledger {
	a.messages += len(chat)
	a.expected[chat[0].chat] = map[string][]string{}
	return &ledger{audit: a, key: key, chat: chat, turns: map[string]*turnSeen{}, calls: map[string]*callSeen{}}
}

func (l *ledger) enter(e sessions.Entry) {
	l.entriesByKind[e.Kind]++
	switch e.Kind {
	case sessions.KindTurnStarted:
		if l.turns[e.Turn] != nil {
			l.wrong("%s: turn %s began twice", l.key, e.Turn)
		}
		l.turns[e.Turn] = &turnSeen{}
		l.audit.turns++
	case sessions.KindUser:
		said, err := sessions.Decode[sessions.User](e)
		if err != nil {
			l.wrong("%s: %v", l.key, err)
		}
		l.heard = append(l.heard, said.Text)
	case sessions.KindResumed:
		l.resumed++
	case sessions.KindToolUse, sessions.KindToolStarted, sessions.KindToolResult:
		l.call(e)
	case sessions.KindTurnDone:
		l.end(e)
	case sessions.KindPublished:
		l.turns[e.Turn].published++
	}
}

func (l *ledger) call(e sessions.Entry) {
	c := l.calls[e.Call]
	if e.Kind == sessions.KindToolUse {
		use, err := sessions.Decode[sessions.ToolUse](e)
		if err != nil || c != nil {
			l.wrong("%s: call %s was asked for twice, or cannot be read: %v", l.key, e.Call, err)
		}
		l.calls[e.Call] = &callSeen{use: use, turn: e.Turn}
		l.audit.calls++
		return
	}
	if c == nil {
		l.wrong("%s: entry %d is of call %s, which nobody asked for", l.key, e.N, e.Call)
		return
	}
	if e.Kind == sessions.KindToolResult {
		c.results++
		r, err := sessions.Decode[sessions.ToolResult](e)
		if tooLate(string(r.Content)) {
			l.late++
		} else if err != nil || r.Code != "" {
			l.wrong("%s: %s failed: %s %v", l.key, c.use.Name, r.Content, err)
		}
		return
	}
	if c.results > 0 {
		l.wrong("%s: call %s (%s) ran again although its result was recorded", l.key, e.Call, c.use.Name)
	}
	if c.started++; c.started > 1 {
		l.rerun++
	}
}

func (l *ledger) end(e sessions.Entry) {
	done, err := sessions.Decode[sessions.TurnDone](e)
	t := l.turns[e.Turn]
	if err != nil || t == nil {
		l.wrong("%s: the end of turn %s cannot be read: %v", l.key, e.Turn, err)
		return
	}
	if t.done++; t.done > 1 || t.published > 0 {
		l.wrong("%s: turn %s ended twice", l.key, e.Turn)
	}
	if t.state = done.State; done.State != sessions.TurnCompleted {
		l.givenUp++
		l.spoiled = true
	}
	if len(done.Outbound) == 0 {
		l.wrong("%s: turn %s ended and said nothing", l.key, e.Turn)
	}
	for _, r := range done.Outbound {
		l.expect(l.chat[0].chat, r.Text, r.ID)
	}
}

// expect notes that a text is to be in a chat, and which send it is.
func (a *audit) expect(chat int64, text, send string) {
	if a.expected[chat] == nil {
		a.expected[chat] = map[string][]string{}
	}
	a.expected[chat][text] = append(a.expected[chat][text], send)
}

// close looks whether the log is whole.
func (l *ledger) close() {
	want := make([]string, len(l.chat))
	for i, m := range l.chat {
		want[i] = m.text()
	}
	if !slices.Equal(l.heard, want) {
		l.wrong("%s: people said %q, and the log has %q", l.key, want, l.heard)
	}
	for id, t := range l.turns {
		if t.done != 1 || t.published != 1 {
			l.wrong("%s: turn %s has %d ends and was published %d times", l.key, id, t.done, t.published)
		}
	}
	for id, c := range l.calls {
		if c.results != 1 {
			l.wrong("%s: call %s (%s) has %d results", l.key, id, c.use.Name, c.results)
		}
		var to struct {
			Chat    string `json:"chat_id"`
			Content string `json:"content"`
		}
		if err := json.Unmarshal(c.use.Args, &to); c.use.Name != "message" || err != nil {
			continue
		}
		chat, _ := strconv.ParseInt(to.Chat, 10, 64)
		l.expect(chat, to.Content, c.turn+"#"+id)
	}
}

// inspect holds the session's files against what was asked for.
func (l *ledger) inspect(dir *workspace.Dir) {
	var counted, remembered, latest string
	for _, m := range l.chat {
		if m.what == askCount || m.what == askAll {
			counted += fmt.Sprintf("%d;", m.n)
		}
		if m.what == askRemember || m.what == askAll {
			remembered += m.mark() + "\n\n"
		}
		if m.what == askRewrite || m.what == askAll {
			latest = m.mark()
		}
	}
	if l.spoiled {
		return
	}
	for name, want := range map[string]string{
		"count.txt": counted + "<0>", "MEMORY.md": strings.TrimSuffix(remembered, "\n\n"), "latest.txt": latest,
	} {
		got, err := fs.ReadFile(dir, name)
		if err != nil && want != "" || string(got) != want {
			l.wrong("%s: %s has %q, want %q (%v)", l.key, name, got, want, err)
		}
	}
}

// readPlatform holds what people were sent against what the log says.
func (a *audit) readPlatform() {
	for chat, texts := range a.expected {
		sent := map[string]int{}
		last, order := -1, fmt.Sprintf("re %d.", chat)
		for _, m := range a.storm.tg.Sent(chat) {
			sent[m.Text]++
			if texts[m.Text] == nil {
				a.wrong("chat %d was sent %q, which nobody said", chat, m.Text)
			}
			rest, ok := strings.CutPrefix(m.Text, order)
			n, err := strconv.Atoi(rest)
			if !ok || err != nil || sent[m.Text] > 1 {
				continue
			}
			if n <= last {
				a.wrong("chat %d was sent the answer to %d after that to %d", chat, n, last)
			}
			last = n
		}
		for text, sends := range texts {
			allowed := len(sends)
			for _, id := range sends {
				allowed += a.interruptedBy[id]
			}
			if more := sent[text] - len(sends); more > 0 {
				a.repeats += more
				a.twice = append(a.twice, fmt.Sprintf("%q to %d, %d too often", text, chat, more))
			}
			if n := sent[text]; n < len(sends) || n > allowed {
				a.wrong("chat %d was sent %q %d times, want %d to %d (%v)", chat, text, n, len(sends), allowed, sends)
			}
		}
	}
	for _, chat := range a.storm.said {
		for _, m := range chat {
			if a.expected[m.chat][m.answer()] == nil && a.givenUp == 0 {
				a.wrong("message %s has no answer", m.mark())
			}
		}
	}
}
