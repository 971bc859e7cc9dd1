package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// releaseBefore is the commit of the previous release, beside which this release has to run. Whoever publishes a
// release sets it to the commit of that release, so that later builds are tested beside that release.
const releaseBefore = "6594d6af13cdba7fde6b7c6ca02d312153d8dd5c"

// A release is the path of a program, and the path of the configuration with which it starts.
type release struct{ program, config string }

// buildOlder builds the previous release's program with its crashpoints, from the history of this checkout. It skips
// the test if the history does not contain that release.
func buildOlder(t *testing.T) string {
	t.Helper()
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		t.Skipf("NOT TESTED beside the release before: this is no checkout of git (%s)", root)
	}
	if out, err := git("-C", root, "cat-file", "-e", releaseBefore+"^{commit}"); err != nil {
		t.Skipf("NOT TESTED beside the release before: the history of this checkout does not reach back to %s; git fetch --unshallow gets it (%s)", releaseBefore, out)
	}
	dir := t.TempDir()
	source, tarball, program := filepath.Join(dir, "source"), filepath.Join(dir, "source.tar"), filepath.Join(dir, "parley")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := git("-C", root, "archive", "--format=tar", "-o", tarball, releaseBefore); err != nil {
		t.Fatalf("git archive: %v: %s", err, out)
	}
	if out, err := exec.Command("tar", "-xf", tarball, "-C", source).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	build := exec.Command("go", "build", "-tags", "chaos", "-o", program, "./cmd/parley")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the release before: %v: %s", err, out)
	}
	return program
}

// unknownSetting matches the error by which the previous release names a line of the configuration that it does not
// understand.
var unknownSetting = regexp.MustCompile(`(?m):(\d+): [^:\n]+: unknown key`)

// olderRelease returns the previous release, with the part of a world's configuration that it understands. The
// configuration has no Discord, because that release receives nothing from Discord.
func olderRelease(w *parleytest.World, program string, env ...string) *release {
	w.T.Helper()
	r := &release{program: program, config: filepath.Join(w.T.TempDir(), "older.toml")}
	text, err := os.ReadFile(w.File)
	if err != nil {
		w.T.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if discord := slices.Index(lines, "[channels.discord]"); discord >= 0 {
		blankSetting(lines, discord)
	}
	said := ""
	for range 3 { // each round may find the unknown keys of another table
		if err := os.WriteFile(r.config, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			w.T.Fatal(err)
		}
		check := w.Command("--config", r.config, "config", "check")
		check.Path, check.Env = program, append(check.Env, env...)
		out, err := check.CombinedOutput()
		if err == nil {
			return r
		}
		said = string(out)
		for _, line := range unknownSetting.FindAllStringSubmatch(said, -1) {
			n, err := strconv.Atoi(line[1])
			if err != nil {
				w.T.Fatal(err)
			}
			blankSetting(lines, n-1)
		}
	}
	w.T.Fatalf("the release before does not take the configuration: %s\n%s", said, strings.Join(lines, "\n"))
	return nil
}

// blankSetting empties a line of a configuration. If the line begins a table, it also empties the lines of the table.
func blankSetting(lines []string, at int) {
	table := strings.HasPrefix(lines[at], "[")
	lines[at] = ""
	for at++; table && at < len(lines) && !strings.HasPrefix(lines[at], "["); at++ {
		lines[at] = ""
	}
}

// These are the messages of people with chats of their own, who talk beside the storm while the releases change.
const (
	readFile   = "read the file"
	sendFile   = "send a file"
	tellEdited = "what did I change?"
	editedText = "on second thoughts"

	reader   = 900 // sends a file
	editor   = 901 // edits a message
	receiver = 902 // gets a file
)

// releaseModel plays the storm's model; it also answers the reader, the editor and the receiver.
func releaseModel(r agenttest.Request) agenttest.Response {
	has := func(text string) string {
		if strings.Contains(string(r.Body), text) {
			return "yes"
		}
		return "no"
	}
	switch words := r.Said(); {
	case strings.HasPrefix(words, "hello"):
		return agenttest.Reply("you said " + words)
	case strings.HasSuffix(words, readFile):
		return agenttest.Reply("a file came with it: " + has("<attachment "))
	case words == tellEdited:
		return agenttest.Reply("I know what you changed: " + has(editedText))
	case words == sendFile && r.Rounds() == 0:
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"out.txt","content":"the file"}`})
	case words == sendFile && r.Rounds() == 1:
		return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: `{"channel":"telegram:902","content":"here it is","files":["out.txt"]}`})
	case words == sendFile:
		return agenttest.Reply("sent")
	}
	return stormModel(r)
}

// A fleet is upgraded from the previous release to this one, process by process, and its workers are then downgraded
// and upgraded again, while people talk. Nothing is lost and nothing is done twice. What only this release understands
// waits until a process of this release runs.
func TestFleetChangesReleases(t *testing.T) {
	t.Parallel()
	f := newFleet(t, releaseModel)
	program := buildOlder(t)
	t.Run("one machine", func(t *testing.T) { homeChangesReleases(t, program) })
	older := olderRelease(f.World, program, "PARLEY_ONCE_URL="+f.once.url)
	for _, m := range []*member{
		{name: "gateway-1", role: gateway}, {name: "worker-1", role: worker},
		{name: "gateway-2", role: gateway}, {name: "worker-2", role: worker}, {name: "worker-3", role: worker},
	} {
		m.release = older
		f.add(m)
	}
	s := newStorm(f, stormSeed, 36, 6, 6*time.Second)
	s.excludeChannel("discord")
	s.noFiles = true // the previous release neither receives nor sends files
	s.downgrades = true
	s.noRecall = true
	s.run(2*time.Minute, func(s *storm, random *rand.Rand, _ <-chan struct{}) { s.changeReleases(random, older) })
	a := s.audit()
	t.Logf("%s", a)
	for _, wrong := range a.violations {
		t.Error(wrong)
	}
	for _, how := range s.unexpected {
		t.Errorf("ended by itself: %s", how)
	}
}

// homeChangesReleases upgrades a home from the previous release to this one while messages wait in it, after the
// previous release was killed. Then the previous release refuses the home because of its version, and this release
// continues with it.
func homeChangesReleases(t *testing.T, program string) {
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() == "wait" {
			return agenttest.Response{Delay: time.Hour}
		}
		return parleytest.EchoModel(r)
	}, "")
	older := olderRelease(w, program)
	serve := func() *exec.Cmd {
		cmd := w.Command("--config", older.config, "serve")
		cmd.Path, cmd.Stderr = program, &parleytest.SyncBuffer{}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
		return cmd
	}
	awaitBooked := func(file string, n int) {
		parleytest.WaitFor(t, "the book to know what was sent", func() bool {
			return w.Count(file, "SELECT count(*) FROM parts WHERE state = 'sent'") == n
		})
	}
	first := serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	awaitBooked("book.db", 1)
	w.Telegram.Say(3, 3, "wait")
	parleytest.WaitFor(t, "the model to be asked", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM entries WHERE data LIKE '%wait%'") > 0
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	for n, text := range []string{"again", "the last"} {
		p := w.Serve()
		w.Telegram.Say(2, 2, text)
		if got := w.WaitSaid(2, n+2); got[n+1] != "you said "+text {
			t.Errorf("it says %q", got)
		}
		awaitBooked("sessions.db", n+2)
		if out, errs, code := w.Run("recall", "--session", "main:telegram:2", "hello"); code != 0 || strings.Count(out, "you said hello") != 1 {
			t.Errorf("what the release before has said is found as %q: exit code %d, %s", out, code, errs)
		}
		p.Kill()
		refused := serve()
		if err := refused.Wait(); err == nil || !strings.Contains(refused.Stderr.(*parleytest.SyncBuffer).String(), "use the newer release") {
			t.Errorf("the release before ended with %v, saying %s", err, refused.Stderr.(*parleytest.SyncBuffer).Tail())
		}
	}
	if n := w.Count("sessions.db", "SELECT count(*) FROM message WHERE key = 'main:telegram:3'"); n != 1 {
		t.Errorf("%d messages of the turn that was cut off wait, want 1", n)
	}
}

// changeReleases upgrades the fleet from the previous release to this one, and downgrades and upgrades its workers
// again.
func (s *storm) changeReleases(random *rand.Rand, older *release) {
	gateways, workers := s.inRole(gateway), s.inRole(worker)
	first := s.Telegram.Say(editor, editor, "hello")
	s.requireMessages(editor, "you said hello")

	s.changeRelease(random, nil, workers...)
	s.Telegram.Say(receiver, receiver, sendFile)
	s.awaitLog("the message with a file to be left to a newer release", gateways, `"message needs what this release does not know and is left to another"`, "files")
	s.changeRelease(random, nil, gateways...)
	s.Telegram.Attach(reader, reader, "document", "figures.txt", []byte("1 2 3"), map[string]any{"caption": readFile})
	s.requireMessages(reader, "a file came with it: yes")

	s.changeRelease(random, older, workers...)
	s.Telegram.Say(reader, reader, "hello again")
	s.Telegram.Edit(editor, first, editedText) // Telegram knows by now that the gateways receive edits
	s.Telegram.Say(editor, editor, tellEdited)
	const left = `"session is left to a newer release"`
	s.awaitLog("the log with a file to be left to a newer release", workers, left, `"attached"`)
	s.awaitLog("the edit to be left to a newer release", workers, left, `"edited"`)
	// One older worker stays, and may claim a waiting turn again before a newer worker does. With two older workers,
	// that might go on for a minute.
	s.changeRelease(random, nil, workers[:2]...)
	s.requireMessages(reader, "a file came with it: yes", "you said hello again")
	s.requireMessages(editor, "you said hello", "I know what you changed: yes")
	s.changeRelease(random, nil, workers[2])

	s.requireMessages(receiver, "here it is", "", "sent")
	if sent := s.Telegram.Sent(receiver); len(sent) > 1 && sent[1].File == nil {
		s.T.Errorf("%+v was sent, want a file", sent)
	}
}

// changeRelease ends one process after another, some of them with SIGKILL, and restarts each with the other release.
func (s *storm) changeRelease(random *rand.Rand, to *release, members ...*member) {
	for _, m := range members {
		m.mu.Lock()
		m.release = to
		m.mu.Unlock()
		before, how := m.countStarts(), syscall.SIGTERM
		if random.IntN(3) == 0 {
			how = syscall.SIGKILL
		}
		m.signal(how, 0)
		parleytest.WaitFor(s.T, m.name+" to serve again", func() bool { return m.countStarts() > before })
		s.countFault("changed a " + m.role)
	}
}

// inRole returns the members with this role.
func (f *fleet) inRole(role string) []*member {
	return slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m.role != role })
}

// awaitLog waits until a line of a member's log contains both texts.
func (f *fleet) awaitLog(waitedFor string, members []*member, message, detail string) {
	f.T.Helper()
	parleytest.WaitFor(f.T, waitedFor, func() bool {
		return slices.ContainsFunc(members, func(m *member) bool {
			for line := range strings.Lines(m.stderr.String()) {
				if strings.Contains(line, message) && strings.Contains(line, detail) {
					return true
				}
			}
			return false
		})
	})
}

// requireMessages waits until a chat has as many messages of the bot as want has, and compares their texts. It also
// waits until the book knows that they were sent, because a gateway that is killed before that would send the last
// message again.
func (f *fleet) requireMessages(chat int64, want ...string) {
	f.T.Helper()
	if got := f.WaitSaid(chat, len(want)); !slices.Equal(got, want) {
		f.T.Errorf("chat %d was sent %q, want %q", chat, got, want)
	}
	unsent := fmt.Sprintf("SELECT p.send FROM parts p JOIN sends s ON s.id = p.send WHERE s.chat = '%d' AND p.state <> 'sent'", chat)
	parleytest.WaitFor(f.T, "the book to know what was sent", func() bool { return len(sqldbtest.Query(f.T, "pgx", f.pg.URL(), unsent)) == 0 })
}

// excludeChannel removes a platform's chats from the storm.
func (s *storm) excludeChannel(channel string) {
	s.chats = slices.DeleteFunc(s.chats, func(p *chat) bool { return p.at.Channel == channel })
	s.said = s.said[:len(s.chats)]
}

// The first start after an upgrade from the previous release, which had no caps on costs, tells the owner once which
// caps now apply.
func TestFleetUpgradeTellsWhichCapsHold(t *testing.T) {
	skipUnlessFleet(t)
	t.Parallel()
	program := buildOlder(t)
	w := parleytest.New(t, agenttest.Always(agenttest.Reply("fine")), "")
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	config := w.File
	w.File = filepath.Join(t.TempDir(), "older.toml")
	if err := os.WriteFile(w.File, []byte(strings.Replace(string(text), "introduce = \"never\"\n", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	older := w.Command("serve")
	older.Path = program
	var said parleytest.SyncBuffer
	older.Stderr = &said
	if err := older.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = older.Process.Kill() }) // it may have ended
	w.Telegram.Say(1, 1, "hello")
	w.WaitSaid(1, 1)
	if err := older.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := older.Wait(); err != nil {
		t.Fatalf("the release before ended with %v: %s", err, said.Tail())
	}

	w.File = config
	priced := strings.Replace(string(text), "[model]\n", "[model]\nprice_input = 1.0\nprice_output = 2\n", 1)
	if err := os.WriteFile(w.File, []byte(priced), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, answer := range []int{3, 4} { // the number of messages to the owner, including the answer
		serving := w.Serve()
		if n == 0 {
			w.WaitSaid(1, 2)
		}
		w.Telegram.Say(1, 1, "hello again")
		told := w.WaitSaid(1, answer)
		if !strings.Contains(told[1], "You haven't set these limits on what models can cost") || !strings.Contains(told[1], "$2.00 for one person in a day, $20.00 for everyone together in a day, $200.00 for everyone together in a month") {
			t.Errorf("the owner is told %q", told[1])
		}
		if told[answer-1] != "fine" {
			t.Errorf("start %d: the owner is told %q", n+1, told[answer-1])
		}
		serving.Stop()
	}
}
