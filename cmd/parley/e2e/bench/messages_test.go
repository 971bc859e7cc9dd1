package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// These benchmarks run the real program against a Bot API server and a model
// server in this process, over loopback, with synchronous=FULL. The two servers
// and the bot share the machine's cores.

// A bench is a bot that is measured.
type bench struct {
	b     *testing.B
	tg    *telegramtest.Server
	model *agenttest.Server
	file  string // the path of its configuration

	// These fields belong to the process that was started last.
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	began  time.Time
	polls  int // how often the bot had polled the platform before this process was started
}

// newBench starts a bot of one process and waits until it polls.
func newBench(b *testing.B, script agenttest.Script) *bench {
	b.Helper()
	x := newBotBench(b, script, "")
	x.serve()
	x.polled()
	return x
}

// newBotBench returns a bot with more settings; none of its processes runs yet.
func newBotBench(b *testing.B, script agenttest.Script, more string) *bench {
	b.Helper()
	x := &bench{b: b, tg: telegramtest.New(parleytest.Token, "parleybot"), model: agenttest.New(script)}
	x.model.Keep(0)
	api, err := x.tg.Start("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.tg.Close() })
	x.file = benchFile(b, x.model.Start(b), api, more)
	return x
}

// benchFile writes the configuration of a bot that uses this model and this platform, and returns its path.
func benchFile(b *testing.B, model, api, more string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "parley.toml")
	text := fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\napi_key = \"none\"\n[log]\nlevel = \"warn\"\n[limits]\nuser_turns = 1000\nuser_turns_hour = 100000000\nuser_tokens_day = 1000000000000\n[channels.telegram]\nintroduce = \"never\"\nbot_token = %q\napi_url = %q\naccess = \"open\"\nowners = [1]\nrate_limit = \"none\"\n[http]\nlisten = \"\"\n[agents.defaults]\nqueue = \"followup\"\n%s",
		model, parleytest.Token, api, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// serve starts a process of the bot in a home of its own.
func (x *bench) serve(more ...string) {
	x.b.Helper()
	x.serveIn(x.b.TempDir(), more...)
}

// serveIn starts a process of the bot in this home.
func (x *bench) serveIn(home string, more ...string) {
	x.b.Helper()
	path, err := parleytest.Binary()
	if err != nil {
		x.b.Fatal(err)
	}
	args := append([]string{"--home", home, "--config", x.file, "serve"}, more...)
	x.polls = x.tg.Calls("getUpdates")
	x.began = time.Now()
	x.cmd, x.stderr = parleytest.Started(x.b, path, args...)
}

// polled waits until the bot polls its platform for messages.
func (x *bench) polled() {
	x.b.Helper()
	for x.tg.Calls("getUpdates") == x.polls {
		if time.Since(x.began) > 10*time.Second {
			x.b.Fatalf("no poll: %s", x.stderr.String())
		}
		time.Sleep(100 * time.Microsecond) // measuring, not testing
	}
}

// wait waits until the bot has sent n messages to a chat.
func (x *bench) wait(chat int64, n int) {
	x.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := x.tg.WaitSent(ctx, chat, n); err != nil {
		x.b.Fatal(err)
	}
}

func (x *bench) rss() float64 { return memoryOf(x.b, x.cmd.Process.Pid, "VmRSS:") }

// memoryOf returns a figure of a process's memory in megabytes; name is its name in proc(5).
func memoryOf(b *testing.B, pid int, name string) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("no /proc here")
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			kb, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1024
		}
	}
	b.Fatalf("no %s of process %d", name, pid)
	return 0
}

// oneByOne measures the time from a message to its answer, one message after another.
func oneByOne(b *testing.B, script agenttest.Script) {
	x := newBench(b, script)
	var took []time.Duration
	n := 0
	for b.Loop() {
		if n%10 == 9 { // starts a new conversation, because most are short
			x.tg.Say(42, 42, "/new")
			n++
			x.wait(42, n)
		}
		began := time.Now()
		x.tg.Say(42, 42, "hello")
		n++
		x.wait(42, n)
		took = append(took, time.Since(began))
	}
	parleytest.Percentiles(b, took)
}

func BenchmarkOneMessage(b *testing.B) { oneByOne(b, agenttest.Always(agenttest.Reply("hello"))) }

func BenchmarkThreeToolRounds(b *testing.B) {
	oneByOne(b, func(r agenttest.Request) agenttest.Response {
		switch r.Rounds() {
		case 0:
			return agenttest.Calls(agenttest.ToolCall{Name: "list_directory", Args: `{"path":"."}`})
		case 1:
			return agenttest.Calls(agenttest.ToolCall{Name: "memory_read", Args: `{}`})
		case 2:
			return agenttest.Calls(agenttest.ToolCall{Name: "glob", Args: `{"pattern":"*.md"}`})
		}
		return agenttest.Reply("done")
	})
}

// inTurn returns who says the nth message in a chat when several are sent at once. Two people take turns, because
// several messages of one person in a row get one answer.
func inTurn(chat int64, n int) int64 { return chat + int64(n%2)*1_000_000 }

// BenchmarkManyChats makes 200 chats send ten messages each at once.
func BenchmarkManyChats(b *testing.B) {
	const chats, each = 200, 10
	x := newBench(b, func(r agenttest.Request) agenttest.Response { return agenttest.Reply("you said " + r.Said()) })
	round := 0
	for b.Loop() {
		for n := range each {
			for c := range int64(chats) {
				x.tg.Say(c+1, inTurn(c+1, n), strconv.Itoa(round*each+n))
			}
		}
		round++
		for c := range int64(chats) {
			x.wait(c+1, round*each)
		}
	}
	for c := range int64(chats) {
		for n, m := range x.tg.Sent(c + 1) {
			if m.Text != "you said "+strconv.Itoa(n) {
				b.Fatalf("chat %d: message %d is %q", c+1, n, m.Text)
			}
		}
	}
	b.ReportMetric(float64(chats*each*round)/b.Elapsed().Seconds(), "answers/s")
}

// slowModel measures how long it takes until this many chats are answered by a model that needs a second for each
// answer.
func slowModel(b *testing.B, chats int64) {
	x := newBench(b, agenttest.Always(agenttest.Reply("hello").After(time.Second)))
	rest := x.rss()
	round, most := 0, 0.0
	var took []time.Duration
	for b.Loop() {
		round++
		began := time.Now()
		for c := range chats {
			x.tg.Say(c+1, c+1, "hello")
		}
		time.Sleep(900 * time.Millisecond) // measuring, not testing
		most = max(most, x.rss())
		for c := range chats {
			x.wait(c+1, round)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	parleytest.Milliseconds(b, "all-answered-ms", took[len(took)/2])
	b.ReportMetric(rest, "MB-at-rest")
	b.ReportMetric(most, "MB-in-flight")
}

func BenchmarkSlowModel200(b *testing.B)  { slowModel(b, 200) }
func BenchmarkSlowModel2000(b *testing.B) { slowModel(b, 2000) }

func BenchmarkFirstStart(b *testing.B) { starts(b, func() string { return b.TempDir() }) }

func BenchmarkStart(b *testing.B) {
	home := b.TempDir()
	starts(b, func() string { return home })
}

// starts measures starts of the bot while a message waits for it: how long the bot takes to poll the platform, and to
// answer the message. It kills the process after each start.
func starts(b *testing.B, home func() string) {
	var polled, answered []time.Duration
	x := newBotBench(b, agenttest.Always(agenttest.Reply("hello")), "")
	for b.Loop() {
		x.tg.Say(1, 1, "are you there?")
		x.serveIn(home())
		x.polled()
		polled = append(polled, time.Since(x.began))
		x.wait(1, len(answered)+1)
		answered = append(answered, time.Since(x.began))
		for x.tg.Unconfirmed() > 0 { // otherwise the next home would answer the message again
			time.Sleep(time.Millisecond) // measuring, not testing
		}
		_ = x.cmd.Process.Kill()
		_ = x.cmd.Wait()
	}
	slices.Sort(polled)
	slices.Sort(answered)
	parleytest.Milliseconds(b, "polled-p50-ms", polled[len(polled)/2])
	parleytest.Milliseconds(b, "answered-p50-ms", answered[len(answered)/2])
}
