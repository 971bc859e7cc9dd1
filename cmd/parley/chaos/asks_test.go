package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agent/agenttest"
	"parley/agent/asks"
	"parley/agent/transcript"
	"parley/bus"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/tools"
)

// With askSettings, a call of the once tool with a negative number needs an owner's approval. Asks expire soon, because
// many are never answered in a storm. A turn that has read a person's file needs no further approvals.
const askSettings = `
[tools]
untrusted = "allow"
ask = ['ring({"n":-*)']
[approvals]
expires = "15s"
`

// The owner answers asks from these accounts and this chat.
const (
	ownerOnTelegram = 1
	ownerOnSlack    = "U1"
	ownersChat      = "D1"
)

// answerPrefix begins a person's answer to a question. If no turn waits for the answer anymore, the model gets the
// answer as a message.
const answerPrefix = "word "

// approvalOf returns the arguments of the request's call that needs approval, in the form that people and logs see.
func (s request) approvalOf() string { return fmt.Sprintf(`{"n":%d}`, -1-s.n) }

// questionOf returns the question that the agent asks the person of the request.
func (s request) questionOf() string { return "which for " + s.mark() + "?" }

// asksQuestion reports whether a request leads to a question. The bot may take the person's next message for the
// answer, so the person waits until the question is settled.
func (s request) asksQuestion() bool { return s.what == askQuestion || s.what == askBoth }

// turnOf returns the messages of the turn that a model's request belongs to. Messages that arrived while the turn
// waited come after results.
func turnOf(r agenttest.Request) []agenttest.Message {
	all := r.Messages()
	at := len(all)
	for at > 0 {
		last := all[at-1]
		begun := last.Role == "user" && (at == 1 || all[at-2].Role != "tool" || strings.Contains(all[at-2].Content, string(tools.Cancelled)))
		if at--; begun {
			break
		}
	}
	return all[at:]
}

// saidIn returns the messages of people in a turn, and the results of its calls.
func saidIn(turn []agenttest.Message) (said, results []string) {
	for _, m := range turn {
		switch m.Role {
		case "user":
			said = append(said, transcript.Words(m.Content)...)
		case "tool":
			results = append(results, m.Content)
		}
	}
	return said, results
}

// declined reports whether a result says that its call was not approved.
func declined(result string) bool { return strings.Contains(result, `"code":"permission_denied"`) }

var (
	wantsApproval = regexp.MustCompile(`(?:approve |Request ` + "`?" + `)([a-z2-7]{10})\b`)
	wantsAnswer   = regexp.MustCompile(`answer ([a-z2-7]{10}) WORDS`)
)

// answerAsks makes people answer their asks until the storm is over: some at once, some after processes were killed,
// some twice, and some never.
func (s *storm) answerAsks(random *rand.Rand, over <-chan struct{}) {
	seen := map[string]bool{}
	var answering sync.WaitGroup
	defer answering.Wait()
	for pause(random, 200*time.Millisecond, 200*time.Millisecond, over) {
		for _, p := range s.begunChats() {
			for _, m := range s.sentTo(p.at.String()) {
				answer, id := s.decideApproval, wantsApproval.FindStringSubmatch(m.text)
				if id == nil {
					answer, id = s.answerQuestion, wantsAnswer.FindStringSubmatch(m.text)
				}
				if id == nil || seen[id[1]] || isNoted(m.text) {
					continue
				}
				seen[id[1]] = true
				how, after := random.IntN(10), time.Duration(random.Int64N(int64(8*time.Second)))
				answering.Go(func() {
					<-time.After(after)
					answer(p, id[1], how)
				})
			}
		}
	}
}

// begunChats returns the chats that have an address.
func (s *storm) begunChats() (all []*chat) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	for _, p := range s.chats {
		if !p.opens {
			all = append(all, p)
		}
	}
	return all
}

// decideApproval sends the answers of people to a call that needs approval. how chooses the answers: approve, deny,
// both by two owners at once, an answer of a person without the right, or none.
func (s *storm) decideApproval(p *chat, id string, how int) {
	owners := []func(string){
		func(words string) { s.Telegram.Say(ownerOnTelegram, ownerOnTelegram, "/"+words) },
		func(words string) { s.sl.Say(ownersChat, ownerOnSlack, "!"+words) },
	}
	if p.at.Channel == "slack" && p.at.Thread != "" {
		owners = append(owners, func(words string) { s.sl.Reply(p.at.Chat, p.at.Thread, ownerOnSlack, "!"+words) })
	}
	owner := owners[how%len(owners)]
	switch how {
	case 0, 1, 2, 3:
		owner("approve " + id)
	case 4:
		owner("approve " + id + " session")
	case 5, 6:
		owner("deny " + id + " not now")
	case 7: // two owners at the same time
		owners[0]("approve " + id)
		owners[1]("deny " + id)
	case 8: // a person without the right to decide
		s.speak(p, p.command("approve "+id))
	}
}

// answerQuestion sends the answers of people to a question; how chooses the answers.
func (s *storm) answerQuestion(p *chat, id string, how int) {
	switch how {
	case 0, 1, 2:
		s.speak(p, p.command("answer "+id+" "+answerPrefix+id))
	case 3, 4, 5:
		s.speak(p, answerPrefix+id)
	case 6:
		s.Telegram.Say(ownerOnTelegram, ownerOnTelegram, "/answer "+id+" "+answerPrefix+id)
	case 7:
		s.sl.Say(ownersChat, ownerOnSlack, "!answer "+id+" "+answerPrefix+id)
		s.speak(p, answerPrefix+id)
	}
}

// command returns a command in the form in which people write it in this chat.
func (p *chat) command(words string) string {
	if p.at.Channel == "slack" {
		return "!" + words
	}
	return "/" + words
}

// checkUnheld checks that no process holds a turn that waits: when everything else is idle, the bus contains only the
// turn's timer. An ask that ends before this check proves nothing.
func (s *storm) checkUnheld() {
	s.T.Helper()
	for i := range s.chats[:4] {
		n := len(s.said[i])
		s.send(i, request{what: askApproval})
		at, args := s.chats[i].address(), s.said[i][n].approvalOf()
		parleytest.WaitFor(s.T, "an answer in "+at, func() bool {
			left := slices.DeleteFunc(leftovers(s.keys()), func(key string) bool { return strings.Contains(key, string(bus.TimersTopic)) })
			waits := slices.ContainsFunc(s.sentTo(at), func(m delivered) bool { return strings.Contains(m.text, args) && wantsApproval.MatchString(m.text) })
			if waits && len(left) == 0 && !s.unheld[i] {
				s.unheld[i] = true
			}
			return s.answered(i) > n || s.gaveUpLast(i)
		})
	}
}

// An askSeen is an ask in a log.
type askSeen struct {
	sessions.Ask
	turn  string
	ended []sessions.AskEnded
}

// isIncomparable reports whether a process of the previous release has refused an approved call. That release does not
// know the mode in a hash, so it reports that a file has changed.
func (a *askSeen) isIncomparable(r sessions.ToolResult) bool {
	return asks.ModeOf(a.Hash) != "" && r.Code == string(tools.PermissionDenied) && strings.Contains(string(r.Content), "or a file that it names. Nothing was done.")
}

// addParked records the asks of a turn that begins to wait.
func (l *logAudit) addParked(e sessions.Entry) {
	parked, err := sessions.Decode[sessions.TurnParked](e)
	if err != nil || len(parked.Asks) == 0 {
		l.addViolation("%s: turn %s waits for %v, %v", l.key, e.Turn, parked.Asks, err)
	}
	t := l.turns[e.Turn]
	if t.waits {
		l.addViolation("%s: turn %s began to wait twice", l.key, e.Turn)
	}
	t.waits, t.waited = true, true
	for _, a := range parked.Asks {
		if l.asks[a.ID] != nil {
			l.addViolation("%s: people were asked %s twice", l.key, a.ID)
		}
		l.asks[a.ID] = &askSeen{Ask: a, turn: e.Turn}
		if c := l.calls[a.Call]; c == nil || c.ask != nil {
			l.addViolation("%s: ask %s is of call %s, which nobody asked for or which had one", l.key, a.ID, a.Call)
		} else {
			c.ask = l.asks[a.ID]
		}
	}
}

// addUnparked checks that all asks of a turn have ended when it continues.
func (l *logAudit) addUnparked(e sessions.Entry) {
	t := l.turns[e.Turn]
	if !t.waits {
		l.addViolation("%s: turn %s went on and had not waited", l.key, e.Turn)
	}
	t.waits = false
	for id, a := range l.asks {
		if a.turn == e.Turn && len(a.ended) == 0 {
			l.addViolation("%s: turn %s went on without %s", l.key, e.Turn, id)
		}
	}
}

// addAskEnded records the end of an ask.
func (l *logAudit) addAskEnded(e sessions.Entry) {
	end, err := sessions.Decode[sessions.AskEnded](e)
	a := l.asks[end.Ask]
	if err != nil || a == nil {
		l.addViolation("%s: the end of ask %s cannot be read, or nobody asked: %v", l.key, end.Ask, err)
		return
	}
	if a.ended = append(a.ended, end); len(a.ended) > 1 || l.turns[e.Turn].state != "" {
		l.addViolation("%s: ask %s ended too often or too late", l.key, end.Ask)
	}
}

// approvalCall reports whether a call needs approval.
func approvalCall(use sessions.ToolUse) bool {
	return use.Name == onceToolName && strings.HasPrefix(string(use.Args), `{"n":-`)
}

// checkApproved checks that a call that needs approval ran if and only if it was approved.
func (l *logAudit) checkApproved(c *callSeen, call string, r sessions.ToolResult) {
	key := c.turn + "#" + call
	a, times := c.ask, l.made[key]
	switch {
	case a != nil && len(a.ended) == 1 && a.ended[0].State == bus.AskAnswered && a.ended[0].Answer != bus.Deny:
		l.approved++
		if l.storm.downgrades && times == 0 && c.started == 0 && a.isIncomparable(r) {
			l.incomparable++
			return
		}
		l.checkOnce(c, call, r)
		return
	case times > 0 || c.started > 0:
		l.addViolation("%s: call %s was made %d times, and nobody has approved it", l.key, call, times)
	case r.Code == string(tools.Cancelled): // its turn was given up
	case a == nil && r.Code == string(tools.PermissionDenied):
		l.unasked++
	case a == nil || len(a.ended) != 1:
		l.addViolation("%s: call %s ended as %q, and nobody was asked about it", l.key, call, r.Content)
	case a.ended[0].State == bus.AskExpired && r.Code == string(tools.Timeout):
		l.expired++
	case a.ended[0].State == bus.AskAnswered && r.Code == string(tools.PermissionDenied):
		l.denied++
	default:
		l.addViolation("%s: call %s ended as %q, and the ask as %v", l.key, call, r.Content, a.ended)
	}
	delete(l.made, key)
}

// checkAnswer checks the answer that the model got to its question.
func (l *logAudit) checkAnswer(c *callSeen, r sessions.ToolResult) {
	var got struct {
		Answer string `json:"answer"`
	}
	_ = json.Unmarshal(r.Content, &got) // it may be an error
	a := c.ask
	switch {
	case r.Code == string(tools.Cancelled):
	case a == nil && r.Code == string(tools.PermissionDenied):
		l.unasked++
	case a == nil || len(a.ended) != 1:
		l.addViolation("%s: a question ended as %q, and nobody was asked", l.key, r.Content)
	case a.ended[0].State == bus.AskExpired && r.Code == string(tools.Timeout):
		l.expired++
	case a.ended[0].State == bus.AskAnswered && r.Code == "" && got.Answer == a.ended[0].Answer && got.Answer == answerPrefix+a.ID:
		l.replied++
	case a.ended[0].State == bus.AskAnswered && r.Code == "" && got.Answer == a.ended[0].Answer && l.wasLate(got.Answer):
		l.replied++
	default:
		l.addViolation("%s: a question ended as %q, and the ask as %v", l.key, r.Content, a.ended)
	}
}

// wasLate reports whether an answer was meant for another question of the conversation, which had ended before the
// answer arrived. A person's message answers the question that is open when the platform delivers it, and a failing
// platform delivers late.
func (l *logAudit) wasLate(answer string) bool {
	id, ok := strings.CutPrefix(answer, answerPrefix)
	if !ok {
		return false
	}
	other := l.asks[id]
	return other != nil && len(other.ended) == 1 && other.ended[0].Answer != answer
}

// finishAsks checks that each ask in the log has ended as the book says, and records that its end must be shown.
func (l *logAudit) finishAsks() {
	for id, a := range l.asks {
		in, known := l.book[id]
		delete(l.book, id)
		if len(a.ended) != 1 {
			l.addViolation("%s: ask %s has %d ends, and the book says %q", l.key, id, len(a.ended), in)
			continue
		}
		if known && in != a.ended[0].State {
			l.addViolation("%s: ask %s ended as %s, and the book says %q", l.key, id, a.ended[0].State, in)
		}
		if !known {
			l.addViolation("%s: the book does not know ask %s", l.key, id)
		}
		mark := shownCall(l.calls[a.Call].use.Args)
		if a.Kind == bus.AskQuestion {
			mark = regexp.QuoteMeta(a.Question)
		}
		l.shown[l.address] = append(l.shown[l.address], shownAsk{id: id, mark: regexp.MustCompile(mark)})
	}
}

// A shownAsk is an ask that must be shown at an address.
type shownAsk struct {
	id   string
	mark *regexp.Regexp // matches the messages about the ask
}

// shownCall returns a pattern that matches a call of the once tool in a message: its number with the number's name or,
// in messages of the previous release, its arguments as JSON.
func shownCall(args json.RawMessage) string {
	var call struct{ N int }
	if err := json.Unmarshal(args, &call); err != nil {
		panic(err) // the model of the test has written it
	}
	return fmt.Sprintf("n: `?%[1]d(?:\\D|$)|\\{\"n\":%[1]d\\}", call.N)
}

// isNoted reports whether a text is the bot's reply to a message for a turn that waits, in the words of this release or
// the previous one.
func isNoted(text string) bool {
	return strings.HasPrefix(text, "Noted. ") || strings.HasPrefix(text, "I have noted that.")
}

// readAsks reads from the book how each ask has ended.
func (a *audit) readAsks() {
	a.book = map[string]string{}
	for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(), "SELECT id, state, told FROM asks") {
		f := strings.Split(row, " ")
		a.book[f[0]] = f[1]
		if f[1] == bus.AskOpen || f[2] != "1" {
			a.addViolation("the book has an ask that is open, or of whose end nobody was told: %s", row)
		}
	}
}

var endings = regexp.MustCompile(`(?i)(approved by|approved for this conversation by|denied by|answered by|expired: nobody|withdrawn: the turn)`)

// isAboutAsk reports whether a message at an address asks people something, or says how an ask has ended.
func (a *audit) isAboutAsk(address, text string) bool {
	if isNoted(text) || strings.HasPrefix(text, "You can't decide this") || strings.HasPrefix(text, "You may not decide this") || strings.Contains(text, " has already been decided: ") || strings.Contains(text, " is decided already: ") {
		return true
	}
	return slices.ContainsFunc(a.shown[address], func(s shownAsk) bool { return s.mark.MatchString(text) })
}

// checkShown checks that people were told once how each ask has ended.
func (a *audit) checkShown() {
	for address, all := range a.shown {
		sent := a.storm.sentTo(address)
		for _, s := range all {
			shown, open := 0, 0
			for _, m := range sent {
				if s.mark.MatchString(m.text) {
					if shown++; !endings.MatchString(m.text) {
						open++
					}
				}
			}
			more := a.interruptedBy[s.id+"#ask/0"] + a.interruptedBy[s.id+"#ended/0"]
			if shown == 0 || shown > 1+more || open > more {
				a.addViolation("%s shows ask %s (%s) %d times, %d of them open; %d sends were cut off", address, s.id, s.mark, shown, open, more)
			}
		}
	}
}
