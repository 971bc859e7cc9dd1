package background

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// scheduling plays a model that makes the schedules that people ask for. When a schedule is due, the model tries to make
// another one and answers with the result.
func scheduling(r agenttest.Request) agenttest.Response {
	said, all := r.Said(), r.Messages()
	switch {
	case r.Rounds() > 0:
		return agenttest.Reply("done: " + strings.Join(r.Results(), " "))
	case strings.Contains(all[len(all)-1].Content, `" schedule="`):
		return agenttest.Calls(agenttest.ToolCall{Name: "schedule", Args: `{"action":"add","when":"in 1s","text":"again"}`})
	case strings.Contains(said, "remind me"):
		return agenttest.Calls(agenttest.ToolCall{Name: "schedule", Args: `{"action":"add","when":"in 2s","text":"xyzzyplugh"}`})
	case strings.Contains(said, "every day"):
		return agenttest.Calls(agenttest.ToolCall{Name: "schedule", Args: `{"action":"add","when":"0 9 * * *","text":"xyzzyplugh"}`})
	}
	return agenttest.Reply("hm")
}

// A schedule begins its turn once at its time, even if the process is killed meanwhile. A turn that a schedule begins
// cannot make another schedule.
func TestSchedules(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, scheduling, "")
	serving := w.Serve()
	w.Telegram.Say(2, 2, "remind me")
	if said := w.WaitSaid(2, 1); !strings.Contains(said[0], `"next"`) {
		t.Fatalf("said %q", said)
	}
	w.WaitBooked(strconv.Itoa(w.Telegram.Sent(2)[0].ID))
	serving.Kill()
	w.Serve()
	if said := w.WaitSaid(2, 2); !strings.Contains(said[1], "makes no further schedules") {
		t.Errorf("said %q", said)
	}
	w.Telegram.Say(2, 2, "every day")
	w.WaitSaid(2, 3)
	if n := w.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'turn_started' AND turn LIKE 'schedule:%'"); n != 1 {
		t.Errorf("a schedule began %d turns", n)
	}
	var listed []struct{ ID, Person, Session, When string }
	list := func() string {
		t.Helper()
		out, errs, code := w.Run("--json", "schedule", "list")
		if code != 0 || json.Unmarshal([]byte(out), &listed) != nil {
			t.Fatalf("schedule list: %d %s%s", code, out, errs)
		}
		return out
	}
	if out := list(); len(listed) != 1 || listed[0].Person != "telegram:2" || listed[0].Session != "main:telegram:2" || listed[0].When != "0 9 * * *" {
		t.Fatalf("listed is %s", out)
	}
	if out, errs, code := w.Run("schedule", "list"); code != 0 || !strings.Contains(out, listed[0].ID) {
		t.Errorf("schedule list: %d %s%s", code, out, errs)
	}
	if out, errs, code := w.Run("schedule", "pause", listed[0].ID); code != 0 || !strings.Contains(out, "is paused") {
		t.Errorf("schedule pause: %d %s%s", code, out, errs)
	}
	if out, errs, code := w.Run("schedule", "list"); code != 0 || !strings.Contains(out, "paused") {
		t.Errorf("schedule list: %d %s%s", code, out, errs)
	}
	if out, errs, code := w.Run("schedule", "run", listed[0].ID); code != 0 || !strings.Contains(out, "main:telegram:2") {
		t.Errorf("schedule run: %d %s%s", code, out, errs)
	}
	if said := w.WaitSaid(2, 4); !strings.Contains(said[3], "makes no further schedules") {
		t.Errorf("a run says %q", said)
	}
	if out, errs, code := w.Run("schedule", "resume", listed[0].ID); code != 0 || !strings.Contains(out, "is due next at") {
		t.Errorf("schedule resume: %d %s%s", code, out, errs)
	}
	if _, errs, code := w.Run("schedule", "cancel", listed[0].ID); code != 0 {
		t.Errorf("schedule cancel: %d %s", code, errs)
	}
	if _, errs, code := w.Run("schedule", "cancel", listed[0].ID); code != 1 || !strings.Contains(errs, "no such schedule") {
		t.Errorf("schedule cancel again: %d %s", code, errs)
	}
	if out := list(); len(listed) != 0 {
		t.Errorf("listed is %s", out)
	}
	w.Telegram.Say(2, 2, "every day")
	w.WaitSaid(2, 5)
	if _, errs, code := w.Run("forget", "--yes", "--user", "telegram:2"); code != 0 {
		t.Fatalf("forget: %d %s", code, errs)
	}
	parleytest.WaitFor(t, "nothing to be left", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM schedules") == 0 && len(parleytest.FilesWith(t, w.Home, "xyzzyplugh")) == 0
	})
}

// turnsBegun returns the number of turns that schedules have begun.
func turnsBegun(w *parleytest.World) int {
	return w.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'turn_started' AND turn LIKE 'schedule:%'")
}

// If the process is killed at any step between a due schedule and its answer, the answer arrives once.
func TestAScheduleKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"schedule:added", "schedule:begin", "schedule:begun", "schedule:said", "schedule:ended", "c1/2", "c6/2", "settled/2"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, scheduling, "")
			first := w.Serve("PARLEY_KILL_AT=" + at)
			w.Telegram.Say(2, 2, "remind me")
			parleytest.WaitFor(t, "the kill", first.HasEnded)
			again := w.Serve()
			parleytest.WaitFor(t, "the schedule to be over", func() bool {
				return w.Count("sessions.db", "SELECT count(*) FROM schedules WHERE slot + next = 0") == 1 &&
					w.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'published' AND turn LIKE 'schedule:%'") == 1
			})
			again.Stop()
			if n := turnsBegun(w); n != 1 {
				t.Errorf("the schedule began %d turns", n)
			}
			if n := w.Count("sessions.db", "SELECT count(*) FROM schedules"); n != 1 {
				t.Errorf("there are %d schedules", n)
			}
		})
	}
}

// A schedule does not run while its person may not talk to the bot. It runs again once the person may.
func TestAScheduleOfSomebodyWhoMayNotTalk(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if strings.Contains(r.Said(), "often") && r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "schedule", Args: `{"action":"add","when":"every 1s","text":"look"}`})
		}
		return agenttest.Reply("done")
	}, "[schedule]\nleast = \"1s\"\n")
	serving := w.Serve()
	w.Telegram.Say(2, 2, "often")
	w.WaitSaid(2, 1)
	parleytest.WaitFor(t, "a turn of the schedule", func() bool { return turnsBegun(w) > 0 })
	open, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	reload := func(text string, read int) {
		t.Helper()
		parleytest.Must(t, os.WriteFile(w.File, []byte(text), 0o600))
		parleytest.Must(t, serving.Cmd.Process.Signal(syscall.SIGHUP))
		parleytest.WaitFor(t, "the configuration to be read", func() bool {
			return strings.Count(serving.Stderr.String(), "configuration read again") == read
		})
	}
	passedOver := func() int { return strings.Count(serving.Stderr.String(), "a schedule is passed over") }
	reload(strings.Replace(string(open), "allow_from = [2, ", "allow_from = [", 1), 1)
	parleytest.WaitFor(t, "the schedule to be passed over", func() bool {
		return passedOver() > 0 && w.Count("sessions.db", "SELECT count(*) FROM message WHERE topic = 'inbound'") == 0 // nothing is on its way
	})
	begun, passed := turnsBegun(w), passedOver()
	parleytest.WaitFor(t, "it to be passed over again", func() bool { return passedOver() > passed+1 })
	if n := turnsBegun(w); n > begun {
		t.Errorf("while its person may not talk, the schedule began %d turns", n-begun)
	}
	reload(string(open), 2)
	begun = turnsBegun(w)
	parleytest.WaitFor(t, "the schedule to speak again", func() bool { return turnsBegun(w) > begun })
}

// A heartbeat makes an agent go through a checklist. The agent tells people what it finds, and sends nothing if it
// finds nothing.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "list.md")
	parleytest.Must(t, os.WriteFile(list, []byte("- Is the disk full?"), 0o600))
	beats := make(chan struct{}, 100)
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if !strings.Contains(string(r.Body), "Is the disk full?") {
			return agenttest.Reply("hm")
		}
		beats <- struct{}{}
		if r.N == 2 {
			return agenttest.Reply("The disk is full.")
		}
		return agenttest.Reply("HEARTBEAT_OK")
	}, "[heartbeat]\nevery = \"1s\"\nto = \"telegram:-77\"\nfile = \""+list+"\"\n")
	serving := w.Serve()
	for range 4 {
		<-beats
	}
	w.WaitSaid(-77, 1)
	serving.Stop()
	if got := parleytest.Texts(w.Telegram.Sent(-77)); len(got) != 1 || !strings.Contains(got[0], "The disk is full.") {
		t.Errorf("people are told %q", got)
	}
}

// A heartbeat uses no more tokens than its limit allows, even if the model is free. The bot reports once that none are
// left.
func TestAHeartbeatKeepsToItsTokens(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "list.md")
	parleytest.Must(t, os.WriteFile(list, []byte("- Is the disk full?"), 0o600))
	w := parleytest.New(t, parleytest.EchoModel, "[heartbeat]\nevery = \"1s\"\ntokens_day = 10\nto = \"telegram:-77\"\nfile = \""+list+"\"\n")
	serving := w.Serve()
	if said := w.WaitSaid(-77, 1); !strings.Contains(said[0], "10 tokens") {
		t.Errorf("people are told %q", said)
	}
	parleytest.WaitFor(t, "more beats", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'turn_done' AND turn LIKE 'heartbeat:%'") > 3
	})
	serving.Stop()
	if got := w.Telegram.Sent(-77); len(got) != 1 || w.Model.Asked() > 0 {
		t.Errorf("people are told %q, and the model was asked %d times", parleytest.Texts(got), w.Model.Asked())
	}
}
