package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
)

// These tests run the real program as a process of its own, against a Bot API
// server and a model server of the tests' own.

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "parley-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "parley")
	out, err := exec.Command("go", "build", "-tags", "chaos", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // a temporary directory
	}
	os.Exit(code)
}

const (
	token   = "4242:test-token-of-the-bot-000000000000000"
	owner   = 1
	patient = 60 * time.Second
)

// A world is a platform, a model, and the home of the bot between them.
type world struct {
	t     *testing.T
	tg    *telegramtest.Server
	model *agenttest.Server
	home  string
	file  string
}

// newWorld makes a world in which user 1 owns the bot and the users 2 to 999
// may talk to it. more is added to the configuration.
func newWorld(t *testing.T, script agenttest.Script, more string) *world {
	t.Helper()
	w := &world{t: t, tg: telegramtest.New(token, "parleybot"), model: agenttest.New(script), home: t.TempDir()}
	api, err := w.tg.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.tg.Close() })
	var guests []string
	for id := 2; id < 1000; id++ {
		guests = append(guests, fmt.Sprint(id))
	}
	w.file = filepath.Join(t.TempDir(), "parley.toml")
	text := fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\napi_key = \"none\"\n\n[channels.telegram]\nbot_token = %q\napi_url = %q\naccess = \"list\"\nallow_from = [%s]\nowners = [1]\nrate_limit = \"none\"\n[http]\nlisten = \"\"\n%s",
		w.model.Start(t), token, api, strings.Join(guests, ", "), more)
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// command is the program with arguments, in this world's home.
func (w *world) command(args ...string) *exec.Cmd {
	w.t.Helper()
	path, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"--home", w.home, "--config", w.file}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + os.TempDir()}
	return cmd
}

// A process is a running serve.
type process struct {
	w      *world
	cmd    *exec.Cmd
	stderr *syncBuffer
	ended  chan error
}

func (w *world) serve(env ...string) *process {
	w.t.Helper()
	p := &process{w: w, cmd: w.command("serve"), stderr: &syncBuffer{}, ended: make(chan error, 1)}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = p.stderr
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	w.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		if w.t.Failed() {
			w.t.Logf("serve said:\n%s", p.stderr.tail())
		}
	})
	return p
}

func (p *process) kill() {
	p.w.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.w.t.Fatal(err)
	}
	if err := <-p.ended; err == nil {
		p.w.t.Error("serve had ended before it was killed")
	}
}

// stop ends serve in good order, once nothing waits on its bus.
func (p *process) stop() {
	p.w.t.Helper()
	waitFor(p.w.t, "serve to be up", func() bool { return strings.Contains(p.stderr.String(), `"serving"`) })
	waitFor(p.w.t, "the bus to be empty", func() bool { return p.w.count("bus.db", "SELECT count(*) FROM message") == 0 })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.w.t.Fatal(err)
	}
	if err := <-p.ended; err != nil {
		p.w.t.Fatalf("serve ended with %v", err)
	}
}

// count asks a database of the home for a number.
func (w *world) count(file, query string) int {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.home, file)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	var n sql.NullInt64
	if err := db.QueryRow(query).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return int(n.Int64)
}

// dies waits until serve has killed itself.
func (p *process) dies() {
	p.w.t.Helper()
	select {
	case err := <-p.ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			p.w.t.Fatalf("serve ended with %v, want it killed", err)
		}
	case <-time.After(patient):
		p.w.t.Fatal("serve was not killed: the point was not passed")
	}
}

// said waits until the bot has sent n messages to a chat, and returns their texts.
func (w *world) said(chat int64, n int) []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patient)
	defer cancel()
	sent, err := w.tg.WaitSent(ctx, chat, n)
	if err != nil {
		w.t.Fatalf("chat %d has %q, want %d messages: %v", chat, texts(sent), n, err)
	}
	return texts(sent)
}

func texts(sent []telegramtest.Message) []string {
	var all []string
	for _, m := range sent {
		all = append(all, m.Text)
	}
	return all
}

// run runs a command to its end.
func (w *world) run(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	cmd := w.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			w.t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), errs.String(), code
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *syncBuffer) tail() string {
	all := s.String()
	return all[max(0, len(all)-4000):]
}

// echoModel answers "you said X".
func echoModel(r agenttest.Request) agenttest.Response {
	return agenttest.Reply("you said " + r.Said())
}

func TestServeAnswersManyChatsInOrder(t *testing.T) {
	t.Parallel()
	const chats, each = 200, 3
	w := newWorld(t, echoModel, "\n[agents.defaults]\nqueue = \"followup\"\n")
	p := w.serve()
	for n := range each {
		for c := range chats {
			w.tg.Say(int64(c+2), int64(c+2), fmt.Sprintf("number %d", n))
		}
	}
	const want = "number 0\n\nnumber 1\n\nnumber 2"
	for c := range chats {
		// What waits behind a turn is answered together.
		var got string
		waitFor(t, "all of a chat to be answered", func() bool {
			all := texts(w.tg.Sent(int64(c + 2)))
			for i := range all {
				all[i] = strings.TrimPrefix(all[i], "you said ")
			}
			got = strings.Join(all, "\n\n")
			return strings.Count(got, "number") >= each
		})
		if got != want {
			t.Errorf("chat %d was answered %q, want %q", c+2, got, want)
		}
	}
	p.stop()
	if got := w.tg.Sends(); got > chats*each {
		t.Errorf("%d messages were sent, want %d at most", got, chats*each)
	}
}

func TestSlowChatDelaysNobodyAndBothMessagesAreHonoured(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(release) })
	w := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() == "slow" {
			return agenttest.Reply("slow answer").When(release)
		}
		return echoModel(r)
	}, "")
	w.serve()
	w.tg.Say(2, 2, "slow")
	waitFor(t, "the slow model call", func() bool { return w.model.Asked() == 1 })
	w.tg.Say(2, 2, "and more")
	for c := int64(3); c < 23; c++ {
		w.tg.Say(c, c, "quick")
	}
	for c := int64(3); c < 23; c++ {
		w.said(c, 1)
	}
	if got := w.tg.Sent(2); len(got) != 0 {
		t.Fatalf("the slow chat has %q already", texts(got))
	}
	once.Do(func() { close(release) })
	if got := w.said(2, 2); got[0] != "slow answer" || got[1] != "you said and more" {
		t.Errorf("slow chat got %q", got)
	}
}

// busyModel does a round with a tool of each effect that there is, messages
// chat 3, and answers with what the tools said.
func busyModel(r agenttest.Request) agenttest.Response {
	switch r.Rounds() {
	case 0:
		return agenttest.Calls(
			agenttest.ToolCall{Name: "write_file", Args: `{"path":"a.txt","content":"one two"}`},
			agenttest.ToolCall{Name: "memory_write", Args: `{"content":"remembered"}`},
		)
	case 1:
		return agenttest.Calls(
			agenttest.ToolCall{Name: "edit_file", Args: `{"path":"a.txt","old_text":"two","new_text":"three"}`},
			agenttest.ToolCall{Name: "message", Args: `{"channel":"telegram","chat_id":"3","content":"hello from 2"}`},
		)
	case 2:
		return agenttest.Calls(
			agenttest.ToolCall{Name: "read_file", Args: `{"path":"a.txt"}`},
			agenttest.ToolCall{Name: "memory_read", Args: `{}`},
		)
	}
	return agenttest.Reply(strings.Join(r.Results(), " "))
}

func TestKilledAtEachPointOfServe(t *testing.T) {
	points := []string{
		"c1:before", "c1", "c3:before/2", "c3/2", "c4:before/4", "c4/2", "c4/3", "c4/4", "c4:held/3", "c4:held/4",
		"c5:before/2", "c5:before/3", "c5:before/4", "c5/4", "c6:before", "c6", "c7:published", "c7", "settled",
		"send:begun", "send:held", "send:sent", "send:marked", "send:settled", "send:sent/2",
	}
	for _, at := range points {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, busyModel, "\n[agents.main]\nmay_message = [\"telegram:3\"]\n")
			w.tg.Say(2, 2, "go")
			w.serve("PARLEY_KILL_AT=" + at).dies()
			p := w.serve()
			w.said(2, 1)
			w.said(3, 1)
			p.stop()
			answers, hellos := texts(w.tg.Sent(2)), texts(w.tg.Sent(3))
			if n := len(answers) + len(hellos); n > 2+w.interrupted() {
				t.Errorf("answers %q and messages %q; the book knows of %d sends that were cut off", answers, hellos, w.interrupted())
			}
			for _, want := range []string{"one three", "remembered", "Successfully wrote", `"sent"`} {
				if !strings.Contains(answers[0], want) {
					t.Errorf("the answer %q lacks %q", answers[0], want)
				}
			}
			if n := strings.Count(answers[0], "remembered"); n != 1 {
				t.Errorf("memory was written %d times: %q", n, answers[0])
			}
		})
	}
}

// interrupted counts the sends of which nobody can tell whether they arrived:
// each may have arrived once more than it should.
func (w *world) interrupted() int {
	w.t.Helper()
	return w.count("book.db", "SELECT sum(interrupted) FROM parts")
}

func TestKilledWithManyTurnsInFlight(t *testing.T) {
	t.Parallel()
	const chats = 50
	w := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() < 2 {
			return agenttest.Calls(agenttest.ToolCall{Name: "memory_write", Args: fmt.Sprintf(`{"content":"round %d"}`, r.Rounds())}).After(20 * time.Millisecond)
		}
		return agenttest.Reply("answer to " + r.Said()).After(20 * time.Millisecond)
	}, "")
	for c := range chats {
		w.tg.Say(int64(c+2), int64(c+2), "one")
	}
	for range 3 { // a turn that is cut off a fourth time without progress is given up
		sends := w.tg.Sends()
		asked := w.model.Asked()
		p := w.serve()
		waitFor(t, "some progress", func() bool { return w.tg.Sends() > sends || w.model.Asked() > asked+chats })
		p.kill()
	}
	p := w.serve()
	for c := range chats {
		w.said(int64(c+2), 1)
	}
	p.stop()
	twice, cut := 0, w.interrupted()
	for c := range chats {
		got := texts(w.tg.Sent(int64(c + 2)))
		if got[0] != "answer to one" {
			t.Errorf("chat %d got %q", c+2, got)
		}
		twice += len(got) - 1
	}
	if twice > cut {
		t.Errorf("%d answers were sent again, and the book knows of %d sends that were cut off", twice, cut)
	}
}

func TestMessageReachesPairedChatsAndNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 && strings.HasPrefix(r.Said(), "tell ") {
			return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: fmt.Sprintf(`{"channel":"telegram","chat_id":%q,"content":"psst"}`, strings.TrimPrefix(r.Said(), "tell "))})
		}
		return agenttest.Reply("said: " + strings.Join(r.Results(), ""))
	}, "")
	// Who is paired: 5000 asks, is given a code, and is approved at the terminal.
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	paired := strings.NewReplacer(`access = "list"`, `access = "pairing"`).Replace(string(text))
	before, _, _ := strings.Cut(paired, "allow_from")
	_, after, _ := strings.Cut(paired, "owners")
	if err := os.WriteFile(w.file, []byte(before+"owners"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	w.serve()
	w.tg.Say(5000, 5000, "let me in, my secret is xyzzy-stranger")
	refusal := w.said(5000, 1)[0]
	_, code, ok := strings.Cut(refusal, "pairing approve ")
	if !ok || !strings.Contains(refusal, "telegram:5000") {
		t.Fatalf("the stranger was told %q", refusal)
	}
	if found := filesWith(t, w.home, "xyzzy-stranger"); len(found) > 0 {
		t.Errorf("what the stranger said is in %v", found)
	}
	if out, errs, exit := w.run("pairing", "approve", strings.TrimSpace(code)); exit != 0 || !strings.Contains(out, "telegram:5000") {
		t.Fatalf("approve: %d %q %q", exit, out, errs)
	}
	w.tg.Say(5000, 5000, "hello")
	w.said(5000, 2)

	// In a group they reach the chat in which they were paired; nobody else does,
	// the owner included, or is told of it.
	const group = -77
	w.tg.Say(group, 5000, "@parleybot tell 5000")
	if got := w.said(5000, 3); got[2] != "User 5000 (telegram:5000) asks me, in telegram:-77, to tell you:\n\npsst" {
		t.Errorf("the paired chat got %q", got)
	}
	w.said(group, 1)
	for i, chat := range []string{"5000", "777"} {
		w.tg.Say(owner, owner, "tell "+chat) // what is said in mid-turn would join the turn
		got := w.said(owner, i+1)[i]
		if other := strings.Count(got, "telegram:5000"); !strings.Contains(got, "permission_denied") || !strings.Contains(got, "These may be: telegram:1.") || other > 0 && chat != "5000" {
			t.Errorf("a message to %s: %q, want it refused, naming what the owner may reach", chat, got)
		}
	}
	if out, _, _ := w.run("pairing", "list"); !strings.Contains(out, "telegram:5000") {
		t.Errorf("pairing list: %q", out)
	}
	if out, _, _ := w.run("chats"); !strings.Contains(out, "telegram:5000") || !strings.Contains(out, "main:telegram:1") {
		t.Errorf("chats: %q", out)
	}
	if _, _, exit := w.run("pairing", "revoke", "telegram:5000"); exit != 0 {
		t.Errorf("revoke: %d", exit)
	}
	w.tg.Say(5000, 5000, "still there?")
	waitFor(t, "the message to be confirmed", func() bool { return w.tg.Unconfirmed() == 0 })
}

// filesWith lists the files below dir that have a text in them.
func filesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		all, err := io.ReadAll(f)
		if bytes.Contains(all, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestOwnerByLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echoModel, "")
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "access =")
	if err := os.WriteFile(w.file, []byte(before+"rate_limit = \"none\"\n[http]\nlisten = \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.serve()
	const link = "https://t.me/parleybot?start="
	waitFor(t, "the owner's link", func() bool { return strings.Contains(p.stderr.String(), link) })
	_, rest, _ := strings.Cut(p.stderr.String(), link)
	code, _, _ := strings.Cut(rest, "\n")
	w.tg.Say(7, 7, "/start WRONGCODEWRONGCODE")
	w.said(7, 1)
	w.tg.Say(8, 8, "/start "+strings.TrimSpace(code))
	if got := w.said(8, 1)[0]; !strings.Contains(got, "own") {
		t.Errorf("the owner was told %q", got)
	}
	w.tg.Say(8, 8, "hello")
	if got := w.said(8, 2)[1]; got != "you said hello" {
		t.Errorf("the owner got %q", got)
	}
	w.tg.Say(9, 9, "/start "+strings.TrimSpace(code))
	if got := w.said(9, 1)[0]; strings.Contains(got, "You own") {
		t.Error("the link worked twice")
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echoModel, "")
	p := w.serve()
	w.tg.Say(2, 2, "hello")
	w.said(2, 1)
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	hup := func(content, want string) {
		t.Helper()
		if err := os.WriteFile(w.file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		waitFor(t, want, func() bool { return strings.Contains(p.stderr.String(), want) })
	}
	hup("[broken", "the old one stays in force")
	w.tg.Say(2, 2, "still here")
	w.said(2, 2)
	hup(strings.Replace(string(text), "allow_from = [2, ", "allow_from = [", 1), "configuration read again")
	w.tg.Say(2, 2, "and now")
	if got := w.said(2, 3)[2]; !strings.Contains(got, "does not know you") {
		t.Errorf("after the reload user 2 got %q", got)
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echoModel, "")
	empty := filepath.Join(t.TempDir(), "parley.toml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.file = empty // no model: the demo
	dir := t.TempDir()
	for _, name := range []string{"apple.txt", "pear.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, errs, code := w.run("chat", "--workspace", dir, "-m", "list the files"); code != 0 || !strings.Contains(out, "apple.txt") || !strings.Contains(out, "pear.txt") {
		t.Errorf("list: %d %q %q", code, out, errs)
	}
	if out, errs, code := w.run("chat", "-m", "write hello to notes.txt"); code != 0 {
		t.Errorf("write: %d %q %q", code, out, errs)
	}
	if out, errs, code := w.run("chat", "-m", "read notes.txt"); code != 0 || !strings.Contains(out, "hello") {
		t.Errorf("read: %d %q %q", code, out, errs)
	}
	cmd := w.command("chat")
	cmd.Stdin = strings.NewReader("read notes.txt\n")
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "hello") {
		t.Errorf("piped: %q %v", out, err)
	}
	if _, errs, code := w.run("chat", "--workspace", filepath.Join(dir, "nosuch"), "-m", "x"); code != exitUsage || !strings.Contains(errs, "nosuch") {
		t.Errorf("a workspace that is none: %d %q", code, errs)
	}
}

func TestChatOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, busyModel, "")
	if out, errs, code := w.run("chat", "-m", "go"); code != 0 || !strings.Contains(out, "one three") {
		t.Errorf("chat: %d %q %q", code, out, errs)
	}
}

func TestWhatStopsTheStart(t *testing.T) {
	t.Parallel()
	const channel = "[channels.telegram]\nbot_token = \"4242:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", channel + "acess = \"open\"\n", "parley.toml:3"},
		{"wrong type", "[limits]\nwaiting = \"many\"\n", "parley.toml:2"},
		{"missing variable", "[channels.telegram]\nbot_token = \"${NOSUCHVARIABLE}\"\n", "NOSUCHVARIABLE"},
		{"no model", channel, "model"},
		{"token of a wrong shape", "[model]\nname = \"demo\"\n[channels.telegram]\nbot_token = \"nonsense\"\n", "bot_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, echoModel, "")
			if err := os.WriteFile(w.file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, errs, code := w.run("serve")
			if code != exitConfig || !strings.Contains(errs, c.want) {
				t.Errorf("exit %d, %q; want 78 and %q", code, errs, c.want)
			}
		})
	}
	t.Run("token refused", func(t *testing.T) {
		w := newWorld(t, echoModel, "")
		text, err := os.ReadFile(w.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.file, bytes.Replace(text, []byte("4242:test"), []byte("4242:nope"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := w.run("serve")
		if code != exitConfig || !strings.Contains(errs, "channels.telegram.bot_token") || !strings.Contains(errs, "parley.toml:") || strings.Contains(errs, "nope") {
			t.Errorf("exit %d, %q", code, errs)
		}
	})
	t.Run("home in use", func(t *testing.T) {
		w := newWorld(t, echoModel, "")
		p := w.serve()
		w.tg.Say(2, 2, "hello")
		w.said(2, 1)
		if _, errs, code := w.run("serve"); code == 0 || !strings.Contains(errs, fmt.Sprint(p.cmd.Process.Pid)) {
			t.Errorf("exit %d, %q; want the pid of the one that has it", code, errs)
		}
	})
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, echoModel, "")
	if out, errs, code := w.run("doctor"); code != 0 || !strings.Contains(out, "@parleybot") {
		t.Errorf("doctor: %d %q %q", code, out, errs)
	}
	w.tg.Fail(telegramtest.Fault{Act: telegramtest.Refuse, Status: 401, Description: "Unauthorized"})
	if out, _, code := w.run("doctor"); code != exitFailed || !strings.Contains(out, "refuses the token") {
		t.Errorf("doctor with a bad token: %d %q", code, out)
	}
	if out, _, code := w.run("config", "check"); code != 0 || strings.Contains(out, token) || !strings.Contains(out, "***") {
		t.Errorf("config check: %d %q", code, out)
	}
	if out, _, code := w.run("version"); code != 0 || !strings.HasPrefix(out, "parley ") {
		t.Errorf("version: %d %q", code, out)
	}
}
