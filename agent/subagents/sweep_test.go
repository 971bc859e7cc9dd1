package subagents_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent/subagents"
	"parley/agent/task"
	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqlstore"
	stored "parley/sessions/subagents"
	"parley/tools"
)

const (
	parent = "main:telegram:2"
	child  = "main:agent:p:a"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newStore opens a store in which the parent's session exists.
func newStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	_, err = store.Open(t.Context(), parent, 1)
	must(t, err)
	return store
}

// newBus opens a bus.
func newBus(t *testing.T) *sqlitebus.Bus {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

// newService makes a Service over a real bus and store, in which the parent's session exists.
func newService(t *testing.T) (d *subagents.Service, b *sqlitebus.Bus, table stored.Table) {
	t.Helper()
	b = newBus(t)
	store := newStore(t)
	table = store.SubAgents()
	return subagents.New(subagents.Config{
		Table: table, Bus: b, Sessions: store, Log: slog.New(slog.DiscardHandler),
		Admit: func(context.Context, bus.Person, bus.Address) (bus.Caller, bool, error) {
			return bus.Caller{}, true, nil
		},
	}), b, table
}

// prepareTask records a task that was prepared that long ago. awaited says whether its turn waits for it.
func prepareTask(t *testing.T, table stored.Table, ago time.Duration, awaited bool) {
	t.Helper()
	mail, err := json.Marshal(bus.Inbound{
		ID: "tasked:a", Kind: bus.Tasked, From: bus.Person{ID: "telegram:2"}, At: bus.Address{Channel: bus.SubAgents, Chat: "p", Thread: "a"},
		Group: true, Mentioned: true, Text: "look", SentAt: time.Now(), Task: &bus.Task{ID: "a", Agent: "main", Session: parent},
	})
	must(t, err)
	must(t, table.Prepare(t.Context(), stored.Task{
		ID: "a", Parent: parent, Session: child, Agent: "main", Person: "telegram:2", Turn: "t", Call: "c", Awaited: awaited,
		Mail: mail, Route: []byte(`{"at":{"channel":"telegram","chat":"2"}}`), Started: time.Now().Add(-ago),
	}, subagents.MaxOpen))
}

// runSweeps has the Service sweep until the test ends.
func runSweeps(t *testing.T, d *subagents.Service) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
}

// receiveMail waits for n messages to a session and returns them.
func receiveMail(t *testing.T, b *sqlitebus.Bus, n int) (lease bus.Lease, all []bus.Inbound) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := b.Claim(ctx, bus.InboundTopic)
	must(t, err)
	for after := int64(0); len(all) < n; {
		got, err := bustest.AwaitMail(ctx, lease, after)
		must(t, err)
		for _, m := range got {
			in, err := bus.DecodeInbound(m.Body)
			must(t, err)
			all, after = append(all, in), m.Seq
		}
	}
	return lease, all
}

// If the process dies after it has recorded that a task is handed out, and before that is on the bus, and then somebody
// says /stop, the sub-agent's session still gets the task, because only that session can end it.
func TestAStoppedTaskThatWasNeverHandedOutEnds(t *testing.T) {
	d, b, table := newService(t)
	prepareTask(t, table, time.Minute, true)
	must(t, table.Start(t.Context(), "a"))
	if n, err := d.StopAll(t.Context(), parent, "stop"); err != nil || n != 1 {
		t.Fatalf("%d are stopped: %v", n, err)
	}
	runSweeps(t, d)
	lease, all := receiveMail(t, b, 2)
	if lease.Claim().Key != child || all[0].Kind != bus.Command || all[1].Kind != bus.Tasked {
		t.Errorf("%s got %+v", lease.Claim().Key, all)
	}
}

// A task that its turn never hands out is ended, because it would count forever toward the conversation's limit. If the
// turn waits for the task, it is told.
func TestATaskThatNobodyHandsOutEnds(t *testing.T) {
	d, b, table := newService(t)
	prepareTask(t, table, 2*time.Hour, true)
	runSweeps(t, d)
	parleytest.WaitFor(t, "its end", func() bool {
		n, err := d.Count(t.Context(), parent)
		must(t, err)
		return n == 0
	})
	must(t, d.Start(t.Context(), "a"))
	lease, all := receiveMail(t, b, 1)
	if lease.Claim().Key != parent || all[0].Kind != bus.TaskEnded || all[0].Task.State != stored.Cancelled || !all[0].Task.Awaited {
		t.Errorf("%s got %+v", lease.Claim().Key, all[0])
	}
}

// If a call that hands out a task fails because the store is away, its turn continues, and the conversation is told
// that the task never began.
func TestATaskThatWasNeverBegunIsTold(t *testing.T) {
	d, b, table := newService(t)
	prepareTask(t, table, 3*time.Minute, false)
	runSweeps(t, d)
	lease, all := receiveMail(t, b, 1)
	if lease.Claim().Key != parent || all[0].Kind != bus.TaskEnded || all[0].Task.State != stored.Failed || !strings.Contains(all[0].Text, "never begun") {
		t.Errorf("%s got %+v", lease.Claim().Key, all[0])
	}
}

// A turn that is stopped ends its tasks that were recorded and not handed out, and no others. If the call hands one out
// after that, no agent gets the task.
func TestATurnsEndEndsUnsentTasks(t *testing.T) {
	d, _, table := newService(t)
	prepareTask(t, table, time.Second, false)
	must(t, d.EndTurn(t.Context(), parent, "another turn"))
	if got, err := table.Get(t.Context(), "a"); err != nil || got.State != stored.Prepared {
		t.Errorf("after the end of another turn it is %+v, %v", got, err)
	}
	must(t, d.EndTurn(t.Context(), parent, "t"))
	must(t, d.Start(t.Context(), "a"))
	if got, err := table.Get(t.Context(), "a"); err != nil || got.State != stored.Cancelled || !got.Told {
		t.Errorf("after its turn's end it is %+v, %v", got, err)
	}
}

// A task that was prepared a moment ago is left to its turn.
func TestATaskThatIsAboutToBeHandedOutIsLeftAlone(t *testing.T) {
	_, _, table := newService(t)
	prepareTask(t, table, time.Minute, true)
	if all, err := table.Untold(t.Context(), time.Now()); err != nil || len(all) != 0 {
		t.Errorf("to be looked after are %v, %v", all, err)
	}
}

// The copies for a task that is not handed out after all are erased. The same call does not wait for that task.
func TestUnusedCopiesAreErased(t *testing.T) {
	store := newStore(t)
	d := subagents.New(subagents.Config{
		Table: store.SubAgents(), Bus: newBus(t), Log: slog.New(slog.DiscardHandler),
		Ready:    func(context.Context) (string, error) { return "", nil },
		MaySpawn: func(agent string) []string { return []string{agent} },
		Copy: func(context.Context, tools.Call, string, []string) error {
			return tools.Errorf(tools.ExecutionFailed, "the disk is full")
		},
	})
	call := tools.Call{Session: parent, Agent: "main", Key: "t#c", Person: "telegram:2", Address: "telegram:2"}
	what := tools.Task{Prompt: "look", Files: []string{"a"}}
	for _, code := range []tools.Code{tools.ExecutionFailed, tools.Cancelled} {
		_, err := d.Prepare(t.Context(), call, what)
		if refused, ok := errors.AsType[*tools.Error](err); !ok || refused.Code != code {
			t.Errorf("it is prepared with %v, want %s", err, code)
		}
	}
	if keys, err := store.SubAgents().Dropped(t.Context()); err != nil || len(keys) != 1 || !subagents.IsSubAgent(keys[0]) {
		t.Errorf("to be erased are %v, %v", keys, err)
	}
}

// A process that loses the session while it hands out a task leaves the task to the next holder, which may have handed
// it out meanwhile.
func TestAHolderThatIsCutOffEndsNoTaskOfTheNext(t *testing.T) {
	store := newStore(t)
	ctx, cut := context.WithCancel(t.Context())
	d := subagents.New(subagents.Config{
		Table: store.SubAgents(), Bus: newBus(t), Log: slog.New(slog.DiscardHandler),
		Ready:    func(context.Context) (string, error) { return "", nil },
		MaySpawn: func(agent string) []string { return []string{agent} },
		Point: func(at string) {
			if at == "spawn:prepared" {
				must(t, store.SubAgents().Start(t.Context(), stored.ID(parent, "t#c")))
				cut()
			}
		},
	})
	call := tools.Call{Session: parent, Agent: "main", Key: "t#c", Person: "telegram:2", Address: "telegram:2"}
	if _, err := d.Spawn(ctx, call, tools.Task{Prompt: "look"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the holder that is cut off gets %v", err)
	}
	if got, err := store.SubAgents().Get(t.Context(), stored.ID(parent, "t#c")); err != nil || got.State != stored.Running {
		t.Errorf("the task is %+v, %v", got, err)
	}
}

// Watchers of the server are told the states of a session's tasks: ids and states, for the session that has handed them
// out.
func TestWatchersAreToldTaskStates(t *testing.T) {
	d, b, table := newService(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	news, err := b.Subscribe(ctx, bus.ServerFeed(), 0)
	must(t, err)
	prepareTask(t, table, time.Second, true)
	must(t, d.Start(t.Context(), "a"))
	must(t, d.Report(t.Context(), task.Report{ID: "a", State: stored.Done, Text: "all is well"}))
	must(t, d.Report(t.Context(), task.Report{ID: "a", State: stored.Failed, Text: "once more"})) // the first report counts
	must(t, d.Drop(t.Context(), parent, "new"))
	want := []bus.News{{ID: "a", State: stored.Running}, {ID: "a", State: stored.Done}, {State: bus.StateErased}}
	for e, err := range news {
		must(t, err)
		if e.Type != bus.TaskMoved {
			continue
		}
		if e.Session != parent || e.News == nil || *e.News != want[0] || e.Turn != "" && e.Turn != "t" {
			t.Fatalf("told is %+v, %+v; want %+v", e, e.News, want[0])
		}
		if want = want[1:]; len(want) == 0 {
			return
		}
	}
	t.Errorf("nobody told %v", want)
}
