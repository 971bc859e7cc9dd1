package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/schedules"
	"parley/sessions/sqlstore"
)

// scheduleSettings allows schedules to be due as often as a test needs.
const scheduleSettings = `
[schedule]
least = "1s"
time_zone = "UTC"
`

// scheduleModel plays the scripted model. It makes the schedules that it is told to make, and says so.
func scheduleModel(r agenttest.Request) agenttest.Response {
	all := r.Messages()
	switch {
	case r.Rounds() > 0:
		return agenttest.Reply("scheduled")
	case strings.Contains(all[len(all)-1].Content, `" schedule="`):
		return agenttest.Reply("done").After(rand.N(200 * time.Millisecond))
	}
	return agenttest.Calls(agenttest.ToolCall{Name: "schedule", Args: fmt.Sprintf(`{"action":"add","when":%q,"text":"look"}`, r.Said())})
}

// TestFleetSaysEachSlotOnce runs three schedules in a fleet of five processes. Even if these, Redis and PostgreSQL
// fail, each slot of a schedule begins one turn, except the slots that people are told were missed.
func TestFleetSaysEachSlotOnce(t *testing.T) {
	t.Parallel()
	slotsThroughChaos(t, stormSeed, 50*time.Second, "every 3s", "every 7s", "every 11s")
}

func slotsThroughChaos(t *testing.T, seed uint64, during time.Duration, whens ...string) {
	f := newFleet(t, scheduleModel)
	for _, m := range []struct{ name, role string }{
		{"gateway-1", gateway}, {"worker-1", worker}, {"gateway-2", gateway}, {"worker-2", worker}, {"worker-3", worker},
	} {
		f.join(m.name, m.role)
	}
	s := newStorm(f, seed, 0, 0, time.Second)
	for i, when := range whens {
		person := int64(firstPerson + i)
		f.Telegram.Say(person, person, when)
		if said := f.WaitSaid(person, 1); said[0] != "scheduled" {
			t.Fatalf("the schedule %q: %q", when, said)
		}
	}
	s.armCrashpoints()
	s.points = map[string][]string{worker: {"schedule:begin", "schedule:begun", "schedule:said", "schedule:ended", "c1:before", "c1", "c6", "c7:published", "settled"}}
	over := make(chan struct{})
	var broken sync.WaitGroup
	for i, breaks := range []func(*storm, *rand.Rand, <-chan struct{}){breakMembers, breakMembers, breakServers} {
		broken.Go(func() { breaks(s, rand.New(rand.NewPCG(seed, uint64(i))), over) })
	}
	<-time.After(during)
	close(over)
	broken.Wait()
	s.disarmCrashpoints()
	calm := time.Now()

	store, err := sqlstore.Open(t.Context(), f.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var all []schedules.Schedule
	s.waitUntil(time.Minute, "the database", func() bool {
		all, err = store.Schedules().List(t.Context(), "")
		return err == nil
	})
	if len(all) != len(whens) {
		t.Fatalf("there are %+v", all)
	}
	for _, one := range all { // the fleet works again
		s.waitUntil(3*time.Minute, "schedule "+one.ID+" to be due again", func() bool {
			now, err := store.Schedules().Get(t.Context(), one.ID)
			if err != nil || !now.Slot.IsZero() || !now.Next.After(calm) {
				return false
			}
			begun, err := s.slotsIn(store, one, calm)
			return err == nil && len(begun) > 0
		})
	}
	for _, one := range all {
		s.waitUntil(time.Minute, "schedule "+one.ID+" to be removed", func() bool {
			err := store.Schedules().Remove(t.Context(), one.ID)
			return err == nil || errors.Is(err, schedules.ErrNone)
		})
	}
	s.waitUntil(3*time.Minute, "the bus to have nothing to do", func() bool { return len(leftovers(s.keys())) == 0 })
	for _, one := range all {
		_, person, _ := strings.Cut(one.Person, ":")
		chat, _ := strconv.ParseInt(person, 10, 64)
		s.auditSlots(store, one, parleytest.Texts(f.Telegram.Sent(chat)))
	}
	s.endAll()
	close(s.stopWaking)
	s.waking.Wait()
	t.Logf("seed %d: %v", seed, s.faults)
}

// waitUntil waits until holds returns true, and fails the test if that takes longer than patience.
func (s *storm) waitUntil(patience time.Duration, what string, holds func() bool) {
	s.T.Helper()
	for deadline := time.Now().Add(patience); !holds(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.T.Fatalf("waited in vain for %s", what)
		}
	}
}

// slotsIn counts how often each slot of a schedule since from has begun a turn.
func (s *storm) slotsIn(store *sqlstore.Store, of schedules.Schedule, from time.Time) (map[int64]int, error) {
	begun := map[int64]int{}
	for e, err := range store.Read(s.T.Context(), of.Session, 1) {
		if err != nil {
			return nil, err
		}
		slot, ok := strings.CutPrefix(e.Turn, "schedule:"+of.ID+":")
		if !ok || e.Kind != sessions.KindTurnStarted {
			continue
		}
		n, err := strconv.ParseInt(slot, 10, 64)
		if err != nil {
			return nil, err
		}
		if n >= from.Unix() {
			begun[n]++
		}
	}
	return begun, nil
}

// tellsMissed matches the message about missed slots, in the words of this release and of the previous one. Its groups
// include the times of the first missed slot and of the slot after the last.
var tellsMissed = regexp.MustCompile(`^Schedule (\w+) .* (?:was|has been) due (once|\d+ times) (?:from|since) (\S+ \S+ UTC)(?: on, when I could(?:n't| not) do it\. I(?:'m doing| do) now what|, but I couldn't run it\. I'm now doing the run that|, but I couldn't run it\. I'm running it once now,) (?:was due at|for) (\S+ \S+ UTC)\.$`)

// auditSlots checks that each slot of a schedule, up to the last one that ran, has begun one turn, or that people were
// told that it was missed.
func (s *storm) auditSlots(store *sqlstore.Store, of schedules.Schedule, told []string) {
	t := s.T
	t.Helper()
	when, err := schedules.Parse(of.When, time.UTC, of.MadeAt)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := s.slotsIn(store, of, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	missed := map[int64]int{}
	seen := map[string]bool{} // an interrupted send may be shown twice
	for _, text := range told {
		m := tellsMissed.FindStringSubmatch(text)
		if m == nil || m[1] != of.ID || seen[text] {
			continue
		}
		seen[text] = true
		n := 0
		for at := clockTime(t, m[3]); at.Before(clockTime(t, m[4])); at = when.Next(at) {
			missed[at.Unix()]++
			n++
		}
		if said := strings.TrimSuffix(strings.Replace(m[2], "once", "1", 1), " times"); said != strconv.Itoa(n) {
			t.Errorf("%q tells of %s, and there were %d", text, said, n)
		}
	}
	last := int64(0)
	for slot, turns := range begun {
		last = max(last, slot)
		if turns != 1 {
			t.Errorf("slot %d of %q began %d turns", slot, of.When, turns)
		}
	}
	expected := 0
	for at := when.Next(of.MadeAt); at.Unix() <= last; at = when.Next(at) {
		expected++
		if n := begun[at.Unix()] + missed[at.Unix()]; n != 1 {
			t.Errorf("slot %v of %q was done or told as missed %d times", at, of.When, n)
		}
		delete(begun, at.Unix())
	}
	for slot := range begun {
		t.Errorf("%q was said at %d, which is none of its slots", of.When, slot)
	}
	if expected == 0 {
		t.Errorf("%q was never due", of.When)
	}
	t.Logf("%q: %d slots, of which %d are told as missed", of.When, expected, len(missed))
}

func clockTime(t *testing.T, text string) time.Time {
	t.Helper()
	for _, form := range []string{"2006-01-02 15:04:05 MST", "2006-01-02 15:04 MST"} {
		if at, err := time.Parse(form, text); err == nil {
			return at
		}
	}
	t.Fatalf("%q is no time", text)
	return time.Time{}
}
