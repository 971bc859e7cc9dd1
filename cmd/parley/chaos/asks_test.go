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
	"parley/agent/transcript"
	"parley/bus"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/tools"
)

// askSettings has an owner approve the calls of the once tool whose number is negative.
// Requests expire soon: in a storm many are never answered. What has read a file that somebody
// has sent may go on as before.
const askSettings = `
[tools]
untrusted = "allow"
ask = ['ring({"n":-*)']
[approvals]
expires = "15s"
`

// The owner, who decides from chats of their own.
const (
	ownerOnTelegram = 1
	ownerOnSlack    = "U1"
	ownersChat      = "D1"
)

// word begins what a person says to a question. It comes to the model as something said
// if nobody waits for it any more.
const word = "word "

// approvalOf is how people and logs see the arguments of a request's call that has to be approved.
func (s request) approvalOf() string { return fmt.Sprintf(`{"n":%d}`, -1-s.n) }

// questionOf is what the agent asks the person of a request.
func (s request) questionOf() string { return "which for " + s.mark() + "?" }

// asksQuestion tells whether a request leads to a question. The person's next words may be
// taken for the answer, so they wait until it is settled.
func (s request) asksQuestion() bool { return s.what == askQuestion || s.what == askBoth }

// turnOf returns the messages of the turn that a model's request is of. What was said while
// the turn waited stands behind results.
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

// saidIn returns what people have said to a turn, and what came of its calls.
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

// declined tells whether a call was not approved.
func declined(result string) bool { return strings.Contains(result, `"code":"permission_denied"`) }

var (
	wantsApproval = regexp.MustCompile(`approve ([a-z2-7]{10})\b`)
	wantsAnswer   = regexp.MustCompile(`answer ([a-z2-7]{10}) WORDS`)
)

// answerAsks has people answer what they are asked, until the storm is over: some of it at
// once, some after processes were killed, some twice, and some never.
func (s *storm) answerAsks(random *rand.Rand, over <-chan struct{}) {
	seen := map[string]bool{}
	var answering sync.WaitGroup
	defer answering.Wait()
	for pause(random, 200*time.Millisecond, 200*time.Millisecond, over) {
		for _, p := range s.begun() {
			for _, m := range s.sentTo(p.at.String()) {
				answer, id := s.decide, wantsApproval.FindStringSubmatch(m.text)
				if id == nil {
					answer, id = s.reply, wantsAnswer.FindStringSubmatch(m.text)
				}
				if id == nil || seen[id[1]] || strings.HasPrefix(m.text, noted) {
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

// begun are the chats that have an address.
func (s *storm) begun() (all []*chat) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	for _, p := range s.chats {
		if !p.opens {
			all = append(all, p)
		}
	}
	return all
}

// decide is what people do about a call that has to be approved.
func (s *storm) decide(p *chat, id string, how int) {
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
	case 8: // somebody who may not
		s.speak(p, p.command("approve "+id))
	}
}

// reply is what people do about a question.
func (s *storm) reply(p *chat, id string, how int) {
	switch how {
	case 0, 1, 2:
		s.speak(p, p.command("answer "+id+" "+word+id))
	case 3, 4, 5:
		s.speak(p, word+id)
	case 6:
		s.Telegram.Say(ownerOnTelegram, ownerOnTelegram, "/answer "+id+" "+word+id)
	case 7:
		s.sl.Say(ownersChat, ownerOnSlack, "!answer "+id+" "+word+id)
		s.speak(p, word+id)
	}
}

// command is a command as it is written in the chat.
func (p *chat) command(words string) string {
	if p.at.Channel == "slack" {
		return "!" + words
	}
	return "/" + words
}

// seeUnheld checks, when all else is quiet, that a turn that waits is held by nobody: the
// bus has its timer and nothing else. A request that ends before that was seen shows nothing.
func (s *storm) seeUnheld() {
	s.T.Helper()
	client := s.client()
	for i := range s.chats[:4] {
		n := len(s.said[i])
		s.say(i, askApproval)
		at, args := s.chats[i].address(), s.said[i][n].approvalOf()
		parleytest.WaitFor(s.T, "an answer in "+at, func() bool {
			left := slices.DeleteFunc(leftovers(s.keys(client)), func(key string) bool { return strings.Contains(key, string(bus.TimersTopic)) })
			waits := slices.ContainsFunc(s.sentTo(at), func(m delivered) bool { return strings.Contains(m.text, args) && wantsApproval.MatchString(m.text) })
			if waits && len(left) == 0 && !s.unheld[i] {
				s.unheld[i] = true
			}
			return s.answered(i) > n || s.gaveUpLast(i)
		})
	}
}

// An askSeen is a request to people, as a log has it.
type askSeen struct {
	sessions.Ask
	turn  string
	ended []sessions.AskEnded
}

func (l *logAudit) parked(e sessions.Entry) {
	parked, err := sessions.Decode[sessions.TurnParked](e)
	if err != nil || len(parked.Asks) == 0 {
		l.wrong("%s: turn %s waits for %v, %v", l.key, e.Turn, parked.Asks, err)
	}
	t := l.turns[e.Turn]
	if t.waits {
		l.wrong("%s: turn %s began to wait twice", l.key, e.Turn)
	}
	t.waits, t.waited = true, true
	for _, a := range parked.Asks {
		if l.asks[a.ID] != nil {
			l.wrong("%s: people were asked %s twice", l.key, a.ID)
		}
		l.asks[a.ID] = &askSeen{Ask: a, turn: e.Turn}
		if c := l.calls[a.Call]; c == nil || c.ask != nil {
			l.wrong("%s: ask %s is of call %s, which nobody asked for or which had one", l.key, a.ID, a.Call)
		} else {
			c.ask = l.asks[a.ID]
		}
	}
}

func (l *logAudit) unparked(e sessions.Entry) {
	t := l.turns[e.Turn]
	if !t.waits {
		l.wrong("%s: turn %s went on and had not waited", l.key, e.Turn)
	}
	t.waits = false
	for id, a := range l.asks {
		if a.turn == e.Turn && len(a.ended) == 0 {
			l.wrong("%s: turn %s went on without %s", l.key, e.Turn, id)
		}
	}
}

func (l *logAudit) askEnded(e sessions.Entry) {
	end, err := sessions.Decode[sessions.AskEnded](e)
	a := l.asks[end.Ask]
	if err != nil || a == nil {
		l.wrong("%s: the end of ask %s cannot be read, or nobody asked: %v", l.key, end.Ask, err)
		return
	}
	if a.ended = append(a.ended, end); len(a.ended) > 1 || l.turns[e.Turn].state != "" {
		l.wrong("%s: ask %s ended too often or too late", l.key, end.Ask)
	}
}

// approvalCall tells whether a call has to be approved.
func approvalCall(use sessions.ToolUse) bool {
	return use.Name == onceToolName && strings.HasPrefix(string(use.Args), `{"n":-`)
}

// checkApproved checks that a call that has to be approved ran if it was, and only then.
func (l *logAudit) checkApproved(c *callSeen, call string, r sessions.ToolResult) {
	key := c.turn + "#" + call
	a, times := c.ask, l.made[key]
	switch {
	case a != nil && len(a.ended) == 1 && a.ended[0].State == bus.AskAnswered && a.ended[0].Answer != bus.Deny:
		l.approved++
		l.checkOnce(c, call, r)
		return
	case times > 0 || c.started > 0:
		l.wrong("%s: call %s was made %d times, and nobody has approved it", l.key, call, times)
	case r.Code == string(tools.Cancelled): // its turn was given up
	case a == nil && r.Code == string(tools.PermissionDenied):
		l.unasked++
	case a == nil || len(a.ended) != 1:
		l.wrong("%s: call %s ended as %q, and nobody was asked about it", l.key, call, r.Content)
	case a.ended[0].State == bus.AskExpired && r.Code == string(tools.Timeout):
		l.expired++
	case a.ended[0].State == bus.AskAnswered && r.Code == string(tools.PermissionDenied):
		l.denied++
	default:
		l.wrong("%s: call %s ended as %q, and the ask as %v", l.key, call, r.Content, a.ended)
	}
	delete(l.made, key)
}

// checkAnswer checks what the model was told of its question.
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
		l.wrong("%s: a question ended as %q, and nobody was asked", l.key, r.Content)
	case a.ended[0].State == bus.AskExpired && r.Code == string(tools.Timeout):
		l.expired++
	case a.ended[0].State == bus.AskAnswered && r.Code == "" && got.Answer == a.ended[0].Answer && got.Answer == word+a.ID:
		l.replied++
	case a.ended[0].State == bus.AskAnswered && r.Code == "" && got.Answer == a.ended[0].Answer && l.wasLate(got.Answer):
		l.replied++
	default:
		l.wrong("%s: a question ended as %q, and the ask as %v", l.key, r.Content, a.ended)
	}
}

// wasLate tells whether words were the answer to another question of the conversation,
// which had ended without them: what a person says answers the question that is open when
// the platform brings it, and a platform that fails brings it late.
func (l *logAudit) wasLate(answer string) bool {
	id, ok := strings.CutPrefix(answer, word)
	if !ok {
		return false
	}
	other := l.asks[id]
	return other != nil && len(other.ended) == 1 && other.ended[0].Answer != answer
}

// finishAsks checks that each ask of the log has ended, as the book has it, and was shown.
func (l *logAudit) finishAsks() {
	for id, a := range l.asks {
		in, known := l.book[id]
		delete(l.book, id)
		if len(a.ended) != 1 {
			l.wrong("%s: ask %s has %d ends, and the book says %q", l.key, id, len(a.ended), in)
			continue
		}
		if known && in != a.ended[0].State {
			l.wrong("%s: ask %s ended as %s, and the book says %q", l.key, id, a.ended[0].State, in)
		}
		if !known {
			l.wrong("%s: the book does not know ask %s", l.key, id)
		}
		mark := string(l.calls[a.Call].use.Args)
		if a.Kind == bus.AskQuestion {
			mark = a.Question
		}
		l.shown[l.address] = append(l.shown[l.address], shownAsk{id: id, mark: mark})
	}
}

// A shownAsk is a request that an address must show.
type shownAsk struct{ id, mark string }

// noted begins what people are told who say something to a turn that waits.
const noted = "I have noted that."

// readAsks reads how each ask has ended, by the book.
func (a *audit) readAsks() {
	a.book = map[string]string{}
	for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(), "SELECT id, state, told FROM asks") {
		f := strings.Split(row, " ")
		a.book[f[0]] = f[1]
		if f[1] == bus.AskOpen || f[2] != "1" {
			a.wrong("the book has an ask that is open, or of whose end nobody was told: %s", row)
		}
	}
}

var endings = regexp.MustCompile(`(?i)(approved by|approved for this conversation by|denied by|answered by|expired: nobody|withdrawn: the turn)`)

// isAboutAsk tells whether a message at an address is of those with which people are asked
// or are told what became of it.
func (a *audit) isAboutAsk(address, text string) bool {
	if strings.HasPrefix(text, noted) || strings.HasPrefix(text, "You may not decide this") || strings.Contains(text, " is decided already: ") {
		return true
	}
	return slices.ContainsFunc(a.shown[address], func(s shownAsk) bool { return strings.Contains(text, s.mark) })
}

// checkShown checks that people see how each ask has ended, once.
func (a *audit) checkShown() {
	for address, all := range a.shown {
		sent := a.storm.sentTo(address)
		for _, s := range all {
			shown, open := 0, 0
			for _, m := range sent {
				if strings.Contains(m.text, s.mark) {
					if shown++; !endings.MatchString(m.text) {
						open++
					}
				}
			}
			more := a.interruptedBy[s.id+"#ask/0"] + a.interruptedBy[s.id+"#ended/0"]
			if shown == 0 || shown > 1+more || open > more {
				a.wrong("%s shows ask %s (%s) %d times, %d of them open; %d sends were cut off", address, s.id, s.mark, shown, open, more)
			}
		}
	}
}
