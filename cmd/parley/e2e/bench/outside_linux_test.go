package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// BenchmarkOutside measures what a user sees. The platform runs in this process; the model and the bot are processes of
// their own. Two simpler bots with platforms of their own run for comparison: an echo, which asks no model and stores
// nothing, and in dialogues a floor, which does only what no durable bot can leave out. The bots take turns, so that
// other load on the machine affects them alike.
func BenchmarkOutside(b *testing.B) {
	b.Run("paced", func(b *testing.B) { dialogues(b, 20, 500*time.Millisecond, "hello") })
	b.Run("in-a-row", func(b *testing.B) { dialogues(b, 300, 0, "hello") })
	b.Run("tools-paced", func(b *testing.B) { dialogues(b, 20, 500*time.Millisecond, "use tools") })
	b.Run("tools-in-a-row", func(b *testing.B) { dialogues(b, 100, 0, "use tools") })
	b.Run("chats-200", func(b *testing.B) { crowds(b, 200) })
	b.Run("chats-50", func(b *testing.B) { crowds(b, 50) })
	b.Run("bursts", func(b *testing.B) { bursts(b, 2000, 6) })
	b.Run("flushes", func(b *testing.B) { flushes(b, "hello") })
	b.Run("flushes-tools", func(b *testing.B) { flushes(b, "use tools") })
	b.Run("late", lateMessages)
}

// A contender is a bot that is measured, together with its platform.
type contender struct {
	tg    *telegramtest.Server
	model string // the model's base URL
	pid   int
	said  map[int64]int // the number of messages that each chat has received
}

// newEcho starts the echo bot.
func newEcho(b *testing.B) *contender {
	b.Helper()
	return newRole(b, "echo")
}

// newFloor starts the floor bot, with a model of its own.
func newFloor(b *testing.B) *contender {
	b.Helper()
	_, model := startRole(b, "model", true)
	return newRole(b, "floor", model, filepath.Join(b.TempDir(), "floor"))
}

// newRole starts the test program as a bot. It passes the address of the bot's Bot API, and more arguments.
func newRole(b *testing.B, role string, more ...string) *contender {
	b.Helper()
	tg := telegramtest.New(parleytest.Token, "echobot")
	api, err := tg.Start("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tg.Close() })
	cmd, _ := startRole(b, strings.Join(append([]string{role, api + "/bot" + parleytest.Token}, more...), " "), false)
	return &contender{tg: tg, pid: cmd.Process.Pid, said: map[int64]int{}}
}

// newOutside starts the bot and waits until it polls. If by is given, it is a command that runs the program.
func newOutside(b *testing.B, by ...string) *contender {
	b.Helper()
	return newOutsideWith(b, "", by...)
}

// newOutsideWith does the same as newOutside, with more settings of agents.
func newOutsideWith(b *testing.B, settings string, by ...string) *contender {
	b.Helper()
	_, model := startRole(b, "model", true)
	x := &bench{b: b, tg: telegramtest.New(parleytest.Token, "parleybot")}
	api, err := x.tg.Start("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { x.tg.Close() })
	path := installed(b)
	args := append(slices.Clone(by), path, "--home", b.TempDir(), "--config", benchFile(b, model, api, settings), "serve")
	x.began = time.Now()
	x.cmd, x.stderr = parleytest.Started(b, args[0], args[1:]...)
	x.polled()
	pid := x.cmd.Process.Pid
	if len(by) > 0 {
		pid = childOf(b, pid)
		b.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
	return &contender{tg: x.tg, model: model, pid: pid, said: map[int64]int{}}
}

// installed returns the path of a copy of the program that was written in small pieces, as an archive or an image is
// unpacked. If a file was written in large pieces, as a linker does, the system maps whole megabytes of it at once.
func installed(b *testing.B) string {
	b.Helper()
	path, err := parleytest.Binary()
	if err != nil {
		b.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	path = filepath.Join(b.TempDir(), "parley")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700) //nolint:gosec // it is a program
	if err != nil {
		b.Fatal(err)
	}
	for piece := range slices.Chunk(program, 32<<10) {
		if _, err := file.Write(piece); err != nil {
			b.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// childOf returns the process id of a process's only child.
func childOf(b *testing.B, pid int) int {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		b.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		b.Fatal(err)
	}
	return child
}

// ask sends a text in a chat and returns how long the answer took.
func (c *contender) ask(b *testing.B, chat int64, text string) time.Duration {
	b.Helper()
	c.said[chat]++
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	c.tg.Say(chat, chat, text)
	if err := c.tg.AwaitSent(ctx, chat, c.said[chat]); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// processor returns the processor time that the bot has used.
func (c *contender) processor(b *testing.B) time.Duration {
	b.Helper()
	return processorOf(b, c.pid)
}

// dialogues makes one person exchange n messages with each bot in turn, with a rest before each message. The person
// starts a new conversation now and then, because most conversations are short.
func dialogues(b *testing.B, n int, rest time.Duration, text string) {
	bots := []*contender{newEcho(b), newOutside(b)}
	if text == "hello" { // the floor uses no tools
		bots = append(bots, newFloor(b))
	}
	for _, c := range bots {
		for range 3 { // warms up
			c.ask(b, 42, text)
		}
	}
	var took [3][]time.Duration
	var used [3]time.Duration
	for b.Loop() {
		for i := range n {
			for k, c := range bots {
				if i%10 == 9 {
					c.ask(b, 42, "/new")
				}
				time.Sleep(rest) // measuring, not testing
				before := c.processor(b)
				took[k] = append(took[k], c.ask(b, 42, text))
				used[k] += c.processor(b) - before
			}
		}
	}
	reportTimes(b, "echo", took[0], used[0])
	p50 := reportTimes(b, "parley", took[1], used[1])
	if len(bots) > 2 {
		reportTimes(b, "floor", took[2], used[2])
	}
	slices.Sort(took[0])
	b.ReportMetric(float64(p50)/float64(took[0][len(took[0])/2]), "x-echo")
}

// reportTimes reports the times of one bot's answers and the processor time that it used. It returns the median time.
func reportTimes(b *testing.B, name string, took []time.Duration, used time.Duration) time.Duration {
	slices.Sort(took)
	parleytest.Milliseconds(b, name+"-p50-ms", took[len(took)/2])
	parleytest.Milliseconds(b, name+"-p99-ms", took[len(took)*99/100])
	parleytest.Milliseconds(b, name+"-cpu-ms", used/time.Duration(len(took)))
	return took[len(took)/2]
}

// crowds makes many people talk to each bot in turn; each person waits for an answer before the next message.
func crowds(b *testing.B, chats int64) {
	const each, rounds = 10, 3
	bots := []*contender{newEcho(b), newOutside(b)}
	var rates [2][]float64
	var used [2]time.Duration
	first := int64(1)
	for b.Loop() {
		for round := range rounds + 1 {
			for k, c := range bots {
				cpu, began := c.processor(b), time.Now()
				c.crowd(b, first, first+chats, each)
				if round > 0 { // the first warms up
					rates[k] = append(rates[k], float64(chats*each)/time.Since(began).Seconds())
					used[k] += c.processor(b) - cpu
				}
			}
			first += chats
		}
	}
	for k, name := range []string{"echo", "parley"} {
		slices.Sort(rates[k])
		b.ReportMetric(rates[k][len(rates[k])/2], name+"-answers/s")
		parleytest.Milliseconds(b, name+"-cpu-ms", used[k]/time.Duration(len(rates[k])*int(chats)*each))
	}
}

// crowd makes each chat from first to last exchange this many messages, all chats at once.
func (c *contender) crowd(b *testing.B, first, last int64, each int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	var people sync.WaitGroup
	for chat := first; chat < last; chat++ {
		people.Go(func() {
			for n := range each {
				c.tg.Say(chat, chat, strconv.Itoa(n))
				if err := c.tg.AwaitSent(ctx, chat, n+1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	people.Wait()
}

// lateMessages compares the 5,000th message of a session with the 50th. Both follow a /new, so that the model gets a
// prompt of the same size.
func lateMessages(b *testing.B) {
	const early, late, around = 50, 5000, 20
	c := newOutside(b)
	median := func() (time.Duration, time.Duration) {
		c.ask(b, 42, "/new")
		var took []time.Duration
		before := c.processor(b)
		for range around {
			took = append(took, c.ask(b, 42, "hello"))
		}
		used := (c.processor(b) - before) / around
		slices.Sort(took)
		return took[around/2], used
	}
	talk := func(upTo int) {
		for c.said[42] < upTo {
			text := "hello"
			if c.said[42]%50 == 49 {
				text = "/new" // otherwise long requests would take most of the time
			}
			c.ask(b, 42, text)
		}
	}
	for b.Loop() {
		talk(early - around)
		took, used := median()
		talk(late - around)
		lateTook, lateUsed := median()
		parleytest.Milliseconds(b, "50th-ms", took)
		parleytest.Milliseconds(b, "5000th-ms", lateTook)
		b.ReportMetric(float64(lateTook)/float64(took), "x-50th")
		b.ReportMetric(float64(lateUsed)/float64(used), "cpu-x-50th")
	}
}

// flushes counts the writes and flushes that the bot makes for one message, before the answer and in all. It traces the
// system calls, which changes how long they take.
func flushes(b *testing.B, text string) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Skip("no strace here")
	}
	const messages = 10
	record := filepath.Join(b.TempDir(), "calls")
	c := newOutside(b, strace, "-f", "--seccomp-bpf", "-ttt", "-y", "-s", "0", "-e", "trace=pwrite64,fsync,fdatasync", "-o", record)
	for range 3 { // warms up
		c.ask(b, 42, text)
	}
	type span struct{ said, answered, over time.Time }
	var spans []span
	for b.Loop() {
		for range messages {
			time.Sleep(time.Second) // measuring, not testing
			s := span{said: time.Now()}
			c.ask(b, 42, text)
			s.answered = time.Now()
			time.Sleep(500 * time.Millisecond)
			s.over = time.Now()
			spans = append(spans, s)
		}
	}
	if err := syscall.Kill(c.pid, syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	calls := readCalls(b, record, spans[len(spans)-1].over)
	var before, all, written int
	for _, s := range spans {
		for _, call := range calls {
			switch {
			case call.at.Before(s.said) || call.at.After(s.over):
			case call.bytes > 0:
				written += call.bytes
			default:
				all++
				if call.at.Before(s.answered) {
					before++
				}
			}
		}
	}
	n := float64(len(spans))
	b.ReportMetric(float64(before)/n, "flushes-before")
	b.ReportMetric(float64(all)/n, "flushes")
	b.ReportMetric(float64(written)/1024/n, "written-KB")
	last := spans[len(spans)-1]
	for _, call := range calls {
		if !call.at.Before(last.said) && !call.at.After(last.over) {
			b.Logf("%+8.2f ms %9s %6d %s", float64(call.at.Sub(last.answered).Microseconds())/1000, call.name, call.bytes, call.file)
		}
	}
}

// A systemCall is a call that writes to a file or flushes it.
type systemCall struct {
	at    time.Time
	name  string
	file  string
	bytes int
}

// callLine matches a call in the output of strace: its time, name, file, and number of bytes.
var callLine = regexp.MustCompile(`^\d+ +(\d+)\.(\d{6}) (\w+)\(\d+<([^>]*)>(?:, ""\.*, (\d+))?`)

// readCalls reads the output of strace once it contains a call after this time.
func readCalls(b *testing.B, record string, beyond time.Time) (calls []systemCall) {
	b.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		raw, err := os.ReadFile(record)
		if err != nil {
			b.Fatal(err)
		}
		calls = calls[:0]
		lines := bufio.NewScanner(strings.NewReader(string(raw)))
		for lines.Scan() {
			m := callLine.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			seconds, _ := strconv.ParseInt(m[1], 10, 64) // digits
			micros, _ := strconv.ParseInt(m[2], 10, 64)
			bytes, _ := strconv.Atoi(m[5]) // none for a flush
			calls = append(calls, systemCall{time.Unix(seconds, micros*1000), m[3], filepath.Base(m[4]), bytes})
		}
		if len(calls) > 0 && calls[len(calls)-1].at.After(beyond) {
			return calls
		}
		if time.Since(began) > 10*time.Second {
			b.Fatal("strace has recorded nothing of the end")
		}
	}
}
