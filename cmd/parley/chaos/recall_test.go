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

// This file makes the agent search for earlier messages: during the storm for the first message of a chat, and
// afterwards for another message and its answer.

// recalls reports whether the request makes the agent search for something that was said.
func (s request) recalls() bool { return s.what == askRecall || s.what == askFind }

// These are the results of a search in an answer.
const (
	foundIt     = "it"
	unavailable = "nothing for now" // the store was away
)

// A search is a call of recall, and the passage that it must find.
type search struct {
	query string
	want  string // the text of the passage; "" for the request that began the chat
}

// searches returns the searches of a request.
func (s request) searches() []search {
	if s.what == askRecall {
		return []search{{query: fmt.Sprintf("%d.0 %s", s.who, askBegin)}}
	}
	m := request{who: s.who, n: s.sought, what: s.soughtWhat, here: s.here}
	return []search{{m.answer(), m.answer()}, {fmt.Sprintf("%d %d %s", m.who, m.n, m.what), m.text()}}
}

// searchAll returns the searches that the requests of a turn still need. If there are none, it stores what the model
// says about the results in each request. The searches are made last and all at once, because a process that resumes
// the turn does not get the earlier results.
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

// isNotKept reports whether a result says that it was shown only to a process that was killed. The model then has to
// search again.
func isNotKept(result string) bool { return strings.Contains(result, "is not kept; search again") }

// isUnsearchable reports whether a search failed because the store was away.
func isUnsearchable(result string) bool {
	return strings.Contains(result, "the conversations cannot be searched now")
}

// recalled returns what the model says about the results of a request's searches. turn contains the requests of the
// same turn.
func (s request) recalled(results []string, turn []request) string {
	for i, of := range s.searches() {
		if isUnsearchable(results[i]) {
			return unavailable
		}
		if wrong := s.wrongIn(results[i], of, turn); wrong != "" {
			return unreadable.ReplaceAllString(wrong, " ") // so that each platform shows it unchanged
		}
	}
	return foundIt
}

// unreadable matches characters that an answer must not contain, because they are markup, or because they separate
// answers.
var unreadable = regexp.MustCompile(`[^a-zA-Z0-9.,:]+`)

// wrongIn returns what is wrong with the result of a search, or "" if nothing is.
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
			continue // the passage begins with the request to which it belongs
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

// isIn reports whether a passage is the one that the search of a request must find.
func (of search) isIn(text string, s request) bool {
	if of.want == "" {
		return strings.HasPrefix(text, fmt.Sprintf("%d 0 %s ", s.who, askBegin))
	}
	return text == of.want
}

// mayRead reports whether the person of a request may read what another person says to the bot. People in the same
// channel of Slack or Discord may.
func (s request) mayRead(who int) bool {
	kind := (s.who - firstPerson) % chatKinds
	return who == s.who || (kind == inSlackChannel || kind == inDiscordChannel) && (who-firstPerson)%chatKinds == kind && who%channelsEach == s.who%channelsEach
}

var (
	someMark    = regexp.MustCompile(`\b(\d{1,3})\.\d{1,3}\b`)
	someRequest = regexp.MustCompile(`(?m)^(\d{1,3}) \d{1,3} [a-z]+ `)
)

// marked returns the people whose requests a text mentions.
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

// checkRecalls checks that an answer to people who asked for a search says that the passage was found.
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

// sampledChats is the number of chats in which the agent searches after a storm: a few of each kind.
const sampledChats = 2 * chatKinds

// findAgain asks for messages of the storm and their answers, in some chats of each kind. It runs after the storm.
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

// answeredAlone returns the messages of a chat, except the first, that have a short answer for themselves alone.
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
