package operation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal/report"
	"parley/sessions/bill"
)

// priced makes a world whose model costs a dollar for a million tokens of the prompt, and two dollars for a million
// tokens of the answer.
func priced(t *testing.T, script agenttest.Script, more string) *parleytest.World {
	t.Helper()
	w := parleytest.New(t, script, more)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "name = \"scripted\"\n", "name = \"scripted\"\nprice_input = 1.0\nprice_output = 2\n", 1)), 0o600))
	return w
}

// People can see the tokens and costs of their own calls, and operators those of all calls, even after the person was
// forgotten.
func TestUsageOfAServer(t *testing.T) {
	t.Parallel()
	w := priced(t, agenttest.Always(agenttest.Reply("fine")), "")
	serving := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, "/usage")
	if text := w.WaitSaid(2, 2)[1]; !strings.Contains(text, "one model call, $") || !strings.Contains(text, "Prices are as of 20") {
		t.Errorf("/usage says %q", text)
	}
	report := func(by string) bill.Sum {
		t.Helper()
		out, errs, code := w.Run("--json", "usage", "--by", by)
		var r report.Usage
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Usage) != 1 || r.Prices == "" {
			t.Fatalf("by %s: %d %s %s", by, code, out, errs)
		}
		return r.Usage[0]
	}
	for by, key := range map[string]string{"day": report("day").Key, "person": "telegram:2", "session": "main:telegram:2", "agent": "main", "model": "scripted"} {
		got := report(by)
		if want := (bill.Sum{Key: key, Calls: 1, Input: got.Input, Output: got.Output, Microdollars: got.Input + 2*got.Output}); got != want || got.Input == 0 || got.Output == 0 {
			t.Errorf("by %s: %+v, want %+v", by, got, want)
		}
	}
	if out, errs, code := w.Run("usage"); code != 0 || !strings.Contains(out, time.Now().UTC().Format("2006-")) || !strings.Contains(out, "REASONING") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if _, errs, code := w.Run("usage", "--from", "monday"); code != 2 || !strings.Contains(errs, "2026-01-31") {
		t.Errorf("%d %s", code, errs)
	}
	before := report("day")
	if _, errs, code := w.Run("forget", "--yes", "--user", "telegram:2"); code != 0 {
		t.Fatalf("forget: %d %s", code, errs)
	}
	if after := report("day"); after != before {
		t.Errorf("what was forgotten is %+v, and was %+v", after, before)
	}
	if after := report("person"); after.Key != "" {
		t.Errorf("forgotten, and still %+v", after)
	}
	serving.Stop()
}

// The server does not start with a wrong price or price list, and the error names the setting.
func TestAWrongPriceStopsTheStart(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"[budget]\nprices = \"none.json\"\n": "budget.prices",
		"[models.far]\nname = \"m\"\nbase_url = \"https://models.example.com/v1\"\nprice_input = 0\n":  "models.far.price_input: 0 is for a model on this machine",
		"[models.far]\nname = \"m\"\nbase_url = \"https://models.example.com/v1\"\nprice_input = 1\n":  "models.far.price_output",
		"[models.far]\nname = \"m\"\nbase_url = \"https://models.example.com/v1\"\nprice_cached = 1\n": "models.far.price_input",
	} {
		w := priced(t, agenttest.Always(agenttest.Reply("fine")), more)
		text, err := os.ReadFile(w.File)
		parleytest.Must(t, err)
		if strings.Contains(more, "far") {
			parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "[model]\n", "[model]\nfallback = [\"far\"]\n", 1)), 0o600))
		}
		if _, errs, code := w.Run("serve"); code != parleytest.ExitConfig || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", more, code, errs)
		}
	}
}

// Caps hold for each person and for everyone together, even after a restart. A person who reaches a cap is told when
// they can continue.
func TestCapsOfAServer(t *testing.T) {
	t.Parallel()
	w := priced(t, agenttest.Always(parleytest.Costs("0.295")), "[budget]\nuser_day = 0.3\nday = 0.6\n")
	serving := w.Serve()
	said := func(user int64, n int) string {
		t.Helper()
		w.Telegram.Say(user, user, "hello")
		return w.WaitSaid(user, n)[n-1]
	}
	if text := said(2, 1); text != "fine" {
		t.Errorf("the first is told %q", text)
	}
	w.Telegram.Say(2, 2, "/usage") // comes after the end of the turn
	if text := w.WaitSaid(2, 2)[1]; !strings.Contains(text, "$0.29") && !strings.Contains(text, "$0.30") {
		t.Errorf("/usage says %q", text)
	}
	if text := said(2, 3); !strings.Contains(text, "You've used $0.2950 of the $0.30 that a person can spend in a day. One more answer could cost $0.0") || !strings.Contains(text, "I can go on after") {
		t.Errorf("over the cap of a person: %q", text)
	}
	serving.Stop()
	serving = w.Serve()
	if text := said(3, 1); text != "fine" {
		t.Errorf("another person is told %q", text)
	}
	if text := said(2, 4); !strings.Contains(text, "that a person can spend") {
		t.Errorf("after a restart: %q", text)
	}
	serving.Stop()
	serving = w.Serve()
	if text := said(1, 1); !strings.Contains(text, "People have used $0.59 of the $0.60 that everyone together can spend in a day") || !strings.Contains(text, "[budget] day") {
		t.Errorf("the owner is told %q", text)
	}
	serving.Stop()
	if asked := w.Model.Asked(); asked != 2 {
		t.Errorf("the model was asked %d times", asked)
	}
}

// The server does not start with a cap on the cost of a model without a price.
func TestACapWithoutAPriceStopsTheStart(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"[budget]\nday = 5\n", "[agents.main]\nday = 5\n", "[agents.defaults]\nday = 5\n"} {
		w := parleytest.New(t, agenttest.Always(agenttest.Reply("fine")), more)
		if _, errs, code := w.Run("serve"); code != parleytest.ExitConfig || !strings.Contains(errs, "model.price_input: [budget] limits") || !strings.Contains(errs, "price_input = 0") {
			t.Errorf("%s: %d %s", more, code, errs)
		}
	}
}

// If a reload adds a cap on the cost of a model without a price, the server warns.
func TestACapWithoutAPriceIsToldAtAReload(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, agenttest.Always(agenttest.Reply("fine")), "")
	serving := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, append(text, "[budget]\nday = 5\n"...), 0o600))
	parleytest.Must(t, serving.Cmd.Process.Signal(syscall.SIGHUP))
	parleytest.WaitFor(t, "the warning", func() bool {
		return strings.Contains(serving.Stderr.String(), "set price_input beside the model's name")
	})
	serving.Stop()
}

// After an update of a bot that was used before, the owner is told which caps now hold, and when they are nearly used
// up.
func TestOwnersHearOfCaps(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, agenttest.Always(parleytest.Costs("0.295")), "[notices]\nafter = \"1s\"\n")
	serving := w.Serve()
	w.Telegram.Say(1, 1, "hello")
	w.WaitSaid(1, 1)
	serving.Stop()
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	priced := strings.Replace(string(text), "name = \"scripted\"\n", "name = \"scripted\"\nprice_input = 1.0\nprice_output = 2\n", 1)
	parleytest.Must(t, os.WriteFile(w.File, []byte(priced), 0o600))
	serving = w.Serve()
	if told := w.WaitSaid(1, 2)[1]; !strings.Contains(told, "You haven't set these limits on what models can cost") || !strings.Contains(told, "$2.00 for one person in a day, $20.00 for everyone together in a day, $200.00 for everyone together in a month") {
		t.Errorf("the owner is told %q", told)
	}
	serving.Stop()
	parleytest.Must(t, os.WriteFile(w.File, []byte(priced+"[budget]\nday = 0.3\n"), 0o600))
	serving = w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	if told := w.WaitSaid(1, 3)[2]; !strings.Contains(told, "of the $0.30 that everyone together can spend today") {
		t.Errorf("the owner is told %q", told)
	}
	serving.Stop()
	serving = w.Serve()
	w.Telegram.Say(1, 1, "hello")
	if told := w.WaitSaid(1, 4)[3]; !strings.Contains(told, "People have used $0.2950 of the $0.30 that everyone together can spend in a day") {
		t.Errorf("the owner is told %q", told)
	}
	serving.Stop()
}

// A heartbeat costs no more in a day than its limit allows, and people are told once that it stopped.
func TestAHeartbeatCostsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	const most = 40_000 // micro-dollars
	list := filepath.Join(t.TempDir(), "list.md")
	parleytest.Must(t, os.WriteFile(list, []byte("- Is all well?\n"), 0o600))
	costly := func(agenttest.Request) agenttest.Response {
		r := agenttest.Reply("HEARTBEAT_OK")
		for i := range r.Parts {
			r.Parts[i].Bytes = strings.Replace(r.Parts[i].Bytes, `"prompt_tokens":100,`, `"prompt_tokens":15000,`, 1)
		}
		return r
	}
	const onCall = -10077
	w := priced(t, costly, fmt.Sprintf("[heartbeat]\nevery = \"1s\"\nfile = %q\nto = \"telegram:-10077\"\nday = 0.04\n", list))
	w.Serve()
	if said := w.WaitSaid(onCall, 1)[0]; !strings.Contains(said, "Heartbeats have used $0.0") || !strings.Contains(said, "of the $0.04 that they can spend in a day.") || !strings.Contains(said, "[heartbeat] day") {
		t.Errorf("it is told %q", said)
	}
	w.Telegram.Say(2, 2, "hello") // other people can continue
	w.WaitSaid(2, 1)
	out, errs, code := w.Run("--json", "usage", "--by", "person")
	var r report.Usage
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	beats := bill.Sum{}
	for _, one := range r.Usage {
		if one.Key == "heartbeat:main" {
			beats = one
		}
	}
	if beats.Calls == 0 || beats.Microdollars == 0 || beats.Microdollars > most {
		t.Errorf("it has cost %+v, and may cost %d", beats, most)
	}
	if told := len(w.Telegram.Sent(onCall)); told != 1 {
		t.Errorf("it is told %d times", told)
	}
}
