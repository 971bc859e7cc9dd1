package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/workspace"
)

// An audit compares the state that a storm has left on the platforms, in the logs, on disk, in the book and in Redis
// with what people said.
type audit struct {
	storm      *storm
	violations []string

	messages, turns, calls int
	told                   int                            // messages that agents sent to the shared chats
	repeats                int                            // messages that a platform shows more often than they were sent
	interrupted            int                            // sends of which nobody knows whether they arrived
	resumed, givenUp       int                            // numbers of turns
	cutOff                 int                            // how often a turn was resumed that nobody had suspended
	rerun                  int                            // calls that were started again
	buried                 int                            // messages of turns that were given up
	mayBeBuried            int                            // messages of turns that were given up after they had waited
	interruptedBy          map[string]int                 // how often each send was interrupted
	unrecorded             map[string]bool                // turns whose logs do not say that their replies are published
	givenUpIn              map[string]int                 // messages of turns that were given up, by address
	expected               map[string]map[string][]string // sends by address and text
	lostDrafts             map[string]int                 // by address, drafts that may or may not have been posted
	lostDraftOf            map[string]bool                // by turn, whether its draft may or may not have been posted
	leftDrafts             int                            // how many of these drafts a platform still shows
	withdrawn              int                            // drafts that nothing could replace
	maybe                  map[string]bool                // texts that may have been sent, by address
	made                   map[string]int                 // by call, how often the once tool was called
	onceCalls, unknown     int                            // calls of the once tool, and those of them with an unknown outcome
	incomparable           int                            // approved calls that an older process could not compare
	twice                  []string                       // descriptions of the repeats
	approved, denied       int                            // numbers of calls that people approved and denied
	replied, expired       int                            // answered questions, and asks that nobody answered
	unasked                int                            // calls that needed an approval when nobody could be asked
	book                   map[string]string              // by ask that is in no log so far, how it ended
	shown                  map[string][]shownAsk          // asks that must be shown, by address
	seenFiles, sentFiles   int                            // files that answers mention, and files that agents sent
	unsent, unfetched      int                            // files that could not be sent, or not be fetched
	recalled, unsearched   int                            // successful searches, and searches while the store was away
	recordings, unread     int                            // answers that were read aloud, and answers that could not be
	swept                  int                            // references to files of interrupted calls, which had to be removed
	mayLeave               map[string]bool                // sends that may have left copies of their files
	readings               map[string][]reading           // recordings that must be sent, by address
	late                   int                            // calls that were refused because they came too late, and made again
	slowest                time.Duration
	slowestOf              string
	endedByThemselves      int // processes that ended although the test had not told them to
}

// audit ends the fleet in good order and then checks everything that it has left.
func (s *storm) audit() *audit {
	s.T.Helper()
	a := &audit{storm: s, readings: map[string][]reading{}, expected: map[string]map[string][]string{}, made: s.once.calls(), lostDrafts: map[string]int{}, lostDraftOf: map[string]bool{}, maybe: map[string]bool{}, mayLeave: map[string]bool{}, givenUpIn: map[string]int{}, shown: map[string][]shownAsk{}}
	a.findSlowestAnswer()
	s.endAll()
	close(s.stopWaking)
	s.waking.Wait()
	dead := int64(0)
	for _, k := range s.busKeys() {
		key := k.short()
		kind, _, _ := strings.Cut(key, ":")
		if key == "dead:inbound" {
			dead += k.client.HLen(s.T.Context(), k.name).Val()
		}
		lives := k.client.PTTL(s.T.Context(), k.name).Val()
		if len(leftovers([]string{key})) > 0 || slices.Contains(shortLived(), kind) && lives < 0 {
			a.addViolation("Redis still has %s, for %v", key, lives)
		}
	}
	a.readBook()
	a.readAsks()
	a.readLogs()
	for id, state := range a.book {
		a.addViolation("the book has ask %s, which is %s, and no log has it", id, state)
	}
	if dead < int64(a.buried) || dead > int64(a.buried+a.mayBeBuried) {
		a.addViolation("%d messages are dead letters, and the turns that were given up had %d to %d", dead, a.buried, a.buried+a.mayBeBuried)
	}
	a.readPlatform()
	a.checkOutgoing()
	a.endedByThemselves = len(s.unexpected)
	return a
}

// addViolation records that a promise was broken.
func (a *audit) addViolation(format string, args ...any) {
	a.violations = append(a.violations, fmt.Sprintf(format, args...))
}

// String returns the figures of the run in one line.
func (a *audit) String() string {
	s := a.storm
	var faults []string
	for _, what := range slices.Sorted(maps.Keys(s.faults)) {
		faults = append(faults, fmt.Sprintf("%s ×%d", what, s.faults[what]))
	}
	return fmt.Sprintf("seed %d: %d messages in %d sessions, %d turns, %d calls, %d messages told elsewhere, %d searches found what was said and %d came while the store was away, %d answers read aloud and %d not, said aloud, %d files seen, %d sent, %d not sent and %d not fetched, said aloud, %d of cut off calls swept up; %s; %d turns resumed, %d calls begun again, %d turns given up aloud, "+
		"%d calls approved and %d of them refused by the release before, %d denied, %d questions answered, %d asks expired, %d of 4 chats seen to wait unheld, %d could not be asked, %d calls too late and made again, %d of %d calls of effect once of unknown outcome, %d sends interrupted, %d of them seen twice, %d drafts left over, %d withdrawn; slowest answer %v (%s); %v in all; %d processes ended by themselves; %d violations",
		s.seed, a.messages, len(s.chats), a.turns, a.calls, a.told, a.recalled, a.unsearched, a.recordings, a.unread, a.seenFiles, a.sentFiles, a.unsent, a.unfetched, a.swept, strings.Join(faults, ", "), a.resumed, a.rerun, a.givenUp,
		a.approved, a.incomparable, a.denied, a.replied, a.expired, len(s.unheld), a.unasked, a.late, a.unknown, a.onceCalls, a.interrupted, a.repeats, a.leftDrafts, a.withdrawn, a.slowest.Round(time.Millisecond), a.slowestOf, s.took.Round(time.Second), a.endedByThemselves, len(a.violations))
}

// leftovers returns the keys that an idle bus should not have. An idle bus may have ids that it knows, fences and other
// numbers that only grow, names of topics, dead letters, and keys that expire.
func leftovers(keys []string) []string {
	kept := append(shortLived(), "seen", "clock", "contact", "topics", "wake", "dead", "graves", "shards")
	return slices.DeleteFunc(keys, func(key string) bool {
		kind, _, _ := strings.Cut(key, ":")
		return slices.Contains(kept, kind)
	})
}

// shortLived returns the kinds of keys that must expire by themselves. A nudge, which ends a process's blocking call,
// stays for some seconds if the call had already ended.
func shortLived() []string {
	return []string{"events", "hold", "waiting", "nudge", "working", "begun", "counted", "last"}
}

// findSlowestAnswer finds the answer that took longest.
func (a *audit) findSlowestAnswer() {
	for i, all := range a.storm.said {
		answers := map[int]time.Time{}
		for _, m := range a.storm.sentTo(a.storm.chats[i].address()) {
			for _, n := range answersTo(m.text, a.storm.chats[i].who) {
				if _, again := answers[n]; !again {
					answers[n] = m.at
				}
			}
		}
		for _, m := range all {
			if at, ok := answers[m.n]; ok && at.Sub(m.at) > a.slowest {
				a.slowest, a.slowestOf = at.Sub(m.at), m.mark()
			}
		}
	}
}

// readBook checks that the book and the store contain nothing unsent or unfinished, and reads which sends were
// interrupted.
func (a *audit) readBook() {
	a.interruptedBy, a.unrecorded = map[string]int{}, map[string]bool{}
	for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(), "SELECT send, sum(interrupted) FROM parts GROUP BY send") {
		send, n, _ := strings.Cut(row, " ")
		a.interruptedBy[send], _ = strconv.Atoi(n)
		a.interrupted += a.interruptedBy[send]
	}
	// A request for approval that expired before it was sent, or before the book knew that it was sent, is not sent
	// again.
	for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(), "SELECT send, part, state, code FROM parts WHERE state <> 'sent' AND send NOT LIKE '%#draft' AND NOT (send LIKE '%#ask/%' AND (code = 'expired' OR state = 'unknown'))") {
		a.addViolation("the book has a part that was not sent: %s", row)
	}
	a.readDrafts()
	for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(), "SELECT key, unfinished FROM sessions WHERE unfinished NOT IN ('', '[]', 'null')") {
		a.readUnfinished(row)
	}
}

// readUnfinished checks the turns of a session that the store lists as unfinished. Only the last one may have ended
// with a published reply, if its worker was killed before it wrote that to the log; the next turn of the session finds
// out.
func (a *audit) readUnfinished(row string) {
	_, list, _ := strings.Cut(row, " ")
	var turns []struct {
		Turn string
		Done bool
	}
	if err := json.Unmarshal([]byte(list), &turns); err != nil || len(turns) != 1 || !turns[0].Done {
		a.addViolation("the store has a turn that is not finished: %s, %v", row, err)
		return
	}
	a.unrecorded[turns[0].Turn] = true
}

// readDrafts checks the drafts in the book. A draft may be left if nobody knows whether it was posted, and the book may
// still contain a draft that was never posted.
func (a *audit) readDrafts() {
	for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(), `SELECT s.channel, s.chat, s.thread, p.state, p.send, p.changed
		FROM parts p JOIN sends s ON s.id = p.send WHERE p.send LIKE '%#draft' AND (p.state = 'draft' AND p.platform_id <> '' OR p.state = 'unknown')`) {
		f := strings.Split(row, " ")
		at := bus.Address{Channel: f[0], Chat: f[1], Thread: f[2]}
		if f[3] == channels.Drafted {
			a.addViolation("the book has a draft in %s that was not replaced: %s", at, row)
		}
		a.lostDrafts[at.String()]++
		a.lostDraftOf[strings.TrimSuffix(f[4], "#draft")] = true
	}
}

// readLogs compares each session's log with what was said in the session.
func (a *audit) readLogs() {
	t := a.storm.T
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
	for i, said := range a.storm.said {
		p := a.storm.chats[i]
		key, err := sessions.Key("main", p.at.Channel, p.at.Chat, p.at.Thread)
		if err != nil {
			t.Fatal(err)
		}
		l := newLogAudit(a, key, p, said)
		for e, err := range store.Read(t.Context(), key, 1) {
			if errors.Is(err, sessions.ErrNotFound) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			l.addEntry(e)
		}
		l.finish()
		dir, err := spaces.Open(key)
		if err != nil {
			t.Fatal(err)
		}
		l.checkFiles(dir)
	}
	a.readTold(store)
	for call, times := range a.made {
		a.addViolation("the once tool was called %d times by %q, which no log has", times, call)
	}
}

// readTold checks that a message that an agent sent to another chat is known there: it is exactly once in the session
// that gets the replies. On Slack, that is the session of the thread below the message.
func (a *audit) readTold(store *sqlstore.Store) {
	knows := map[string]map[string]int{} // by session and cause
	want := map[string]map[string]bool{}
	for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(),
		"SELECT s.channel, s.chat, p.platform_id, s.id FROM sends s JOIN parts p ON p.send = s.id WHERE p.part = 0 AND s.chat IN ('990', 'C990')") {
		f := strings.Split(row, " ")
		at := bus.Address{Channel: f[0], Chat: f[1]}
		if at.Channel == "slack" {
			at.Thread = f[2]
		}
		key, err := sessions.Key("main", at.Channel, at.Chat, at.Thread)
		if err != nil {
			a.storm.T.Fatal(err)
		}
		if want[key] == nil {
			want[key], knows[key] = map[string]bool{}, map[string]int{}
		}
		want[key][f[3]+"#told"] = true
		a.told++
	}
	for key, causes := range want {
		for e, err := range store.Read(a.storm.T.Context(), key, 1) {
			if errors.Is(err, sessions.ErrNotFound) {
				break
			}
			if err != nil {
				a.storm.T.Fatal(err)
			}
			if knows[key][e.Cause]++; e.Kind != sessions.KindNotice || !causes[e.Cause] {
				a.addViolation("%s has an entry %s of %s, where something was told and nobody spoke", key, e.Kind, e.Cause)
			}
		}
		for cause := range causes {
			if n := knows[key][cause]; n != 1 {
				a.addViolation("%s has %d entries of %s, want one", key, n, cause)
			}
		}
	}
}

// expectText records that a text must be shown at an address, and the id of its send.
func (a *audit) expectText(address, text, send string) {
	if a.expected[address] == nil {
		a.expected[address] = map[string][]string{}
	}
	a.expected[address][text] = append(a.expected[address][text], send)
}

// withdrawnDraft is the text of a draft that could not be replaced. The final text is in a message below it.
const withdrawnDraft = "(The answer is below.)"

// readPlatform compares the messages that people got with what the logs say.
func (a *audit) readPlatform() {
	for address, texts := range a.expected {
		sent := map[string]int{}
		shown := a.storm.sentTo(address)
		for i, m := range shown {
			sent[m.text]++
			switch {
			case texts[m.text] != nil:
			case strings.Contains(m.text, withdrawnDraft) && i < len(shown)-1:
				a.withdrawn++
			case a.maybe[address+" "+m.text], a.isReading(address, m.text):
			case a.isAboutAsk(address, m.text):
			case a.lostDrafts[address] > 0:
				a.lostDrafts[address]--
				a.leftDrafts++
				a.storm.T.Logf("a draft was left over in %s: %q", address, m.text)
			default:
				a.addViolation("%s was sent %q, which nobody said", address, m.text)
			}
		}
		for text, sends := range texts {
			allowed := len(sends)
			for _, id := range sends {
				allowed += a.interruptedBy[id]
				if turn, _, _ := strings.Cut(id, "#"); a.lostDraftOf[turn] && sent[text] > allowed {
					allowed++ // the draft that was left over shows the whole answer
					a.leftDrafts++
				}
			}
			if more := sent[text] - len(sends); more > 0 {
				a.repeats += more
				a.twice = append(a.twice, fmt.Sprintf("%q to %s, %d too often", text, address, more))
			}
			if n := sent[text]; n < len(sends) || n > allowed {
				a.addViolation("%s was sent %q %d times, want %d to %d (%v): %s", address, text, n, len(sends), allowed, sends, a.detailsOf(shown, text, sends))
			}
		}
	}
	a.checkReadings()
	a.checkShown()
	a.findUnanswered()
}

// detailsOf returns what the platform and the book know about a text: the messages that show it, and the parts and
// drafts of its sends.
func (a *audit) detailsOf(shown []delivered, text string, sends []string) string {
	var details []string
	for _, m := range shown {
		if m.text == text {
			details = append(details, fmt.Sprintf("shown since %s (%s)", m.at.UTC().Format(time.RFC3339Nano), m.details))
		}
	}
	for _, id := range sends {
		turn, _, _ := strings.Cut(id, "#")
		for _, row := range sqldbtest.Query(a.storm.T, "pgx", a.storm.pg.URL(), fmt.Sprintf(
			"SELECT send, part, state, code, platform_id, interrupted, changed FROM parts WHERE send IN ('%s', '%s#draft')", id, turn)) {
			details = append(details, "the book has "+row)
		}
	}
	return strings.Join(details, "; ")
}

// findUnanswered checks that each message has its answer, in order, unless its turn was given up.
func (a *audit) findUnanswered() {
	for i, p := range a.storm.chats {
		a.checkOrder(p)
		answered := map[int]bool{}
		for text := range a.expected[p.address()] {
			if !strings.HasSuffix(text, " failed: see the log") {
				for _, n := range answersTo(text, p.who) {
					answered[n] = true
				}
			}
		}
		var unanswered []string
		for _, m := range a.storm.said[i] {
			if !answered[m.n] {
				unanswered = append(unanswered, m.mark())
			}
		}
		// The model sees the messages of a turn that was given up, and may answer them in a later turn.
		if len(unanswered) > a.givenUpIn[p.address()] {
			a.addViolation("messages %v have no answer, and the turns that were given up had %d", unanswered, a.givenUpIn[p.address()])
		}
	}
}

// checkOrder checks that the answers in a chat are in the order of the messages.
func (a *audit) checkOrder(p *chat) {
	last, seen := -1, map[int]bool{}
	for _, m := range a.storm.sentTo(p.address()) {
		for _, n := range answersTo(m.text, p.who) {
			if seen[n] {
				continue
			}
			if n <= last {
				a.addViolation("%s was sent the answer to %d after that to %d", p.address(), n, last)
			}
			last, seen[n] = n, true
		}
	}
}
