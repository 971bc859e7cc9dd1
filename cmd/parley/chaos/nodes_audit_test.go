package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"parley/sessions"
	"parley/sessions/sqlstore"
	"parley/tools"
	"parley/tools/nodes"
)

// A nodeAudit compares what nodes have done with the rows of their calls and with the sessions' logs.
type nodeAudit struct {
	*nodeStorm
	runs map[string][]string      // by mark, the nodes on which it ran, once for each run
	rows map[string]nodeRow       // the row of each call, by mark
	ends map[nodes.Status]int     // numbers of rows with each status
	said map[string]int           // by code, the number of results in logs
	seen map[string]*nodeCallSeen // the calls in logs, by mark

	reads, unread, again int // calls of read_file that succeeded, that failed, and that ran again
	size                 int64
	waits                int // how often a turn waited for nodes
}

// A nodeRow is a row of node_calls.
type nodeRow struct {
	node    string
	ended   bool
	outcome nodes.Outcome
}

// A nodeCallSeen is a call in a log.
type nodeCallSeen struct {
	mark, turn string // mark is "" for a call of read_file
	result     *sessions.ToolResult
}

var nodeMark = regexp.MustCompile(`echo (m\d+\.\d+\.\d+) `)

// String returns the figures of the audit in one line.
func (a *nodeAudit) String() string {
	ran := 0
	for _, on := range a.runs {
		ran += len(on)
	}
	return fmt.Sprintf("%d calls of commands, of which %d were given to nodes and %d ran; outcomes %v; logs say %v; %d reads, %d not, %d again; %d waits for nodes; the largest journal has %d bytes",
		len(a.seen), len(a.rows), ran, a.ends, a.said, a.reads, a.unread, a.again, a.waits, a.size)
}

// audit checks the devices, the rows and the logs.
func (a *nodeAudit) audit(people int) {
	t := a.T
	t.Helper()
	a.runs, a.rows, a.seen, a.ends, a.said = map[string][]string{}, map[string]nodeRow{}, map[string]*nodeCallSeen{}, map[nodes.Status]int{}, map[string]int{}
	a.readDevices()
	a.readRows()
	store := a.openStore()
	for i := range people {
		a.readLog(store, fmt.Sprintf("main:telegram:%d", firstPerson+i))
	}
	for mark, on := range a.runs {
		switch row, given := a.rows[mark]; {
		case len(on) > 1:
			t.Errorf("%s ran %d times, on %v", mark, len(on), on)
		case !given:
			t.Errorf("%s ran on %s, and no row says that it was given", mark, on[0])
		case row.node != on[0]:
			t.Errorf("%s was given to %s, and ran on %s", mark, row.node, on[0])
		case row.outcome.Status == nodes.NotRun:
			t.Errorf("%s ran on %s, and its row says that it did not: %v", mark, on[0], row.outcome.Error)
		}
	}
	for mark, row := range a.rows {
		a.ends[row.outcome.Status]++
		if !row.ended {
			t.Errorf("%s, which was given to %s, is open", mark, row.node)
		}
		if row.outcome.Status == nodes.Done && len(a.runs[mark]) != 1 {
			t.Errorf("%s ran %d times, and its row says that it did: %s", mark, len(a.runs[mark]), row.outcome.Content)
		}
		if a.seen[mark] == nil {
			t.Errorf("%s was given to %s, and no log has it", mark, row.node)
		}
	}
	if many := 1000; a.waits == 0 && len(a.seen) > many {
		t.Error("no turn has waited for a node")
	}
	if left := a.query("SELECT count(*) FROM node_waits"); left[0] != "0" {
		t.Errorf("%s waits are left", left[0])
	}
	if a.ends[nodes.Done] == 0 || a.reads == 0 {
		t.Error("no call has come to its end: the test has not seen what it is for")
	}
}

// readDevices reads which commands have run on the devices, and checks the devices' journals.
func (a *nodeAudit) readDevices() {
	t := a.T
	t.Helper()
	for _, m := range a.devices {
		raw, err := os.ReadFile(filepath.Join(m.home(), "workspace", ranFile))
		if err != nil {
			t.Error(err)
		}
		newest := map[string]int{} // by person, the number of the message whose call ran last
		for mark := range strings.FieldsSeq(string(raw)) {
			a.runs[mark] = append(a.runs[mark], m.name)
			parts := strings.Split(mark, ".") // mPERSON.NUMBER.INDEX; the calls of one message run side by side
			number, err := strconv.Atoi(parts[1])
			if err != nil || number < newest[parts[0]] {
				t.Errorf("%s ran on %s after a call of message %d: %v", mark, m.name, newest[parts[0]], err)
			}
			newest[parts[0]] = number
		}
		j := readJournal(t, m)
		for id, n := range j.begun {
			a.again += n - 1
			if n > 1 && !j.pure[id] {
				t.Errorf("the journal of %s has %d beginnings of call %s, which may change something", m.name, n, id)
			}
		}
		if left := j.waiting(); len(left) > 0 {
			t.Errorf("the journal of %s has calls that are not acknowledged: %v", m.name, left)
		}
		// The device rewrites a journal above 256 KiB, and then keeps the calls of a day.
		if most := int64(512<<10 + 200*len(j.stages)); j.size > most {
			t.Errorf("the journal of %s has %d bytes, want %d at most", m.name, j.size, most)
		}
		a.size = max(a.size, j.size)
	}
}

// readRows reads which calls were given to nodes.
func (a *nodeAudit) readRows() {
	t := a.T
	t.Helper()
	for _, row := range a.query("SELECT node, tool, ended, args, outcome FROM node_calls") {
		f := strings.SplitN(row, " ", 4)
		in := json.NewDecoder(strings.NewReader(f[3]))
		var args struct{ Command string }
		r := nodeRow{node: f[0], ended: f[2] != "0"}
		if err := errors.Join(in.Decode(&args), in.Decode(&r.outcome)); err != nil {
			t.Errorf("a row of node_calls is %s: %v", row, err)
			continue
		}
		if f[1] != "exec_shell" {
			if r.outcome.Status == nodes.Unknown {
				t.Errorf("a call that changes nothing has an unknown outcome: %s", row)
			}
			continue
		}
		mark := nodeMark.FindStringSubmatch(args.Command + " ")
		if mark == nil {
			t.Errorf("a row of node_calls has no mark: %s", row)
			continue
		}
		if _, again := a.rows[mark[1]]; again {
			t.Errorf("%s was given twice", mark[1])
		}
		a.rows[mark[1]] = r
	}
}

// readLog checks a session's log entries about calls.
func (a *nodeAudit) readLog(store *sqlstore.Store, session string) {
	t := a.T
	t.Helper()
	calls, states := map[string]*nodeCallSeen{}, map[string]string{}
	for e, err := range store.Read(t.Context(), session, 1) {
		if err != nil {
			t.Fatalf("read the log of %s: %v", session, err)
		}
		switch e.Kind {
		case sessions.KindTurnStarted:
			states[e.Turn] = "open"
		case sessions.KindTurnDone:
			done, err := sessions.Decode[sessions.TurnDone](e)
			if err != nil {
				t.Fatal(err)
			}
			states[e.Turn] = done.State
		case sessions.KindTurnParked:
			parked, err := sessions.Decode[sessions.TurnParked](e)
			if err != nil {
				t.Fatal(err)
			}
			for _, ask := range parked.Asks {
				if ask.Kind == sessions.AskNode {
					a.waits++
				}
			}
		case sessions.KindToolUse:
			use, err := sessions.Decode[sessions.ToolUse](e)
			if err != nil {
				t.Fatal(err)
			}
			c := &nodeCallSeen{turn: e.Turn}
			if mark := nodeMark.FindSubmatch(use.Args); mark != nil {
				c.mark = string(mark[1])
			}
			calls[e.Turn+" "+e.Call] = c
		case sessions.KindToolResult:
			result, err := sessions.Decode[sessions.ToolResult](e)
			if err != nil {
				t.Fatal(err)
			}
			if c := calls[e.Turn+" "+e.Call]; c != nil {
				c.result = &result
			}
		}
	}
	for turn, state := range states {
		if state == "open" {
			t.Errorf("turn %s of %s is open", turn, session)
		}
	}
	for _, c := range calls {
		a.checkCall(c, states[c.turn])
	}
}

// checkCall compares the result of a call in a log with what has happened.
func (a *nodeAudit) checkCall(c *nodeCallSeen, state string) {
	t := a.T
	t.Helper()
	if c.result == nil {
		if state == sessions.TurnCompleted {
			t.Errorf("call %q of turn %s has no result", c.mark, c.turn)
		}
		if c.mark != "" {
			a.seen[c.mark] = c
		}
		return
	}
	code := tools.Code(c.result.Code)
	if c.mark == "" {
		a.checkRead(c, code, state)
		return
	}
	a.said[c.result.Code]++
	if a.seen[c.mark] != nil {
		t.Errorf("%s was asked for twice", c.mark)
	}
	a.seen[c.mark] = c
	row, given := a.rows[c.mark]
	ran := len(a.runs[c.mark])
	says := fmt.Sprintf("%s, which ran %d times, and whose row is %v %+v, has the result %q %s", c.mark, ran, given, row.outcome, code, c.result.Content)
	switch {
	case code == "" && (row.outcome.Status != nodes.Done || ran != 1 || !bytes.Contains(c.result.Content, []byte(`exit_code":0`))):
		t.Errorf("it is no success: %s", says)
	case code == tools.NodeAway && ran > 0:
		t.Errorf("it ran: %s", says)
	case code == "", state != sessions.TurnCompleted:
		// A stopped turn does not know how its last calls ended.
	case !given && (code == tools.OutcomeUnknown || code == tools.Cancelled):
		t.Errorf("it was never given: %s", says)
	case given && (row.outcome.Error == nil || row.outcome.Error.Code != code):
		t.Errorf("the node has said otherwise: %s", says)
	}
}

// checkRead checks the result of a call that changes nothing.
func (a *nodeAudit) checkRead(c *nodeCallSeen, code tools.Code, state string) {
	switch {
	case code == "" && bytes.Contains(c.result.Content, []byte(knownText)):
		a.reads++
	case code == "", code == tools.OutcomeUnknown:
		a.T.Errorf("a call that changes nothing has the result %q %s", code, c.result.Content)
	default:
		a.unread++
	}
}

// A journalSeen contains what a device's journal says.
type journalSeen struct {
	stages map[string]string // by call, its last stage
	begun  map[string]int
	pure   map[string]bool
	size   int64
}

// waiting returns the calls that are not acknowledged.
func (j *journalSeen) waiting() (ids []string) {
	for id, stage := range j.stages {
		if stage != "acknowledged" {
			ids = append(ids, id+" "+stage)
		}
	}
	return ids
}

// readJournal reads a device's journal.
func readJournal(t *testing.T, m *member) *journalSeen {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.home(), "journal", "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	j := &journalSeen{stages: map[string]string{}, begun: map[string]int{}, pure: map[string]bool{}, size: int64(len(raw))}
	for line := range bytes.Lines(raw) {
		var r struct {
			Started, Ended, Acknowledged string
			Pure                         bool
		}
		if err := json.Unmarshal(line, &r); err != nil {
			continue // the line is being written, or was cut off
		}
		switch {
		case r.Started != "":
			j.stages[r.Started], j.pure[r.Started] = "started", r.Pure
			j.begun[r.Started]++
		case r.Ended != "":
			j.stages[r.Ended] = "ended"
		default:
			j.stages[r.Acknowledged] = "acknowledged"
		}
	}
	return j
}
