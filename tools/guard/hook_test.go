package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/guard"
)

// hookScript returns the path of an operator's program.
func hookScript(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "check")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func parseHook(t *testing.T, command string) (h guard.Hook, told *[]string) {
	t.Helper()
	h, err := guard.ParseHook(command)
	if err != nil {
		t.Fatal(err)
	}
	told = &[]string{}
	h.Failed = func(_ context.Context, why string) { *told = append(*told, why) }
	return h, told
}

func exampleCall() tools.Call {
	return tools.Call{ID: "c1", Name: "exec_shell", Args: json.RawMessage(`{"command":"ls"}`), Agent: "main", Session: "main:slack:C1", Turn: "m1", Person: "slack:U1"}
}

func TestAHookDecidesBefore(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want tools.Verdict
		told string
	}{
		"allows":              {`echo '{"verdict":"allow","arguments":{"x":1}}'`, tools.Verdict{}, ""},
		"changes":             {`echo '{"verdict":"change","arguments":{"command":"ls -l"},"reason":"long"}'`, tools.Verdict{Args: json.RawMessage(`{"command":"ls -l"}`), Reason: "long"}, ""},
		"asks":                {`echo '{"verdict":"ask","reason":"costly"}'`, tools.Verdict{Decision: tools.Ask, Reason: "costly"}, ""},
		"denies":              {`cat >/dev/null; echo '{"verdict":"deny","reason":"no"}'`, tools.Verdict{Decision: tools.Deny, Reason: "no"}, ""},
		"crashes":             {`kill -9 $$`, tools.Verdict{Decision: tools.Deny}, "signal: killed"},
		"fails":               {`echo '{"verdict":"allow"}'; exit 3`, tools.Verdict{Decision: tools.Deny}, "exit status 3"},
		"writes no JSON":      {`echo allow`, tools.Verdict{Decision: tools.Deny}, "didn't write one JSON value"},
		"writes two":          {`echo '{"verdict":"allow"}{"verdict":"allow"}'`, tools.Verdict{Decision: tools.Deny}, "didn't write one JSON value"},
		"writes nothing":      {`:`, tools.Verdict{Decision: tools.Deny}, "didn't write one JSON value"},
		"has another verdict": {`echo '{"verdict":"pass"}'`, tools.Verdict{Decision: tools.Deny}, `"pass"`},
		"changes nothing":     {`echo '{"verdict":"change"}'`, tools.Verdict{Decision: tools.Deny}, "no arguments"},
		"writes without end":  {`yes`, tools.Verdict{Decision: tools.Deny}, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			h, told := parseHook(t, hookScript(t, c.body))
			got := h.Before(t.Context(), exampleCall())
			if got.Decision != c.want.Decision || string(got.Args) != string(c.want.Args) || c.want.Reason != "" && got.Reason != c.want.Reason {
				t.Errorf("it says %+v, want %+v", got, c.want)
			}
			if all := strings.Join(*told, "|"); (all == "") != (c.told == "") || !strings.Contains(all, c.told) {
				t.Errorf("the owner is told %q, want %q", all, c.told)
			}
			if got.Decision == tools.Deny && got.Reason == "" {
				t.Error("the model is not told why")
			}
		})
	}
}

func TestAHookReviewsAfter(t *testing.T) {
	for body, want := range map[string]tools.ResultReview{
		`echo '{"verdict":"pass"}'`:                            {},
		`echo '{"verdict":"change","result":{"a":1}}'`:         {Content: json.RawMessage(`{"a":1}`)},
		`echo '{"verdict":"reject","reason":"names a child"}'`: {Rejected: true, Reason: "names a child"},
		`exit 1`:                     {Rejected: true},
		`echo '{"verdict":"allow"}'`: {Rejected: true},
	} {
		h, told := parseHook(t, hookScript(t, body))
		got := h.After(t.Context(), exampleCall(), tools.Result{Content: json.RawMessage(`{"stdout":"x"}`)})
		if got.Rejected != want.Rejected || string(got.Content) != string(want.Content) || want.Reason != "" && got.Reason != want.Reason {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
		if failed := want.Rejected && want.Reason == ""; failed != (len(*told) == 1) {
			t.Errorf("%s: the owner is told %q", body, *told)
		}
	}
}

// A hook reads the call, and its environment contains nothing of this process's.
func TestInputAndEnvironmentOfAHook(t *testing.T) {
	t.Setenv("PARLEY_SECRET", "swordfish")
	out := filepath.Join(t.TempDir(), "out")
	h, _ := parseHook(t, hookScript(t, `cat > $1; env >> $1; pwd >> $1; echo "$# $2" >> $1; echo '{"verdict":"pass"}'`)+" "+out+" --strict;x")
	h.After(t.Context(), exampleCall(), tools.Result{Content: json.RawMessage(`{"stdout":"x"}`)})
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"agent":"main","session":"main:slack:C1","turn":"m1","call":"c1","person":"slack:U1","tool":"exec_shell","arguments":{"command":"ls"},"result":{"stdout":"x"}}`
	if !strings.HasPrefix(string(raw), want) || !strings.HasSuffix(string(raw), "/\n2 --strict;x\n") || strings.Contains(string(raw), "swordfish") || strings.Contains(string(raw), "HOME=") {
		t.Errorf("it was given\n%s", raw)
	}
}

// All processes that a hook starts end with it, and a hook that hangs is ended.
func TestNothingOfAHookIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		told bool
	}{
		"one that hangs":                   {"sleep 100 & echo $! > PIDS; sleep 100", true},
		"one that leaves a child":          {`sleep 100 >/dev/null 2>&1 & echo $! > PIDS; echo '{"verdict":"allow"}'`, false},
		"one whose child holds its output": {`sleep 100 & echo $! > PIDS; echo '{"verdict":"allow"}'`, true},
	} {
		t.Run(name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			h, told := parseHook(t, hookScript(t, strings.ReplaceAll(c.body, "PIDS", pids)))
			h.Before(t.Context(), exampleCall())
			if (len(*told) > 0) != c.told {
				t.Errorf("the owner is told %q", *told)
			}
			raw, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(20 * time.Second); isRunning(pid); <-time.After(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("process %d is still there", pid)
				}
			}
		})
	}
}

// isRunning reports whether a process is running, rather than ended and not yet collected.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// A hook that is cut off because its turn ends is not reported as failed.
func TestAHookCutOffWithItsTurnIsNotReported(t *testing.T) {
	h, told := parseHook(t, hookScript(t, "sleep 100"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if got := h.Before(ctx, exampleCall()); got.Decision != tools.Deny || len(*told) > 0 {
		t.Errorf("it says %+v, and the owner is told %q", got, *told)
	}
}

func TestCommandsThatAreNoHooks(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"", "  ", "check --strict", "./check", "/no/such/program", plain, t.TempDir()} {
		if _, err := guard.ParseHook(command); err == nil {
			t.Errorf("%q is taken", command)
		}
	}
}
