//go:build linux

package nodes

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// jobModel plays a model that makes the calls that a person names, like callModel. It replaces ID by the id of the newest
// job, and repeats what it is told about jobs that have ended.
func jobModel(r agenttest.Request) agenttest.Response {
	if said := r.Said(); strings.Contains(said, "Nobody has said anything") {
		return agenttest.Reply("heard: " + said)
	}
	calls := strings.Split(r.Said(), ";;")
	if made := len(r.Results()); made < len(calls)-1 {
		_, call, _ := strings.Cut(calls[made], "call: ")
		for _, m := range r.Messages() {
			if found := jobID.FindStringSubmatch(m.Content); found != nil {
				call = strings.ReplaceAll(call, "ID", found[1])
			}
		}
		name, args, _ := strings.Cut(call, " ")
		return agenttest.Calls(agenttest.Call(name, args))
	}
	return agenttest.Reply("it gave " + strings.Join(r.Results(), " "))
}

var jobID = regexp.MustCompile(`"job_id":"([a-z2-7]{10})"`)

// working returns a world with a running server, and a node that is accepted and on which the agent works.
func working(t *testing.T, more string) (*parleytest.HTTPWorld, *parleytest.Process, *node) {
	t.Helper()
	t.Parallel()
	w, p, n := joined(t, jobModel, "[agents.main]\nruns_on = \"node:pi\"\n[nodes.pi]\ntrusted = true\n"+more)
	if _, errs, code := w.Run("nodes", "accept", "pi", "--yes"); code != parleytest.ExitDone {
		t.Fatalf("nodes accept ended with %d: %s", code, errs)
	}
	return w, p, n
}

// startJob makes the agent start a job that writes the file runs, waits for the file go, and exits with code 3.
func startJob(w *parleytest.HTTPWorld, n *node) (id, dir string) {
	w.T.Helper()
	w.Telegram.Say(2, 2, `call: exec_shell {"command":"echo begun >> $JOB_DIR/runs; echo printed; sleep `+mark(n)+` & while [ ! -e go ]; do sleep 0.05; done; exit 3","background":true};;`)
	said := w.WaitSaid(2, 1)[0]
	parleytest.Wants(w.T, said, `"node":"pi"`, `"state":"running"`)
	return jobID.FindStringSubmatch(said)[1], n.begun()
}

// mark returns a number that identifies the processes of a node's job.
func mark(n *node) string {
	return fmt.Sprintf("300%09d", crc32.ChecksumIEEE([]byte(n.world.Home))%1e9)
}

// heard waits until chat 2 is told how its job ended, and checks the words and that they come once.
func heard(w *parleytest.HTTPWorld, p *parleytest.Process, want ...string) {
	w.T.Helper()
	all := func() string { return strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n") }
	parleytest.WaitFor(w.T, "the end of the job to be told", func() bool { return strings.Contains(all(), "heard: ") })
	parleytest.WaitFor(w.T, "the end of the job to be noted as told", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM jobs WHERE told = 0") == 0
	})
	p.Stop()
	parleytest.Wants(w.T, all(), want...)
	if n := strings.Count(all(), "heard: "); n != 1 {
		w.T.Errorf("it is told %d times: %s", n, all())
	}
}

// goOn lets the job end.
func goOn(w *parleytest.HTTPWorld, dir string) {
	parleytest.Must(w.T, os.WriteFile(filepath.Join(dir, "..", "..", "go"), nil, 0o600))
}

// ranOnce checks that the job's command ran once.
func ranOnce(t *testing.T, dir string) {
	t.Helper()
	if raw, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(raw) != "begun\n" {
		t.Errorf("the command was run as %q (%v)", raw, err)
	}
}

// sleeping counts the processes of the job that are still running.
func sleeping(n *node) (count int) {
	n.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	parleytest.Must(n.t, err)
	for _, path := range all {
		if raw, _ := os.ReadFile(path); string(raw) == "sleep\x00"+mark(n)+"\x00" { // it may have ended
			count++
		}
	}
	return count
}

// An agent can check on a job on a node as on a local one, and is told how the job ended even if the server was
// restarted meanwhile.
func TestAJobOnANodeOutlivesTheServer(t *testing.T) {
	w, p, n := working(t, "")
	id, dir := startJob(w, n)
	parleytest.WaitFor(t, "its output to be noted", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM jobs WHERE state = 'running' AND output LIKE '%printed%'") == 1
	})
	w.Telegram.Say(2, 2, `call: job_status {"job_id":"ID"};; call: job_output {"job_id":"ID"};; call: read_file {"path":"jobs/ID/output.txt"};;`)
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], `"state":"running"`, `"output":"printed\n"`, `"content":"printed\n"`)
	p.Kill()
	p = w.Up()
	goOn(w, dir)
	heard(w, p, "The job "+id+" on the node pi", "ended with exit code 3", "It printed 8 bytes")
	ranOnce(t, dir)
}

// If a job ends while the server or the node is away, the chat is still told.
func TestAJobEndsWhileNobodyListens(t *testing.T) {
	w, p, n := working(t, "")
	_, dir := startJob(w, n)
	p.Kill()
	goOn(w, dir)
	parleytest.WaitFor(t, "the node to have the end in its journal", func() bool {
		raw, err := os.ReadFile(filepath.Join(n.world.Home, "journal", "calls.jsonl"))
		return err == nil && strings.Contains(string(raw), `"exit_code":3`)
	})
	n.kill()
	p = w.Up()
	n.start()
	heard(w, p, "ended with exit code 3")
	ranOnce(t, dir)
}

// A job on a node ends when the node's process does, together with all processes that it has started, and never runs
// again.
func TestAJobDiesWithItsNode(t *testing.T) {
	w, p, n := working(t, "")
	_, dir := startJob(w, n)
	n.kill()
	parleytest.WaitFor(t, "nothing of the job to be left", func() bool { return sleeping(n) == 0 })
	p.Kill()
	p = w.Up()
	n.start()
	heard(w, p, "is lost (the node was cut off")
	ranOnce(t, dir)
}

// A person who may end a local job may end a job on a node, together with all processes that it has started.
func TestAJobOnANodeIsEnded(t *testing.T) {
	for name, end := range map[string]func(w *parleytest.HTTPWorld, id string){
		"by its agent": func(w *parleytest.HTTPWorld, _ string) {
			w.Telegram.Say(2, 2, `call: job_stop {"job_id":"ID"};;`)
			parleytest.Wants(w.T, w.WaitSaid(2, 2)[1], `"state":"stopped"`)
		},
		"by /forget": func(w *parleytest.HTTPWorld, _ string) {
			w.Telegram.Say(2, 2, "/forget")
			code := regexp.MustCompile(`/forget \S+`).FindString(w.WaitSaid(2, 2)[1])
			w.Telegram.Say(2, 2, code)
			w.WaitSaid(2, 3)
		},
		"because the node is removed": func(w *parleytest.HTTPWorld, _ string) {
			if _, errs, code := w.Run("nodes", "revoke", "pi", "--yes"); code != parleytest.ExitDone {
				w.T.Errorf("nodes revoke ended with %d: %s", code, errs)
			}
			parleytest.Wants(w.T, w.WaitSaid(2, 2)[1], "is lost (its node was removed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, n := working(t, "")
			id, _ := startJob(w, n)
			parleytest.WaitFor(t, "the job to start something", func() bool { return sleeping(n) > 0 })
			end(w, id)
			parleytest.WaitFor(t, "nothing of the job to be left", func() bool { return sleeping(n) == 0 })
			p.Stop()
		})
	}
}

// The node's own rules apply to the command of a job as to any other command. A node that is away gets no jobs.
func TestRulesAndAnAwayNodeForJobs(t *testing.T) {
	w, _, n := working(t, "")
	n.kill()
	isAway(w)
	w.Telegram.Say(2, 2, `call: exec_shell {"command":"touch here","background":true};;`)
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "node_away")
	parleytest.Must(t, os.WriteFile(n.world.File, []byte("[node]\nname = \"pi\"\ndeny = [\"exec_shell(rm *)\"]\nask = [\"exec_shell(*careful*)\"]\n"), 0o600))
	n.start()
	here(w)
	w.Telegram.Say(3, 3, `call: exec_shell {"command":"rm -rf x","background":true};;`)
	parleytest.Wants(t, strings.Join(w.WaitSaid(3, 2), "\n"), "couldn't be run (the node's own settings forbid it")
	w.Telegram.Say(4, 4, `call: exec_shell {"command":"echo careful","background":true};;`)
	asked := w.WaitSaid(4, 1)[0]
	parleytest.Wants(t, asked, "the node pi runs it only if a person has approved it", "echo careful")
	w.Telegram.Say(1, 1, "/approve "+parleytest.Requested(t, asked))
	parleytest.Wants(t, strings.Join(w.WaitSaid(4, 3), "\n"), "ended with exit code 0")
	if got := w.Count("sessions.db", fmt.Sprintf("SELECT count(*) FROM node_calls WHERE tool = '%s'", "exec_shell/job")); got != 2 {
		t.Errorf("%d jobs were given to the node, want 2", got)
	}
}

// If a process is killed at any step of a job on a node, the job runs at most once, and the chat is told once how it
// ended.
func TestKilledAtEachPointOfAJobOnANode(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"job:held": "exit code 3", "job:begun": "exit code 3", "node:given": "exit code 3", "node:sent": "exit code 3", "node:ended": "exit code 3",
		"node:acked": "exit code 3", "job:ended": "exit code 3", "job:recorded": "exit code 3", "job:told": "exit code 3",
		"device:started": "is lost", "device:ran": "is lost", "device:ended": "exit code 3", "device:acked": "exit code 3",
	} {
		t.Run(at, func(t *testing.T) {
			w, p, n := working(t, "wait = \"1h\"\n")
			kill := "PARLEY_KILL_AT=" + at
			onDevice := strings.HasPrefix(at, "device:")
			if onDevice {
				n.kill()
				isAway(w)
				n.start(kill)
			} else {
				p.Stop()
				p = w.Up(kill)
			}
			here(w)
			w.Telegram.Say(2, 2, `call: exec_shell {"command":"echo begun >> $JOB_DIR/runs; exit 3","background":true};;`)
			if onDevice {
				_ = n.cmd.Wait() // it is killed
				n.start()
			} else {
				p.WaitKilled()
				p = w.Up()
			}
			heard(w, p, want)
			runs, err := filepath.Glob(filepath.Join(n.world.Home, "workspace", "jobs", "*", "runs"))
			parleytest.Must(t, err)
			if len(runs) > 1 || len(runs) == 0 && want != "is lost" {
				t.Errorf("there are %q", runs)
			}
			for _, file := range runs {
				ranOnce(t, filepath.Dir(file))
			}
		})
	}
}
