package worker_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/agent/prices"
	"parley/agent/worker"
	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/sessions"
	"parley/sessions/activity"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/tools"
	"parley/tools/testrace"
)

// Kinds of processes in these tests, by what they do in addition.
const (
	inLongTurns  = "in long turns"
	askingPeople = "asking people"
	// findingFacts also looks for facts to remember.
	findingFacts = "finding facts"
	// readingAloud reads answers aloud.
	readingAloud = "reading aloud"
	// refusedAloud has a speech model that refuses to read answers aloud.
	refusedAloud = "refused aloud"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AGENT_CRASH_DIR"); dir != "" {
		if err := crashChild(dir, os.Getenv("AGENT_CRASH_AT"), os.Getenv("AGENT_CRASH_HOW")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(sideBySide())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testrace.Run(m.Run))
}

// sideBySide returns how many tests run in parallel: twice the default, or as many as a flag says, because they mostly
// wait for processes and for pauses between attempts.
func sideBySide() int {
	n := 2 * runtime.GOMAXPROCS(0)
	flag.Visit(func(f *flag.Flag) {
		if given, err := strconv.Atoi(f.Value.String()); err == nil && f.Name == "test.parallel" {
			n = given
		}
	})
	return n
}

// crashChild is the process that is killed.
func crashChild(dir, at, how string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	home, err := openIn(ctx, dir, bus.Caps{})
	if err != nil {
		return err
	}
	return crashWork(ctx, home, at, how)
}

// crashWork works on the bus and store of a home until nothing waits anymore, or until it kills
// the process at a point.
func crashWork(ctx context.Context, home *crashHome, at, how string) error {
	b := home.bus
	effects := filepath.Join(home.dir, "effects")
	var point func(string)
	if at != "" {
		name, count, _ := strings.Cut(at, "/")
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			n = 1
		}
		var left atomic.Int64
		left.Store(n)
		point = func(passed string) {
			if slices.Contains(strings.Split(name, ","), passed) && left.Add(-1) == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	home.passPoints(point)
	made := crashAgent(effects)
	made.Fetch = func(_ context.Context, f agent.FileToFetch) (sessions.Fetched, error) {
		path := filepath.Join(home.dir, "files", fmt.Sprint(f.N))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return sessions.Fetched{}, err
		}
		return sessions.Fetched{Path: "files/" + fmt.Sprint(f.N), Size: 1}, os.WriteFile(path, []byte("x"), 0o600)
	}
	switch {
	case at == poisoned:
		made, point = poisonAgent(), nil
	case at == threeInFlight, how == costly:
		made, point = costlyAgent(filepath.Join(home.dir, "waited"), at == threeInFlight), nil
	}
	if how == readingAloud || how == refusedAloud {
		voice, err := newDiskVoice(home.dir, point)
		if err != nil {
			return err
		}
		if made.Voice = voice; how == refusedAloud {
			made.Voice = refusingVoice{voice}
		}
	}
	if how == inLongTurns {
		made = longAgent(effects)
	}
	w := crashWorker(home, made, point)
	if how == askingPeople || how == findingFacts {
		book, err := home.openBook(ctx)
		if err != nil {
			return err
		}
		defer book.Close()
		if how == askingPeople {
			w = askingWorker(home, book, askingAgent(made), point)
		} else {
			w = crashWorker(home, findingAgent(home, book, made), point)
		}
	}
	if how == awaitingNode {
		w = nodeWorker(home, made, point)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.Run(running) }()
	for {
		d, err := b.Depth(ctx, bus.InboundTopic)
		if err != nil {
			return err
		}
		if d.Waiting+d.Leased+d.Delayed == 0 {
			stop()
			return <-done
		}
		<-time.After(2 * time.Millisecond)
	}
}

func crashWorker(h *crashHome, made agent.Agent, point func(string)) *worker.Worker {
	return worker.New(crashConfig(h, made, point))
}

// crashConfig returns the worker's configuration.
func crashConfig(h *crashHome, made agent.Agent, point func(string)) agent.Config {
	made.Model = prices.Model{Model: made.Model, Price: crashPrice()}
	return agent.Config{
		Bus: h.bus, Events: h.bus, Store: h.store, Budget: h.store, Money: h.store.Money(),
		Agents:      func(context.Context, string) (agent.Agent, error) { return made, nil },
		Limits:      crashLimits,
		MaxInFlight: 64, Drain: time.Second, Log: slog.New(slog.DiscardHandler), Point: point,
	}
}

// crashAgent returns an agent with one tool of each effect. Each run of a tool adds a line to the file.
func crashAgent(effects string) agent.Agent {
	ran := func(call tools.Call, say string) error {
		f, err := os.OpenFile(effects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(f, "%s %s\n", call.Name, call.Key); err != nil {
			return err
		}
		return f.Close()
	}
	happened := func(_ context.Context, call tools.Call, a echoArgs) (any, bool, error) {
		all, err := os.ReadFile(effects)
		return map[string]string{"said": a.Say}, strings.Contains(string(all), call.Key), err
	}
	reconcilable := tools.New(tools.Spec{Name: "reconcilable", Description: "x", Effect: tools.Reconcilable},
		func(_ context.Context, call tools.Call, a echoArgs) (any, error) {
			return map[string]string{"said": a.Say}, ran(call, a.Say)
		}, tools.Reconcile(happened))
	m := model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		switch n := len(toolResults(r)); n {
		case 0:
			return callsAnswer(`pure {"say":"1"}`, `pure {"say":"2"}`), nil
		case 2:
			return callsAnswer(`idempotent {"say":"3"}`, `reconcilable {"say":"4"}`, `once {"say":"5"}`), nil
		}
		return textAnswer("done: " + strings.Join(toolResults(r), "")), nil
	})
	return agent.Agent{
		Name: "main", Model: m,
		Tools: tools.NewSet(echo("pure", tools.Pure, ran), echo("idempotent", tools.Idempotent, ran), reconcilable, echo("once", tools.Once, ran)),
		Prompt: func(context.Context, agent.Asker) (string, error) {
			return "", nil
		},
		MaxIterations: 20, ErrorLimit: 3, MaxParallelTools: 5, ContextTokens: 64000, Steer: true,
	}
}

// The process is killed once at each line of the turn's protocol. The next process must leave the same as one process
// that was never killed.
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	points := []string{"c1:before", "c1", "c6:before", "c6", "c7:published", "c7", "settled"}
	for step := 1; step <= 3; step++ {
		points = append(points, fmt.Sprintf("c3:before/%d", step), fmt.Sprintf("c3/%d", step))
	}
	for call := 1; call <= 5; call++ { // two pure ones, and one of each other effect
		for _, at := range []string{"c4:before", "c4", "c4:held", "c5:before", "c5"} {
			points = append(points, fmt.Sprintf("%s/%d", at, call))
		}
	}
	for _, at := range points {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			publishFirstMessage(t, dir)
			runKilled(t, dir, at)
			runToEnd(t, dir)
			checkCrash(t, dir)
		})
	}
}

// Two messages that have begun a turn together are one turn, wherever it is cut off.
func TestKilledWithTwoMessagesInATurn(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c1:before", "c1", "c3/2", "c6", "c7:published", "c7", "settled"} {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			publishFirstMessage(t, dir)
			publishSaid(t, dir, "m2", "1", "and this")
			runKilled(t, dir, at)
			runToEnd(t, dir)
			checkCrash(t, dir)
		})
	}
}

// The file has either all of these or none, wherever the process is killed: the end of a turn, the entry that its reply
// is published, and the reply on the bus.
func TestATurnsEndAndItsReplyAreWrittenTogether(t *testing.T) {
	t.Parallel()
	for at, there := range map[string]int{
		"c6:before": 0, "c3:before/3": 0, "share:before": 0, "share:written": 0, // nothing is committed yet
		"share:over": 1, "c3/3": 1, "c6": 1, "c7": 1, "settled": 1,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			shareOneFile(t, dir)
			publishFirstMessage(t, dir)
			runKilled(t, dir, at)
			db, err := sqldb.OpenFile(t.Context(), filepath.Join(dir, "sessions.db"), sqlstore.Schema(), sqlbook.Schema(), sqlitebus.Schema())
			if err != nil {
				t.Fatal(err)
			}
			count := func(query string) (n int) {
				if err := db.Read.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			ends := count("SELECT count(*) FROM entries WHERE turn = 'm1' AND kind = 'turn_done'")
			published := count("SELECT count(*) FROM entries WHERE turn = 'm1' AND kind = 'published'")
			episodes := count("SELECT count(*) FROM entries WHERE turn = 'm1' AND data LIKE '%\"episode\"%'")
			mail := count("SELECT count(*) FROM message WHERE topic = 'outbound/test' AND id = 'm1#reply'")
			if ends != there || episodes != there || published != there || mail != there {
				t.Errorf("the file has %d ends, %d episodes, %d records of a publication and %d replies, want %d of each", ends, episodes, published, mail, there)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			runToEnd(t, dir)
			checkCrash(t, dir)
		})
	}
}

// If a worker dies right after a turn's end, the next one tells the turn's watchers and the audit.
func TestWatchersLearnOfAnEndThatWasCutOff(t *testing.T) {
	runSharedAndSeparate(t, "", testWatchersLearnOfAnEnd)
}

func testWatchersLearnOfAnEnd(t *testing.T, dir string) {
	var noted []sessions.AuditRecord
	publishFirstMessage(t, dir)
	runKilled(t, dir, "c6")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	h := openHome(t, dir)
	feed, err := h.bus.Subscribe(ctx, bus.SessionFeed("main:test:1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	cfg := crashConfig(h, crashAgent(filepath.Join(dir, "effects")), nil)
	cfg.QueueAudit = func(r sessions.AuditRecord) { noted = append(noted, r) }
	go func() { done <- worker.New(cfg).Run(running) }()
	told := false
	for e, err := range feed {
		if told = err == nil && e.Type == bus.TurnComplete && e.Turn == "m1"; told {
			break
		}
	}
	if !told {
		t.Error("nobody was told that the turn is over")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(noted) != 1 || noted[0].Turn != "m1" || noted[0].Result != sessions.TurnCompleted || !noted[0].MayBeRecorded {
		t.Errorf("the audit is told %+v", noted)
	}
}

// A turn whose process is killed again and again is given up, and the person is told.
func TestKilledTooOften(t *testing.T) {
	t.Parallel()
	runSharedAndSeparate(t, "", testKilledTooOften)
}

func testKilledTooOften(t *testing.T, dir string) {
	publishSaid(t, dir, "m0", "1", "go")
	runKilled(t, dir, "c7") // it is answered, and still there
	publishFirstMessage(t, dir)
	publishSaid(t, dir, "m2", "1", "and this")
	deaths := 0
	for over := false; !over; deaths++ { // the last one finds it given up, and not yet buried
		runKilled(t, dir, "c3:before,c7")
		over = isDone(t, dir, "m1")
	}
	// It begins once and is resumed three times. If it dies sooner than the disk has its
	// beginning, that is not counted, but for the first two times at most.
	if deaths < 5 || deaths > 7 {
		t.Errorf("the turn was given up after %d deaths, want 4 to 6", deaths-1)
	}
	runToEnd(t, dir)
	h := openHome(t, dir)
	if sum := activityOf(t, h.store.Activity()).Total; sum.Turns != (activity.Turns{Done: 1, GivenUp: 1}) {
		t.Errorf("counted %+v", sum)
	}
	b := h.bus
	out := outboundMail(t, b)
	if len(out) != 2 || out[0].ID != "m0#reply" || !strings.Contains(out[1].Text, "given up on it") {
		t.Errorf("the sender was told %+v", out)
	}
	dead, err := b.DeadLetters(t.Context(), bus.InboundTopic, "", 10)
	if err != nil || len(dead) != 2 || dead[0].Message.ID != "m1" || dead[1].Message.ID != "m2" {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// isDone reports whether the log has the end of a turn.
func isDone(t *testing.T, dir, turn string) bool {
	t.Helper()
	h := openHome(t, dir)
	defer h.Close()
	for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Turn == turn && e.Kind == sessions.KindTurnDone {
			return true
		}
	}
	return false
}

func publishFirstMessage(t *testing.T, dir string) {
	t.Helper()
	publishSaid(t, dir, "m1", "1", "go")
}

// publishSaid publishes a message of the chat's own person.
func publishSaid(t *testing.T, dir, id, chat, said string) {
	t.Helper()
	publishInbound(t, dir, bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann" + chat}, At: bus.Address{Channel: "test", Chat: chat}, Text: said})
}

func publishInbound(t *testing.T, dir string, in bus.Inbound) {
	t.Helper()
	h := openHome(t, dir)
	defer h.Close()
	body, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: in.ID, Key: "main:test:" + in.At.Chat, Body: body}); err != nil {
		t.Fatal(err)
	}
}

// poisoned is the kind of a process that one turn kills.
const poisoned = "poisoned"

// poisonAgent returns an agent that answers after a while. A message that says so kills the process.
func poisonAgent() agent.Agent {
	made := crashAgent("")
	made.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "drop dead" {
			<-time.After(100 * time.Millisecond) // by then the others are at work
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		<-time.After(200 * time.Millisecond)
		return textAnswer("done"), nil
	})
	return made
}

// Turns beside a turn that kills each process are cut off with it, but not given up with it.
func TestOneTurnThatKillsDoesNotTakeTheOthersWithIt(t *testing.T) {
	t.Parallel()
	runSharedAndSeparate(t, "", testOneTurnThatKills)
}

func testOneTurnThatKills(t *testing.T, dir string) {
	const others = 20
	publishSaid(t, dir, "m", "0", "drop dead")
	for n := range others {
		publishSaid(t, dir, fmt.Sprint("m", n), fmt.Sprint(n+1), "go")
	}
	for run := 0; crashRun(t, dir, poisoned, "") != nil; run++ {
		if run == 10 {
			t.Fatal("there is no end to it")
		}
	}
	b := openHome(t, dir).bus
	said := map[string]int{}
	for range others + 1 {
		said[outboundMail(t, b)[0].Text]++
	}
	// Chance may have one or two at work beside it each time.
	if said["done"] < others*3/4 {
		t.Errorf("people were told %v, want nearly %d answers", said, others)
	}
}

// crashRun runs a process on dir, until it is killed at a point or has nothing left to do.
func crashRun(t *testing.T, dir, at, how string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cmp.Or(testrace.Program(), os.Args[0]))
	cmd.Env = append(os.Environ(), "AGENT_CRASH_DIR="+dir, "AGENT_CRASH_AT="+at, "AGENT_CRASH_HOW="+how)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if err != nil && stderr.Len() > 0 {
		t.Errorf("child: %s", stderr.String())
	}
	return err
}

// runKilled runs a process, and fails the test unless it is killed at a point.
func runKilled(t *testing.T, dir, at string, how ...string) {
	t.Helper()
	if err := crashRun(t, dir, at, strings.Join(how, "")); err == nil {
		t.Fatal("the process was not killed: the point is not passed")
	}
}

// runToEnd does the next process's work in this process, until nothing is left.
func runToEnd(t *testing.T, dir string, how ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	h := openHome(t, dir)
	defer h.Close()
	if err := crashWork(ctx, h, "", strings.Join(how, "")); err != nil {
		t.Fatal(err)
	}
}

func outboundMail(t *testing.T, b *sqlitebus.Bus) []bus.Outbound {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	lease, err := b.Claim(ctx, bus.OutboundTopic("test"))
	if err != nil {
		t.Fatalf("nothing was said: %v", err)
	}
	mail, err := lease.Mail(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []bus.Outbound
	for _, m := range mail {
		out, err := bus.DecodeOutbound(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out)
	}
	return all
}

func checkCrash(t *testing.T, dir string) {
	t.Helper()
	h := openHome(t, dir)
	out := outboundMail(t, h.bus)
	if len(out) != 1 || out[0].ID != "m1#reply" || !strings.HasPrefix(out[0].Text, "done: ") {
		t.Errorf("said %+v, want one reply", out)
	}
	effects, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(effects)) {
		name, _, _ := strings.Cut(line, " ")
		counts[name]++
	}
	// One point is killed once, so at most one call can have run twice.
	if counts["pure"] > 4 || counts["idempotent"] > 2 || counts["reconcilable"] != 1 || counts["once"] > 1 {
		t.Errorf("runs: %v", counts)
	}
	if counts["once"] == 0 && !strings.Contains(out[0].Text, "OUTCOME UNKNOWN") {
		t.Errorf("a call of once did not run and the model was not told: %s", out[0].Text)
	}
	open, done := map[string]bool{}, 0
	for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case sessions.KindToolUse:
			open[e.Call] = true
		case sessions.KindToolResult:
			if !open[e.Call] {
				t.Errorf("call %s has two results", e.Call)
			}
			delete(open, e.Call)
		case sessions.KindTurnDone:
			done++
		}
	}
	if len(open) > 0 || done != 1 {
		t.Errorf("%d calls without a result, %d ends of the turn", len(open), done)
	}
	if all := episodesOf(t, h.store, "main:test:1"); len(all) != 1 || all[0].Entry > 3 || len(all[0].Deeds) != 4 || !strings.HasPrefix(all[0].Answer, "done: ") {
		t.Errorf("the turn has left the episodes %+v", all)
	}
	checkMoney(t, h, "1")
	checkActivity(t, h)
}
