package chaos

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"parley/sessions"
	"parley/sessions/workspace"
	"parley/tools"
)

// A logAudit checks the log of one session.
type logAudit struct {
	*audit
	key     string
	address string
	person  string
	said    []request
	heard   []string // the messages of people, in the log's order
	turns   map[string]*turnSeen
	calls   map[string]*callSeen
	asks    map[string]*askSeen
	missing map[string]bool // the files that were not fetched, as people were told
	spoiled bool            // whether a turn was given up
}

// A turnSeen is a turn in a log.
type turnSeen struct {
	waits, waited   bool // whether it waits for people now, and whether it ever has
	suspended       bool // whether its process stopped in good order, and no process has resumed the turn since
	cut             bool // whether a call was interrupted: its result says cancelled or unknown
	done, published int
	state           string
	causes          int         // the number of messages that it answers
	spoken          []*callSeen // its calls that mark text to be read aloud
	unread          bool        // whether the log says that the answer could not be read aloud
}

// A callSeen is a tool call in a log.
type callSeen struct {
	use              sessions.ToolUse
	turn             string
	started, results int
	code             string // the error code of its result
	ask              *askSeen
}

func newLogAudit(a *audit, key string, p *chat, said []request) *logAudit {
	address := p.address()
	a.messages += len(said)
	a.expected[address] = map[string][]string{}
	return &logAudit{audit: a, key: key, address: address, person: p.person(), said: said, turns: map[string]*turnSeen{}, calls: map[string]*callSeen{}, asks: map[string]*askSeen{}, missing: map[string]bool{}}
}

// addEntry checks an entry against the entries before it, and records it.
func (l *logAudit) addEntry(e sessions.Entry) {
	switch e.Kind {
	case sessions.KindTurnStarted:
		if l.turns[e.Turn] != nil {
			l.addViolation("%s: turn %s began twice", l.key, e.Turn)
		}
		l.turns[e.Turn] = &turnSeen{}
		l.audit.turns++
	case sessions.KindUser:
		said, err := sessions.Decode[sessions.User](e)
		if err != nil {
			l.addViolation("%s: %v", l.key, err)
		}
		if !strings.HasPrefix(said.Text, answerPrefix) {
			l.heard = append(l.heard, stripKindPrefix(said.Text))
		}
		l.turns[e.Turn].causes++
	case sessions.KindSuspended:
		l.turns[e.Turn].suspended = true
	case sessions.KindResumed:
		l.resumed++
		if !l.turns[e.Turn].suspended {
			l.audit.cutOff++
		}
		l.turns[e.Turn].suspended = false
		l.mayLeave[e.Turn+"#reply"] = true
	case sessions.KindToolUse, sessions.KindToolStarted, sessions.KindToolResult:
		l.addCall(e)
	case sessions.KindTurnDone:
		l.addTurnDone(e)
	case sessions.KindTurnParked:
		l.addParked(e)
	case sessions.KindNotice:
		l.addUnread(e)
	case sessions.KindAskEnded:
		l.addAskEnded(e)
	case sessions.KindTurnUnparked:
		l.addUnparked(e)
	case sessions.KindPublished:
		if !l.turns[e.Turn].waits { // while the turn waits, the entry says only that people were asked
			l.turns[e.Turn].published++
		}
	}
}

// addCall checks an entry about a tool call: the model must have asked for the call, which then starts and gets a
// result.
func (l *logAudit) addCall(e sessions.Entry) {
	c := l.calls[e.Call]
	if e.Kind == sessions.KindToolUse {
		use, err := sessions.Decode[sessions.ToolUse](e)
		if err != nil || c != nil {
			l.addViolation("%s: call %s was asked for twice, or cannot be read: %v", l.key, e.Call, err)
		}
		l.calls[e.Call] = &callSeen{use: use, turn: e.Turn}
		if t := l.turns[e.Turn]; use.Name == "speak" {
			t.spoken = append(t.spoken, l.calls[e.Call])
		}
		l.audit.calls++
		return
	}
	if c == nil {
		l.addViolation("%s: entry %d is of call %s, which nobody asked for", l.key, e.N, e.Call)
		return
	}
	if e.Kind == sessions.KindToolResult {
		c.results++
		l.addResult(c, e)
		return
	}
	if c.results > 0 {
		l.addViolation("%s: call %s (%s) ran again although its result was recorded", l.key, e.Call, c.use.Name)
	}
	if c.started++; c.started > 1 {
		l.rerun++
		if c.use.Name == onceToolName {
			l.addViolation("%s: call %s was begun again, and its effect is once", l.key, e.Call)
		}
	}
}

// addResult checks a result that the model was given.
func (l *logAudit) addResult(c *callSeen, e sessions.Entry) {
	r, err := sessions.Decode[sessions.ToolResult](e)
	c.code = r.Code
	switch {
	case err != nil:
		l.addViolation("%s: the result of %s cannot be read: %v", l.key, c.use.Name, err)
	case approvalCall(c.use):
		l.checkApproved(c, e.Call, r)
	case c.use.Name == "ask_user":
		l.checkAnswer(c, r)
	case c.use.Name == onceToolName:
		l.checkOnce(c, e.Call, r)
	case wasTooLate(string(r.Content)):
		l.late++
	case r.Code == string(tools.Cancelled), r.Code == string(tools.OutcomeUnknown):
		l.turns[e.Turn].cut, l.spoiled = true, true
	case r.Code == string(tools.Timeout):
		l.late++
		l.spoiled = l.spoiled || !isRepeatable(c.use.Name) // nobody knows whether it was made
	case c.use.Name == "recall" && isUnsearchable(string(r.Content)): // the answer says so
	case r.Code != "" && !l.spoiled:
		l.addViolation("%s: %s failed: %s", l.key, c.use.Name, r.Content)
	case c.use.Name == "read_file" && !l.spoiled:
		var got struct {
			Content string `json:"content"`
		}
		var by struct {
			Path  string `json:"path"`
			Limit int    `json:"limit"`
		}
		if err := json.Unmarshal(c.use.Args, &by); strings.HasPrefix(by.Path, "attachments/") {
			return // the answer says what was in the file
		} else if err != nil || by.Limit-readBase >= len(l.heard) {
			l.addViolation("%s: the file was read with %s, which nobody has asked for yet", l.key, c.use.Args)
			return
		}
		want := countedFile(l.said[:by.Limit-readBase]) + "<0>"
		if err := json.Unmarshal(r.Content, &got); err != nil || got.Content != want {
			l.addViolation("%s: the file was read as %s, want %q", l.key, r.Content, want)
		}
	}
}

// checkOnce compares how often a call of the once tool was made with what the log says.
func (l *logAudit) checkOnce(c *callSeen, call string, r sessions.ToolResult) {
	key := c.turn + "#" + call
	times := l.made[key]
	delete(l.made, key)
	l.onceCalls++
	switch {
	case r.Code == "" && times != 1:
		l.addViolation("%s: call %s was made %d times, and the log says once", l.key, call, times)
	case r.Code == string(tools.Cancelled) && times == 0: // its turn was given up before
	case r.Code == string(tools.OutcomeUnknown) && times <= 1:
		l.unknown++
	case r.Code != "":
		l.addViolation("%s: call %s was made %d times, and the log says %s", l.key, call, times, r.Content)
	}
}

// countedFile returns the content of the file after these requests have added their numbers.
func countedFile(all []request) (text string) {
	for _, m := range all {
		if m.what == askCount || m.what == askAll {
			text += fmt.Sprintf("%d;", m.n)
		}
	}
	return text
}

// addTurnDone checks the end of a turn, and records what people must be shown of the turn.
func (l *logAudit) addTurnDone(e sessions.Entry) {
	done, err := sessions.Decode[sessions.TurnDone](e)
	t := l.turns[e.Turn]
	if err != nil || t == nil {
		l.addViolation("%s: the end of turn %s cannot be read: %v", l.key, e.Turn, err)
		return
	}
	if t.done++; t.done > 1 || t.published > 0 {
		l.addViolation("%s: turn %s ended twice", l.key, e.Turn)
	}
	if t.cut && done.State == sessions.TurnCompleted {
		l.addViolation("%s: turn %s was completed with calls that were cut off", l.key, e.Turn)
	}
	if t.state = done.State; done.State != sessions.TurnCompleted {
		l.givenUp++
		if t.waited {
			l.mayBeBuried += t.causes + len(l.asks)
		} else {
			l.buried += t.causes
		}
		l.givenUpIn[l.address] += t.causes
		l.spoiled = true
	}
	if len(done.Outbound) == 0 {
		l.addViolation("%s: turn %s ended and said nothing", l.key, e.Turn)
	}
	l.addReading(e.Turn, t, done)
	for _, r := range done.Outbound {
		l.expectText(l.address, platformText(r.Text), r.ID)
		l.replyFiles(r)
		l.checkSightings(r.Text)
		l.checkRecalls(r.Text)
		if l.spoiled && strings.Contains(r.Text, " failed: ") {
			l.givenUpIn[l.address] += t.causes // an earlier call was given up, so nobody knows the file's content
		}
	}
}

// finish checks that every turn and call in the log has ended.
func (l *logAudit) finish() {
	want := make([]string, len(l.said))
	for i, m := range l.said {
		want[i] = m.text()
	}
	if !slices.Equal(l.heard, want) {
		l.addViolation("%s: people said %q, and the log has %q", l.key, want, l.heard)
	}
	for id, t := range l.turns {
		if t.done != 1 || t.published != 1 && !(t.published == 0 && l.unrecorded[id]) {
			l.addViolation("%s: turn %s has %d ends and was published %d times", l.key, id, t.done, t.published)
		}
	}
	l.finishAsks()
	for id, c := range l.calls {
		if c.results != 1 {
			l.addViolation("%s: call %s (%s) has %d results", l.key, id, c.use.Name, c.results)
		}
		var to struct {
			Address string   `json:"channel"`
			Content string   `json:"content"`
			Files   []string `json:"files"`
		}
		if err := json.Unmarshal(c.use.Args, &to); c.use.Name != "message" || err != nil {
			continue
		}
		l.noteLeftFiles(c, c.turn+"#"+id)
		if to.Address != l.address {
			to.Content = toldText(l.person, to.Content)
		}
		switch c.code {
		case "":
			l.expectText(to.Address, to.Content, c.turn+"#"+id)
			l.expectFiles(to.Address, c.turn+"#"+id, to.Content, to.Files)
		case string(tools.OutcomeUnknown):
			for _, text := range append(l.filesShown(to.Content, to.Files), to.Content) {
				l.maybe[to.Address+" "+text] = true
			}
		}
	}
}

// checkFiles compares the session's files with what people asked for.
func (l *logAudit) checkFiles(dir *workspace.Dir) {
	var remembered, latest string
	for _, m := range l.said {
		if m.what == askRemember || m.what == askAll {
			remembered += m.mark() + "\n\n"
		}
		if m.what == askRewrite || m.what == askAll {
			latest = m.mark()
		}
	}
	l.checkFetched(dir)
	if l.spoiled {
		return
	}
	for name, want := range map[string]string{
		"count.txt": countedFile(l.said) + "<0>", "MEMORY.md": strings.TrimSuffix(remembered, "\n\n"), "latest.txt": latest,
	} {
		got, err := fs.ReadFile(dir, name)
		if err != nil && want != "" || string(got) != want {
			l.addViolation("%s: %s has %q, want %q (%v)", l.key, name, got, want, err)
		}
	}
}
