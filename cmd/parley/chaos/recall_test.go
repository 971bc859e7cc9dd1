package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agent/agenttest"
	"parley/tools/recall"
)

// This file has what people want the agent to find again: in the storm what began their chat, and after it one of
// their messages, with its answer.

// recalls reports whether the agent has to find something that was said.
func (s request) recalls() bool { return s.what == askRecall || s.what == askFind }

// What an answer says of a search.
const (
	foundIt     = "it"
	unavailable = "nothing for now" // the store was away
)

// A search is a call of recall, and what it has to find.
type search struct {
	query string
	want  string // the text of one passage; "" for the request that began the chat
}

// searches returns the searches that a request leads to.
func (s request) searches() []search {
	if s.what == askRecall {
		return []search{{query: fmt.Sprintf("%d.0 %s", s.who, askBegin)}}
	}
	m := request{who: s.who, n: s.sought, what: s.soughtWhat, here: s.here}
	return []search{{m.answer(), m.answer()}, {fmt.Sprintf("%d %d %s", m.who, m.n, m.what), m.text()}}
}

// searchAll returns the searches that the requests of a turn lead to and that are still to be made. If there are none, it
// notes at each request what the model says of their results. They are made last and all at once: once another process
// goes on with the turn, it is not shown what was found.
func searchAll(turn []request, results []string) (calls []agenttest.ToolCall) {
	var all []search
	for _, s := range turn {
		if s.recalls() {
			all = append(all, s.searches()...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	again := len(results) / len(all)
	last := results[max(0, len(results)-len(all)):]
	if again == 0 || slices.ContainsFunc(last, func(r string) bool { return isNotKept(r) || wasTooLate(r) || timedOut(r) }) {
		for i, one := range all { // no two of them are the same
			calls = append(calls, agenttest.ToolCall{Name: "recall", Args: fmt.Sprintf(`{"query":%q,"limit":%d}`, one.query, 10+(again*len(all)+i)%40)})
		}
		return calls
	}
	for i, s := range turn {
		if s.recalls() {
			n := len(s.searches())
			turn[i].seen = s.recalled(last[:n], turn)
			last = last[n:]
		}
	}
	return nil
}

// isNotKept reports whether a result only says that it was shown to a process that was killed. The model has to
// search again.
func isNotKept(result string) bool { return strings.Contains(result, "is not kept; search again") }

// isUnsearchable reports whether a search failed because the store was away.
func isUnsearchable(result string) bool {
	return strings.Contains(result, "the conversations cannot be searched now")
}

// recalled returns what the model says of the results of a request's searches, among the requests of its turn.
func (s request) recalled(results []string, turn []request) string {
	for i, of := range s.searches() {
		if isUnsearchable(results[i]) {
			return unavailable
		}
		if wrong := s.wrongIn(results[i], of, turn); wrong != "" {
			return unreadable.ReplaceAllString(wrong, " ") // no platform shows it in another way
		}
	}
	return foundIt
}

// unreadable matches what an answer must not have, because of its markup or of how answers are told apart.
var unreadable = regexp.MustCompile(`[^a-zA-Z0-9.,:]+`)

// wrongIn returns what is wrong with the result of a search; "" for nothing.
func (s request) wrongIn(result string, of search, turn []request) string {
	var got struct {
		Found []struct{ Text, Where, Origin string }
	}
	if err := json.Unmarshal([]byte(result[max(0, strings.Index(result, `{"found"`)):]), &got); err != nil {
		return fmt.Sprintf("what cannot be read: %v: %q", err, result)
	}
	times := 0
	for _, p := range got.Found {
		for _, who := range marked(p.Text) {
			if !s.mayRead(who) {
				return fmt.Sprintf("what %d has for itself: %q", who, p.Text)
			}
		}
		if p.Origin == recall.Deeds {
			continue // it begins with the request to which it belongs
		}
		if of.isIn(p.Text, s) {
			times++
			if !strings.HasSuffix(p.Where, "(this conversation)") {
				return fmt.Sprintf("it in %q: %q", p.Where, p.Text)
			}
		}
	}
	if begins := slices.ContainsFunc(turn, func(m request) bool { return m.n == 0 }); times != 1 && !(begins && of.want == "") {
		return fmt.Sprintf("it %d times by %q: %q", times, of.query, result)
	}
	return ""
}

// isIn reports whether a passage is what the search of a request has to find.
func (of search) isIn(text string, s request) bool {
	if of.want == "" {
		return strings.HasPrefix(text, fmt.Sprintf("%d 0 %s ", s.who, askBegin))
	}
	return text == of.want
}

// mayRead reports whether the person of a request may read what another says to the bot: in the same channel of
// Slack or Discord.
func (s request) mayRead(who int) bool {
	kind := (s.who - firstPerson) % chatKinds
	return who == s.who || (kind == inSlackChannel || kind == inDiscordChannel) && (who-firstPerson)%chatKinds == kind && who%channelsEach == s.who%channelsEach
}

var (
	someMark    = regexp.MustCompile(`\b(\d{1,3})\.\d{1,3}\b`)
	someRequest = regexp.MustCompile(`(?m)^(\d{1,3}) \d{1,3} [a-z]+ `)
)

// marked returns the people whose requests a text tells of.
func marked(text string) (people []int) {
	for _, found := range slices.Concat(someMark.FindAllStringSubmatch(text, -1), someRequest.FindAllStringSubmatch(text, -1)) {
		who, err := strconv.Atoi(found[1])
		if err != nil {
			panic(err) // it is a short number
		}
		people = append(people, who)
	}
	return people
}

// checkRecalls checks that an answer to those who wanted something to be found says that it was found.
func (l *logAudit) checkRecalls(text string) {
	for _, n := range answersTo(platformText(text), l.said[0].who) {
		if n >= len(l.said) || !l.said[n].recalls() || strings.HasSuffix(text, " failed: see the log") {
			continue
		}
		m := l.said[n]
		if m.seen = unavailable; m.what == askRecall && strings.Contains(text, m.answer()) {
			l.unsearched++
			continue
		}
		if m.seen = foundIt; !strings.Contains(text, m.answer()) {
			l.addViolation("%s: the answer to %s is %q, want %q", l.key, m.mark(), text, m.answer())
			continue
		}
		l.recalled++
	}
}

// sampledChats is in how many chats something is searched for after a storm: a few of each kind.
const sampledChats = 2 * chatKinds

// findAgain asks, once the storm is over, for messages and answers of it, in some chats of each kind.
func (s *storm) findAgain(patience time.Duration) {
	s.T.Helper()
	random := rand.New(rand.NewPCG(s.seed, 996))
	asked := map[int]int{} // by chat, the number of the message
	for i := range s.chats {
		if len(asked) == sampledChats {
			break
		}
		answered := s.answeredAlone(i)
		if len(answered) == 0 {
			continue
		}
		m := answered[random.IntN(len(answered))]
		asked[i] = s.send(i, request{what: askFind, sought: m.n, soughtWhat: m.what})
	}
	if len(asked) == 0 {
		s.T.Error("no message has an answer of its own that could be found")
	}
	deadline := time.Now().Add(patience)
	for i, n := range asked {
		for s.answeredUpTo(i) <= n && !s.gaveUpLast(i) {
			if time.Now().After(deadline) {
				s.T.Errorf("%s does not say what it has found", s.chats[i].address())
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	s.awaitQuiet(patience)
}

// answeredAlone returns the messages of a chat, behind the first, that have an answer of their own, which says
// no more than that.
func (s *storm) answeredAlone(i int) (all []request) {
	sent := map[string]bool{}
	for _, m := range s.sentTo(s.chats[i].address()) {
		sent[m.text] = true
	}
	for _, m := range s.said[i][1:] {
		if answer := m.answer(); answer == "re "+m.mark() && sent[answer] {
			all = append(all, m)
		}
	}
	return all
}
