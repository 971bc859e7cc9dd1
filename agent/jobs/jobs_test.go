//go:build linux

package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/jobs"
	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/sessions"
	"parley/sessions/sqlstore"
	"parley/sessions/workspace"
	"parley/tools"
	jobtools "parley/tools/jobs"
	"parley/tools/sandbox"
	"parley/tools/shell"
	"parley/tools/testlog"
	"parley/tools/testrace"
)

func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(testrace.Run(m.Run))
}

const (
	session   = "main:telegram:42"
	person    = "telegram:7"
	waitLimit = 2 * time.Minute
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A home has the persistent parts of a process, which are real and outlive it.
type home struct {
	t        *testing.T
	dir      string
	bus      *sqlitebus.Bus
	store    *sqlstore.Store
	files    *workspace.Workspaces
	box      sandbox.Sandbox
	settings jobs.Settings
	log      *slog.Logger
	node     *device // a node on which jobs may run, too
	// revoked says that the person may not talk to the bot anymore.
	revoked bool
}

func newHome(t *testing.T) *home {
	t.Helper()
	said := &testlog.Buffer{}
	h := &home{t: t, dir: t.TempDir(), settings: jobs.Settings{Limits: sessions.JobLimits{Session: 3, Person: 5}, MaxTime: time.Hour}, log: slog.New(slog.NewTextHandler(said, nil))}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(said)
		}
	})
	box, err := sandbox.Open(t.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: h.log})
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have a sandbox: %v", err)
	}
	h.box = box
	h.store, err = sqlstore.Open(t.Context(), filepath.Join(h.dir, "sessions.db"))
	must(t, err)
	t.Cleanup(func() { h.store.Close() })
	h.files, err = workspace.New(workspace.Config{Root: filepath.Join(h.dir, "workspaces")})
	must(t, err)
	t.Cleanup(func() { h.files.Close() })
	_, err = h.store.Open(t.Context(), session, time.Now().UnixMicro())
	must(t, err)
	h.openBus()
	return h
}

func (h *home) openBus() {
	h.t.Helper()
	b, err := sqlitebus.Open(context.Background(), sqlitebus.Config{Path: filepath.Join(h.dir, "bus.db")})
	must(h.t, err)
	h.t.Cleanup(func() { b.Close() }) // it may be closed already
	h.bus = b
}

func (h *home) workspace() string {
	h.t.Helper()
	d, err := h.files.Open(session)
	must(h.t, err)
	return d.Path()
}

// start runs a Runner until stop is called, which waits for its end.
func (h *home) start() (r *jobs.Runner, stop func()) {
	h.t.Helper()
	r = jobs.New(jobs.Config{
		Store: h.store, Bus: h.bus, Sandbox: h.box, Settings: func() jobs.Settings { return h.settings },
		Place: func(context.Context, tools.Call) (sandbox.Place, error) {
			return sandbox.Place{Workspace: h.workspace(), Quota: sandbox.Quota{Bytes: 20 << 20, Items: 1000}}, nil
		},
		Create: func(_ context.Context, session, path string) (*os.File, error) {
			d, err := h.files.Open(session)
			if err != nil {
				return nil, err
			}
			return d.Create(path)
		},
		Networked: func(c tools.Call) bool { return c.Name == "spawn" }, Changed: func(tools.Call) {}, Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
		Admit: func(_ context.Context, who bus.Person, _ bus.Address) (bus.Caller, bool, error) {
			who.Owner = true
			return bus.Caller{Person: who, Private: true}, !h.revoked, nil
		},
		Nodes: h.node, ReadyOnNodes: func(context.Context) (string, error) { return "", nil },
		Ready: func(context.Context) (string, error) { return "", nil }, Audit: h.store.Audit, Log: h.log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil && !errors.Is(err, bus.ErrClosed) {
			h.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	h.t.Cleanup(stop)
	return r, stop
}

func toolCall(key string) tools.Call {
	return tools.Call{ID: "c-" + key, Key: key, Name: "exec_shell", Turn: "t1", Session: session, Agent: "main", Person: person, PersonName: "Anna", Owner: true, Address: "telegram:42"}
}

func order(line string) shell.Order {
	return shell.Order{Args: []string{"sh", "-c", line}, Line: line}
}

// startJob starts a job, and returns its id.
func startJob(t *testing.T, r *jobs.Runner, key, line string) string {
	t.Helper()
	ctx, over := context.WithTimeout(t.Context(), waitLimit)
	defer over() // the job outlives its call
	result, err := r.Start(ctx, toolCall(key), order(line))
	must(t, err)
	raw, err := json.Marshal(result)
	must(t, err)
	var said struct {
		ID string `json:"job_id"`
	}
	must(t, json.Unmarshal(raw, &said))
	if said.ID == "" {
		t.Fatalf("the job has no id: %s", raw)
	}
	return said.ID
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(waitLimit); !holds(); {
		if time.Now().After(until) {
			t.Fatalf("waited too long for %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// waitState waits until a job is in a state, and returns it.
func (h *home) waitState(id, state string) (j sessions.Job) {
	h.t.Helper()
	waitFor(h.t, "job "+id+" to be "+state, func() bool {
		var err error
		j, err = h.store.Job(h.t.Context(), id)
		must(h.t, err)
		return j.State == state
	})
	return j
}

// waitReported waits until the session was told of a job's end.
func (h *home) waitReported(id string) (j sessions.Job) {
	h.t.Helper()
	waitFor(h.t, "the end of job "+id+" to be told", func() bool {
		var err error
		j, err = h.store.Job(h.t.Context(), id)
		must(h.t, err)
		return j.Told
	})
	return j
}

// sessionMail returns the messages to the session.
func (h *home) sessionMail() (all []bus.Inbound) {
	h.t.Helper()
	has, err := h.bus.HasMail(h.t.Context(), bus.InboundTopic, session)
	must(h.t, err)
	if !has {
		return nil
	}
	lease, err := h.bus.Claim(h.t.Context(), bus.InboundTopic)
	must(h.t, err)
	messages, err := lease.Mail(h.t.Context(), 0)
	must(h.t, err)
	for _, m := range messages {
		in, err := bus.DecodeInbound(m.Body)
		must(h.t, err)
		all = append(all, in)
	}
	must(h.t, lease.Settle(h.t.Context(), bus.End{}))
	return all
}

// wantOneMessage fails the test unless exactly that message about a job has arrived.
func (h *home) wantOneMessage(id, kind, words string) {
	h.t.Helper()
	h.waitReported(id)
	found := 0
	for _, in := range h.sessionMail() {
		if in.ID != "job:"+id {
			continue
		}
		if found++; in.Kind != kind || !strings.Contains(in.Text, words) || in.At.String() != "telegram:42" || in.From.ID != person || in.From.Owner != (kind == bus.JobEnded) || in.From.Name != "Anna" {
			h.t.Errorf("the session was told %+v, want one of kind %s with %q", in, kind, words)
		}
	}
	if found != 1 {
		h.t.Errorf("the session was told %d times", found)
	}
}

// processesWith returns the processes whose arguments contain a text.
func processesWith(text string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err == nil && bytes.Contains(raw, []byte(text)) {
			found = append(found, name+": "+strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return found
}

// waitForFileLine returns a line of shell that waits for a file of the workspace.
func waitForFileLine(file string) string { return "until [ -e " + file + " ]; do sleep 0.02; done; " }

// endlessCommand returns a line of shell that never ends, with processes that try to outlive it, and a text by which
// they are found.
func endlessCommand(t *testing.T) (line, mark string) {
	mark = fmt.Sprintf("300%09d", time.Now().UnixNano()%1e9)
	t.Cleanup(func() {
		waitFor(t, "all processes of a job to be gone", func() bool { return len(processesWith(mark)) == 0 })
	})
	return fmt.Sprintf(`trap "" TERM HUP; sleep %[1]s & setsid sleep %[1]s & (setsid sleep %[1]s &) ; echo on its way; touch "$JOB_DIR/on"; wait; sleep %[1]s`, mark), mark
}

// waitRunning waits until the job of endlessCommand has started all its processes.
func (h *home) waitRunning(id string) {
	h.t.Helper()
	waitFor(h.t, "the job to be at work", func() bool {
		_, err := os.Stat(filepath.Join(h.workspace(), jobtools.Folder(id), "on"))
		return err == nil
	})
}

func TestAJobOutlivesItsCallAndTellsItsEnd(t *testing.T) {
	h := newHome(t)
	news := bustest.News(t, h.bus)
	r, _ := h.start()
	id := startJob(t, r, "one", waitForFileLine("go")+`echo hunter2 is out; echo err >&2; cp go "$JOB_DIR/made"; echo evil >evil; exit 3`)
	h.waitState(id, sessions.JobRunning)
	if n := r.CountRunning(); n != 1 {
		t.Errorf("%d jobs run", n)
	}
	must(t, os.WriteFile(filepath.Join(h.workspace(), "go"), []byte("went"), 0o600))
	j := h.waitState(id, sessions.JobExited)
	if j.ExitCode == nil || *j.ExitCode != 3 || !strings.Contains(j.Output, "*** is out\nerr\n") || j.Printed < int64(len("hunter2 is out\nerr\n")) {
		t.Errorf("the job is %+v", j)
	}
	h.wantOneMessage(id, bus.JobEnded, "ended with exit code 3")
	told := fmt.Sprintf("job session=%s turn=t1 id=%s kind= state=", session, id)
	waitFor(t, "word to those who watch the server", func() bool { return slices.Equal(news(), []string{told + "running", told + "exited"}) })
	status, text, err := r.Find(t.Context(), session, id)
	if err != nil || status.State != sessions.JobExited || text != j.Output {
		t.Errorf("it is found as %+v %q, %v", status, text, err)
	}
	d, err := h.files.Open(session)
	must(t, err)
	if raw, err := fs.ReadFile(d, status.Folder+"/made"); err != nil || string(raw) != "went" {
		t.Errorf("its folder has %q, %v", raw, err)
	}
	if raw, err := fs.ReadFile(d, status.File); err != nil || !strings.Contains(string(raw), "is out\nerr\n") {
		t.Errorf("its output file has %q, %v", raw, err)
	}
	if _, err := d.Stat("evil"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it wrote beside its folder: %v", err)
	}
	records, err := h.store.AuditRecords(t.Context(), sessions.AuditQuery{Kind: sessions.AuditJob, Limit: 10})
	if err != nil || len(records) != 1 || records[0].Detail != id || records[0].Result != sessions.JobExited || *records[0].ExitCode != 3 || records[0].By != person {
		t.Errorf("the audit has %+v, %v", records, err)
	}
}

func TestTheSameCallStartsOneJob(t *testing.T) {
	h := newHome(t)
	r, _ := h.start()
	if _, done, err := r.Started(t.Context(), toolCall("one")); done || err != nil {
		t.Errorf("before it was called it has started: %v", err)
	}
	line := waitForFileLine("go") + `echo x >>"$JOB_DIR/times"`
	id := startJob(t, r, "one", line)
	if again := startJob(t, r, "one", line); again != id {
		t.Errorf("the second time it is %s, the first time %s", again, id)
	}
	if result, done, err := r.Started(t.Context(), toolCall("one")); !done || err != nil || !strings.Contains(fmt.Sprint(result), id) {
		t.Errorf("an interrupted call finds %v, %v, %v", result, done, err)
	}
	must(t, os.WriteFile(filepath.Join(h.workspace(), "go"), nil, 0o600))
	h.wantOneMessage(id, bus.JobEnded, "exit code 0")
	if again := startJob(t, r, "one", line); again != id {
		t.Errorf("after its end it is %s", again)
	}
	if raw, err := os.ReadFile(filepath.Join(h.workspace(), jobtools.Folder(id), "times")); err != nil || string(raw) != "x\n" {
		t.Errorf("it ran %q, %v", raw, err)
	}
}

func TestAJobIsStoppedWithAllThatItStarted(t *testing.T) {
	h := newHome(t)
	r, _ := h.start()
	line, mark := endlessCommand(t)
	id := startJob(t, r, "one", line)
	h.waitRunning(id)
	if len(processesWith(mark)) == 0 {
		t.Fatal("its processes cannot be seen: the test cannot fail")
	}
	status, err := r.Stop(t.Context(), session, id)
	if err != nil || status.State != sessions.JobStopped {
		t.Fatalf("it is %+v, %v", status, err)
	}
	if left := processesWith(mark); len(left) > 0 {
		t.Errorf("after it was stopped there are %v", left)
	}
	h.waitReported(id)
	if mail := h.sessionMail(); len(mail) > 0 { // the call's result has said it
		t.Errorf("the session was told %+v", mail)
	}
	if again, err := r.Stop(t.Context(), session, id); err != nil || again.State != sessions.JobStopped {
		t.Errorf("stopped again it is %+v, %v", again, err)
	}
}

func TestACommandStopsAllJobsOfItsSession(t *testing.T) {
	h := newHome(t)
	r, _ := h.start()
	var ids []string
	for _, key := range []string{"one", "two"} {
		line, _ := endlessCommand(t)
		ids = append(ids, startJob(t, r, key, line))
		h.waitRunning(ids[len(ids)-1])
	}
	if n, err := r.Count(t.Context(), session); n != 2 || err != nil {
		t.Errorf("%d run, %v", n, err)
	}
	if n, err := r.StopAll(t.Context(), "main:telegram:8", "stop"); n != 0 || err != nil {
		t.Errorf("another session stopped %d, %v", n, err)
	}
	for range 2 {
		if n, err := r.StopAll(t.Context(), session, "stop"); n != 2 || err != nil {
			t.Errorf("%d were stopped, %v", n, err)
		}
	}
	for _, id := range ids {
		h.waitState(id, sessions.JobStopped)
		h.wantOneMessage(id, bus.Notice, "was stopped")
	}
}

func TestAJobEndsAtItsTime(t *testing.T) {
	h := newHome(t)
	r, _ := h.start()
	line, _ := endlessCommand(t)
	o := order(line)
	o.Timeout = 2 * time.Hour
	if _, err := r.Start(t.Context(), toolCall("long"), o); err == nil || !strings.Contains(err.Error(), "1h") {
		t.Errorf("one that wants too long gives %v", err)
	}
	o.Timeout = time.Second
	_, err := r.Start(t.Context(), toolCall("one"), o)
	must(t, err)
	all, err := r.List(t.Context(), session)
	if err != nil || len(all) != 1 {
		t.Fatalf("the jobs are %+v, %v", all, err)
	}
	h.waitState(all[0].ID, sessions.JobKilled)
	h.wantOneMessage(all[0].ID, bus.JobEnded, "it wasn't done after")
}

func TestADrainEndsJobsAndTellsThemAsLost(t *testing.T) {
	h := newHome(t)
	r, stop := h.start()
	line, mark := endlessCommand(t)
	id := startJob(t, r, "one", line)
	h.waitRunning(id)
	stop()
	if left := processesWith(mark); len(left) > 0 {
		t.Errorf("after the drain there are %v", left)
	}
	h.waitState(id, sessions.JobLost)
	h.wantOneMessage(id, bus.JobEnded, "shut down")
	if _, err := r.Start(t.Context(), toolCall("late"), order("true")); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("a job after the drain gives %v", err)
	}
	_, stop = h.start() // the next process has nothing to add
	defer stop()
	waitFor(t, "the next process to look", func() bool { open, err := h.store.OpenJobs(t.Context()); return err == nil && len(open) == 0 })
	h.wantOneMessage(id, bus.JobEnded, "shut down")
}

func TestAJobEndsWithItsHold(t *testing.T) {
	h := newHome(t)
	r, stop := h.start()
	line, mark := endlessCommand(t)
	id := startJob(t, r, "one", line)
	h.waitRunning(id)
	must(t, h.bus.Close()) // all holds are lost
	waitFor(t, "the job to be gone", func() bool { return len(processesWith(mark)) == 0 })
	j := h.waitState(id, sessions.JobLost)
	if j.Told {
		t.Error("it is noted as told, and there is no bus")
	}
	stop()
	h.openBus()
	h.start()
	h.wantOneMessage(id, bus.JobEnded, "cut off")
}

// A process that died has left a job in the state running, one whose end it has not reported, and one that it had to
// stop.
func TestJobsOfADeadProcessAreReported(t *testing.T) {
	h := newHome(t)
	route := json.RawMessage(`{"at":{"channel":"telegram","chat":"42"},"name":"Anna"}`)
	code := 4
	for _, id := range []string{"running", "ended", "stopping"} {
		j := sessions.Job{ID: id, Session: session, Person: person, Tool: "exec_shell", Command: "make it", Route: route, Started: time.Now(), Deadline: time.Now().Add(time.Hour)}
		must(t, h.store.BeginJob(t.Context(), j, sessions.JobLimits{Session: 9, Person: 9}))
		if id == "ended" {
			j.State, j.ExitCode, j.Ended = sessions.JobExited, &code, time.Now()
			_, err := h.store.EndJob(t.Context(), j)
			must(t, err)
		}
	}
	_, err := h.store.StopJobs(t.Context(), session, "stopping", "stop")
	must(t, err)
	_, release, err := h.bus.Hold(t.Context(), "job/running") // its process may still live
	must(t, err)
	h.start()
	h.wantOneMessage("ended", bus.JobEnded, "exit code 4")
	h.wantOneMessage("stopping", bus.Notice, "was stopped")
	if j, err := h.store.Job(t.Context(), "running"); err != nil || j.State != sessions.JobRunning {
		t.Errorf("one whose process lives is %+v, %v", j, err)
	}
	release()
	h.wantOneMessage("running", bus.JobEnded, "is lost")
	if j := h.waitReported("running"); j.State != sessions.JobLost {
		t.Errorf("it is %+v", j)
	}
}

func TestJobsAreLimited(t *testing.T) {
	h := newHome(t)
	h.settings.Limits.Session = 1
	r, _ := h.start()
	id := startJob(t, r, "one", waitForFileLine("go"))
	if _, err := r.Start(t.Context(), toolCall("two"), order("true")); err == nil || !strings.Contains(err.Error(), "too many jobs are running for this conversation: the limit is 1") {
		t.Errorf("a second gives %v", err)
	}
	must(t, os.WriteFile(filepath.Join(h.workspace(), "go"), nil, 0o600))
	h.waitReported(id)
	startJob(t, r, "two", "true")
}

func TestAForgottenJobEndsAndNobodyIsTold(t *testing.T) {
	h := newHome(t)
	r, stop := h.start()
	line, mark := endlessCommand(t)
	h.waitRunning(startJob(t, r, "one", line))
	_, err := h.store.EraseSession(t.Context(), session)
	must(t, err)
	waitFor(t, "the job to be gone", func() bool { return len(processesWith(mark)) == 0 && r.CountRunning() == 0 })
	stop()
	if mail := h.sessionMail(); len(mail) > 0 {
		t.Errorf("the session was told %+v", mail)
	}
	if _, err := r.Start(t.Context(), toolCall("late"), order("true")); err == nil {
		t.Error("a job of a forgotten session was started")
	}
}

// A person who may no longer talk to the bot starts no turn with a job that is still running.
func TestTheEndOfARevokedPersonsJob(t *testing.T) {
	h := newHome(t)
	h.revoked = true
	r, _ := h.start()
	h.wantOneMessage(startJob(t, r, "one", "true"), bus.Notice, "exit code 0")
}

// While a job with network access runs, the guard is told which.
func TestWhichJobReachesTheNetwork(t *testing.T) {
	h := newHome(t)
	r, _ := h.start()
	named := func(c tools.Call) string {
		t.Helper()
		carrier, err := r.NetworkedJob(t.Context(), c)
		must(t, err)
		return carrier
	}
	startJob(t, r, "offline", "sleep 300")
	if got := named(toolCall("x")); got != "" {
		t.Errorf("none does, and it is %q", got)
	}
	with := toolCall("with")
	with.Name = "spawn"
	_, err := r.Start(t.Context(), with, order("sleep 300"))
	must(t, err)
	elsewhere := toolCall("x")
	elsewhere.Session = "main:telegram:43"
	if got := named(elsewhere); got != "" {
		t.Errorf("of another session it is %q", got)
	}
	got := named(toolCall("x"))
	id, ok := strings.CutPrefix(got, "the job ")
	if !ok {
		t.Fatalf("it is %q", got)
	}
	_, err = r.Stop(t.Context(), session, id)
	must(t, err)
	if got := named(toolCall("x")); got != "" {
		t.Errorf("once it has ended it is %q", got)
	}
}

func TestAJobOfAnotherSessionIsNotFound(t *testing.T) {
	h := newHome(t)
	r, _ := h.start()
	id := startJob(t, r, "one", waitForFileLine("go"))
	const another = "main:telegram:8"
	if _, _, err := r.Find(t.Context(), another, id); err == nil || strings.Contains(err.Error(), "until") {
		t.Errorf("another session finds %v", err)
	}
	if _, err := r.Stop(t.Context(), another, id); err == nil {
		t.Error("another session has stopped it")
	}
	if all, err := r.List(t.Context(), another); err != nil || len(all) > 0 {
		t.Errorf("another session sees %v, %v", all, err)
	}
	must(t, os.WriteFile(filepath.Join(h.workspace(), "go"), nil, 0o600))
	h.waitState(id, sessions.JobExited)
}

func TestMuchOutputIsBounded(t *testing.T) {
	h := newHome(t)
	r, _ := h.start()
	id := startJob(t, r, "one", `head -c 12000000 /dev/zero | tr '\0' x; echo; echo the end hunter2`)
	h.waitReported(id)
	j := h.waitState(id, sessions.JobExited)
	if len(j.Output) > 32<<10 || !strings.HasSuffix(j.Output, "the end ***\n") || j.Printed < 12000000 {
		t.Errorf("of %d bytes %d are kept: …%q", j.Printed, len(j.Output), j.Output[max(0, len(j.Output)-40):])
	}
	info, err := os.Stat(filepath.Join(h.workspace(), jobtools.File(id)))
	if err != nil || info.Size() > 9<<20 {
		t.Errorf("the file is %v, %v", info, err)
	}
}

// Watchers of the server are told that a job has printed more, but not what, and only if there is more.
func TestWatchersAreToldOfOutput(t *testing.T) {
	h := newHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	news, err := h.bus.Subscribe(ctx, bus.ServerFeed(), 0)
	must(t, err)
	r, _ := h.start()
	id := startJob(t, r, "a", "echo hunter2; while [ ! -e jobs/go ]; do sleep 0.05; done")
	var told []string
	for e, err := range news {
		must(t, err)
		if e.Session != session || e.News == nil || e.News.ID != id || e.Turn != "t1" {
			continue
		}
		told = append(told, e.Type+" "+e.News.State)
		if e.Type == bus.JobPrinted {
			j, err := h.store.Job(t.Context(), id)
			must(t, err)
			if j.Output != "***\n" {
				t.Errorf("it is told before the record has it: %q", j.Output)
			}
			must(t, os.WriteFile(filepath.Join(h.workspace(), "jobs", "go"), nil, 0o600))
		}
		if e.News.State == sessions.JobExited {
			break
		}
	}
	if want := []string{"job running", "job_output ", "job exited"}; !slices.Equal(told, want) {
		t.Errorf("told is %q, want %q", told, want)
	}
}
