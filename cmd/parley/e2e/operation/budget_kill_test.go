package operation

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal/report"
	"parley/sessions/bill"
)

// A killedModel gives two answers in each of the first three lives of a server, and then leaves all requests without an
// answer, until it is told to answer all. In the fourth life, it first answers only the messages that it has left in
// all three lives, because a turn that is interrupted once more is given up.
type killedModel struct {
	mu                       sync.Mutex
	lives, answered, waiting int
	left                     map[string]int // by message: how often it got no answer
	all                      bool
}

func (m *killedModel) answer(r agenttest.Request) agenttest.Response {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all || m.left[r.Said()] == 3 || m.lives < 3 && m.answered < 2 {
		m.answered++
		return agenttest.Reply("fine")
	}
	m.waiting++
	m.left[r.Said()]++
	return agenttest.Reply("never").WaitFor(make(chan struct{}))
}

func (m *killedModel) begin(all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives, m.answered, m.waiting, m.all = m.lives+1, 0, 0, all
}

func (m *killedModel) isLeft(turns int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting >= turns
}

// Money that turns of killed servers had reserved makes the bot refuse nobody. With an expensive model and the default
// caps, the bot answers all twelve messages of one person through four kills, each with three turns that wait for the
// model. The reserved money is visible.
func TestTwelveMessagesAreAnsweredThroughFourKills(t *testing.T) {
	t.Parallel()
	model := &killedModel{left: map[string]int{}}
	w := priced(t, model.answer, "")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	dear := strings.NewReplacer("price_input = 1.0\n", "price_input = 5\n", "price_output = 2\n", "price_output = 25\n").Replace(string(text))
	parleytest.Must(t, os.WriteFile(w.File, []byte(dear), 0o600))
	standing := func() (all bill.CapState) {
		t.Helper()
		out, errs, code := w.Run("--json", "usage")
		var r report.Usage
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
			t.Fatalf("%d %s %s", code, out, errs)
		}
		for _, c := range r.Caps {
			if c.Setting == "[budget] day" {
				return c
			}
		}
		t.Fatalf("no cap on all in %s", out)
		return all
	}
	const messages, person = 12, 2
	for life := range 4 {
		serving := w.Serve()
		if life == 0 {
			for n := range messages {
				w.Telegram.Say(int64(-100-n), person, fmt.Sprint("@parleybot hello ", n))
			}
		}
		parleytest.WaitFor(t, "three turns to be at the model", func() bool { return model.isLeft(3) })
		// The server settles money that turns of its earlier life have reserved within a minute, if nobody has resumed
		// these turns.
		c, began := standing(), time.Now()
		for c.Reserved > 3*250_000 && time.Since(began) < 2*parleytest.Patience { // a busy machine may take longer
			<-time.After(100 * time.Millisecond)
			c = standing()
		}
		if c.Reserved < 3*4096*25 || c.Reserved > 3*250_000 { // the calls that were interrupted in each life count, each at its highest possible cost
			t.Errorf("life %d: %+v", life, c)
		}
		if out, _, _ := w.Run("usage"); !strings.Contains(out, "SET ASIDE") || !strings.Contains(out, "person:telegram:2") {
			t.Errorf("usage says\n%s", out)
		}
		serving.Kill()
		model.begin(life == 3)
	}
	serving := w.Serve()
	for n := range messages {
		if said := w.WaitSaid(int64(-100-n), 1); said[0] != "fine" {
			t.Errorf("chat %d is told %q", n, said)
		}
	}
	parleytest.WaitFor(t, "all to be settled", func() bool { return standing().Reserved == 0 })
	if c := standing(); c.Spent == 0 || c.Spent > 2_000_000 {
		t.Errorf("at the end %+v", c)
	}
	serving.Stop()
}

// If nobody resumes a turn that had reserved money, the running server settles the reservation as the known cost of the
// turn's call.
func TestWhatNobodyResumesIsSettled(t *testing.T) {
	t.Parallel()
	w := priced(t, agenttest.Always(agenttest.Reply("fine")), "")
	serving := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	serving.Stop()
	before := w.Count("sessions.db", "SELECT sum(micro) FROM counters WHERE subject = '' AND length(period) = 10")
	file, err := sql.Open("sqlite", "file:"+filepath.Join(w.Home, "sessions.db"))
	parleytest.Must(t, err)
	_, err = file.ExecContext(t.Context(), `INSERT INTO charges (id, day, shard, micro, session, used, sent, counters, until)
		SELECT 'gone#1.1.0', period, shard, 100000, 'main:telegram:9', 100, 200, json_array(json_object('period', period, 'subject', '')), 1
		FROM counters WHERE subject = '' AND length(period) = 10`)
	parleytest.Must(t, err)
	_, err = file.ExecContext(t.Context(), "UPDATE counters SET micro = micro + 100000 WHERE subject = '' AND length(period) = 10")
	parleytest.Must(t, err)
	parleytest.Must(t, file.Close())
	serving = w.Serve()
	parleytest.WaitFor(t, "it to be settled", func() bool {
		return w.Count("sessions.db", "SELECT sum(micro) FROM counters WHERE subject = '' AND length(period) = 10") == before+300
	})
	if n := w.Count("sessions.db", "SELECT count(*) FROM charges WHERE abandoned"); n != 1 {
		t.Errorf("%d reservations can still be corrected", n)
	}
	serving.Stop()
}
