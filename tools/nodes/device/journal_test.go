package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/tools/nodes"
)

func openTestJournal(t *testing.T, dir string) *journal {
	t.Helper()
	j, err := openJournal(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return j
}

func doneOutcome(text string) nodes.Outcome {
	return nodes.Outcome{Status: nodes.Done, Content: json.RawMessage(`"` + text + `"`)}
}

// must fails the test if one of the writes has failed.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (j *journal) want(t *testing.T, id string, want stage) {
	t.Helper()
	if got, _ := j.stageOf(id); got != want {
		t.Errorf("the call %s is at stage %d, want %d", id, got, want)
	}
}

func TestJournalRemembersEachStage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir)
	must(t, j.start("running", false), j.start("pure", true), j.start("over", false), j.end("over", doneOutcome("<1>")), j.end("not run", doneOutcome("2")))
	must(t, j.start("told", false), j.end("told", doneOutcome("3")), j.acknowledge("told"), j.acknowledge("never heard of"), j.acknowledge("running"))
	for range 2 {
		j.want(t, "running", stageStarted)
		j.want(t, "pure", stageStarted)
		j.want(t, "over", stageEnded)
		j.want(t, "told", stageAcknowledged)
		j.want(t, "never heard of", stageUnknown)
		if _, pure := j.stageOf("pure"); !pure {
			t.Error("it has forgotten that a call is pure")
		}
		if out, ok, err := j.outcome("over"); err != nil || !ok || string(out.Content) != `"<1>"` {
			t.Errorf("the outcome is %s, %v, %v", out.Content, ok, err)
		}
		if _, ok, err := j.outcome("told"); err != nil || ok {
			t.Errorf("it keeps what was acknowledged: %v, %v", ok, err)
		}
		if left := j.unacknowledged(); !slices.Equal(left, []string{"over", "not run"}) {
			t.Errorf("unacknowledged are %q", left)
		}
		must(t, j.close())
		j = openTestJournal(t, dir)
	}
}

func TestJournalIgnoresATornLine(t *testing.T) {
	t.Parallel()
	for name, torn := range map[string]string{
		"half a line":              `{"at":1,"started":"to`,
		"a line without its end":   `{"at":1,"started":"torn"}`,
		"zeros":                    strings.Repeat("\x00", 4096),
		"half a line with its end": "{\"at\":1,\"started\":\"to\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			j := openTestJournal(t, dir)
			must(t, j.start("1", false), j.close())
			path := filepath.Join(dir, journalFile)
			raw, err := os.ReadFile(path)
			must(t, err, os.WriteFile(path, append(raw, torn...), 0o600))
			j = openTestJournal(t, dir)
			j.want(t, "1", stageStarted)
			j.want(t, "torn", stageUnknown)
			must(t, j.end("1", doneOutcome("x")), j.close())
			j = openTestJournal(t, dir) // nothing of the torn line is left before the new one
			j.want(t, "1", stageEnded)
		})
	}
}

func TestJournalThatIsDamaged(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"no JSON": "}{", "nothing": "{}", "no outcome": `{"ended":"1"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, journalFile)
			must(t, os.WriteFile(path, []byte(`{"at":1,"started":"1"}`+"\n"+line+"\n"+`{"at":1,"started":"2"}`+"\n"), 0o600))
			_, err := openJournal(dir, time.Now)
			if damaged, ok := errors.AsType[*DamagedError](err); !ok || damaged.File != path || damaged.Line != 2 {
				t.Errorf("err = %v, want one that names %s and line 2", err, path)
			}
		})
	}
}

func TestJournalIsRewritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	j, err := openJournal(dir, func() time.Time { return now })
	must(t, err)
	big := strings.Repeat("x", 10<<10)
	must(t, j.end("kept", doneOutcome(big+"kept")), j.start("running", true))
	for i := range 200 {
		id := fmt.Sprint(i)
		must(t, j.start(id, false), j.end(id, doneOutcome(big)), j.acknowledge(id))
	}
	if j.size > 2*minRewrite {
		t.Errorf("the journal has %d bytes", j.size)
	}
	check := func() {
		t.Helper()
		j.want(t, "running", stageStarted)
		j.want(t, "0", stageAcknowledged)
		j.want(t, "199", stageAcknowledged)
		out, ok, err := j.outcome("kept")
		if err != nil || !ok || string(out.Content) != `"`+big+`kept"` {
			t.Errorf("the outcome is lost: %v, %v", ok, err)
		}
		if info, err := os.Stat(filepath.Join(dir, journalFile)); err != nil || info.Size() != j.size {
			t.Errorf("the file has another size than %d: %v", j.size, err)
		}
	}
	check()
	must(t, j.close())
	j = openTestJournal(t, dir)
	check()

	// A day later, acknowledged calls are forgotten; the others are not.
	for i := range alwaysRemembered - 100 {
		id := fmt.Sprint("more", i)
		must(t, j.end(id, doneOutcome("x")), j.acknowledge(id))
	}
	j.now = func() time.Time { return now.Add(rememberAcknowledged + time.Minute) }
	must(t, j.rewrite())
	j.want(t, "99", stageUnknown)
	j.want(t, "100", stageAcknowledged) // one of the last
	j.want(t, "running", stageStarted)
	must(t, j.end("running", doneOutcome("x")), j.acknowledge("kept"), j.close())
	j = openTestJournal(t, dir)
	j.want(t, "running", stageEnded)
	j.want(t, "kept", stageAcknowledged)
}

// If the disk is full, a call must not begin. An outcome is remembered as long as the process lives.
func TestJournalThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir)
	must(t, j.start("1", false))
	good := j.file
	bad, err := os.Open(good.Name()) // for reading only
	must(t, err)
	j.file = bad
	if err := j.start("2", false); err == nil {
		t.Error("a call began without a record")
	}
	j.want(t, "2", stageUnknown)
	if err := j.end("1", doneOutcome("x")); err == nil {
		t.Error("no error")
	}
	j.want(t, "1", stageEnded)
	if out, ok, err := j.outcome("1"); err != nil || !ok || out.Status != nodes.Done {
		t.Errorf("the outcome is lost: %v, %v", ok, err)
	}
	must(t, good.Close())
}
