//go:build linux

package nodes

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/tools/nodes/mqtt/mqtttest"
)

// throughBroker returns a world with a running server and an accepted node that has joined and links through a broker.
// A man in the middle stands between both of them and the broker.
func throughBroker(t *testing.T) (*parleytest.HTTPWorld, *parleytest.Process, *node, *mqtttest.Broker, *mqtttest.Middle) {
	t.Helper()
	t.Parallel()
	b := mqtttest.New(t)
	m := mqtttest.NewMiddle(b)
	w := parleytest.ListenHTTP(parleytest.New(t, runModel, parleytest.WithShell+fmt.Sprintf("[nodes.pi]\nagents = [\"main\"]\ntrusted = true\n[mqtt]\nurl = %q\n", m.URL())))
	w.NeedsSandbox()
	p := w.Up()
	parleytest.WaitFor(t, "the server to be at the broker", func() bool { return strings.Contains(p.Stderr.Tail(), "nodes reach this server") })
	out, errs, code := w.Run("nodes", "invite")
	found := regexp.MustCompile(`parley node join (mqtt\S+) ([a-z2-7]{5}-[a-z2-7]{5}-[a-z2-7]{26})\n`).FindStringSubmatch(out)
	if code != parleytest.ExitDone || found == nil || found[1] != m.URL() {
		t.Fatalf("nodes invite ended with %d: %s%s", code, out, errs)
	}
	own := *w.World
	own.Home, own.File = t.TempDir(), filepath.Join(t.TempDir(), "parley.toml")
	own.Env = append([]string{"PARLEY_MOST_REST=1s"}, own.Env...)
	parleytest.Must(t, os.WriteFile(own.File, []byte("[node]\nname = \"pi\"\n"), 0o600))
	wrongly := map[string]string{found[2][:11]: "the longer code", found[2][:12] + strings.Repeat("a", 26): "isn't the server", "aaaaa-aaaaa" + found[2][11:]: "the code is wrong"}
	for typed, says := range wrongly {
		if _, errs, code := own.Run("node", "join", found[1], typed); code == parleytest.ExitDone || !strings.Contains(errs, says) {
			t.Errorf("node join %s ended with %d: %s", typed, code, errs)
		}
	}
	if out, errs, code := own.Run("node", "join", found[1], found[2]); code != parleytest.ExitDone {
		t.Fatalf("node join ended with %d: %s%s", code, out, errs)
	}
	n := &node{t: t, world: &own, log: &parleytest.SyncBuffer{}}
	n.start()
	here(w)
	if out, errs, code := w.Run("nodes", "accept", "pi", "--yes"); code != parleytest.ExitDone {
		t.Fatalf("nodes accept ended with %d: %s%s", code, out, errs)
	}
	return w, p, n, b, m
}

// A node that knows only a broker can join, link, and run a call. If the broker is killed in the middle of another call
// and restarted, the command runs once, and its result arrives.
func TestTheBrokerIsKilled(t *testing.T) {
	w, p, n, b, _ := throughBroker(t)
	w.Telegram.Say(2, 2, "run: echo hello from $((6*7));;")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "hello from 42")
	out, _, _ := w.Run("doctor")
	parleytest.Wants(t, out, "MQTT broker", "it can be reached")
	w.Telegram.Say(3, 3, waits)
	dir := n.begun()
	b.Kill()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	b.Restart()
	parleytest.Wants(t, w.WaitSaid(3, 1)[0], "begun")
	if raw, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(raw) != "begun\n" {
		t.Errorf("the command was run as %q (%v)", raw, err)
	}
	p.Stop()
}

// If the server is killed in the middle of a call through a broker, the person still gets the result. If the node is
// killed, the outcome is unknown.
func TestBothEndsAreKilledAtABroker(t *testing.T) {
	w, p, n, _, _ := throughBroker(t)
	w.Telegram.Say(3, 3, waits)
	dir := n.begun()
	p.Kill()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	p = w.Up()
	parleytest.Wants(t, w.WaitSaid(3, 1)[0], "begun")
	parleytest.Must(t, os.Remove(filepath.Join(dir, "go")))
	parleytest.Must(t, os.Remove(filepath.Join(dir, "runs")))
	w.Telegram.Say(4, 4, waits)
	n.begun()
	n.kill()
	parleytest.WaitFor(t, "the node to be away", func() bool {
		out, _, _ := w.Run("nodes", "list")
		return strings.Contains(out, "away since")
	})
	n.start()
	parleytest.Wants(t, w.WaitSaid(4, 1)[0], "outcome_unknown")
	p.Stop()
}

// A hostile is a man in the middle that sometimes drops, repeats, reorders and changes messages, including much older
// ones.
type hostile struct {
	random *rand.Rand
	heard  map[string][][]byte // the messages so far, by topic
	held   map[string][]byte
	plain  int // the number of messages with a readable command or result
}

func (h *hostile) change(topic string, payload []byte) [][]byte {
	if bytes.Contains(payload, []byte("echo")) || bytes.Contains(payload, []byte("exec_shell")) || bytes.Contains(payload, []byte("marked")) {
		h.plain++
	}
	old := h.heard[topic]
	h.heard[topic] = append(old, bytes.Clone(payload))
	switch h.random.IntN(120) {
	case 0:
		return nil
	case 1:
		h.held[topic] = bytes.Clone(payload)
		return nil
	case 2:
		forged := bytes.Clone(payload)
		forged[h.random.IntN(len(forged))] ^= 1 << h.random.IntN(8)
		return [][]byte{forged}
	case 3, 4, 5, 6, 7, 8:
		return [][]byte{payload, payload}
	case 9, 10, 11, 12, 13, 14:
		all := [][]byte{payload}
		for range min(len(old), 50) {
			all = append(all, old[h.random.IntN(len(old))])
		}
		return all
	}
	if held := h.held[topic]; held != nil {
		delete(h.held, topic)
		return [][]byte{payload, held}
	}
	return [][]byte{payload}
}

// Many calls go through a hostile broker, and in the end an attacker repeats all messages. No command runs twice, no
// command runs that nobody gave, each call is answered or reported as unknown, and no message is readable.
func TestAHostileBroker(t *testing.T) {
	w, p, n, b, m := throughBroker(t)
	h := &hostile{random: rand.New(rand.NewPCG(39, 3)), heard: map[string][][]byte{}, held: map[string][]byte{}}
	var mu sync.Mutex
	m.Change(func(topic string, payload []byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		return h.change(topic, payload)
	})
	const people, rounds = 4, 10
	var talking sync.WaitGroup
	answered := make(chan bool, people*rounds)
	for person := range people {
		talking.Go(func() {
			chat := int64(100 + person)
			for round := range rounds {
				mark := fmt.Sprintf("marked-%d-%d", person, round)
				w.Telegram.Say(chat, chat, "run: echo "+mark+" | tee -a ran;;")
				said := w.WaitSaid(chat, round+1)[round]
				switch {
				case strings.Contains(said, mark):
					answered <- true
				case strings.Contains(said, "node_away"), strings.Contains(said, "outcome_unknown"), strings.Contains(said, "timeout"):
					answered <- false
				default:
					t.Errorf("%s: it was said %q", mark, said)
				}
			}
		})
	}
	talking.Wait()
	m.Change(nil)
	here(w)
	mu.Lock()
	attacker := b.Client(func(string, []byte) {})
	messages := 0
	for topic, all := range h.heard {
		for _, payload := range all {
			b.Publish(attacker, topic, false, payload)
			messages++
		}
	}
	if h.plain > 0 {
		t.Errorf("%d messages could be read", h.plain)
	}
	mu.Unlock()
	here(w)
	for i := int64(1); ; i++ {
		w.Telegram.Say(200+i, 200+i, "run: echo the end;;")
		if said := w.WaitSaid(200+i, 1)[0]; strings.Contains(said, "the end") {
			break
		} else if i > 20 {
			t.Fatal(said)
		}
	}
	worked := 0
	close(answered)
	for ok := range answered {
		if ok {
			worked++
		}
	}
	raw, err := os.ReadFile(filepath.Join(parleytest.FilesWith(t, filepath.Join(n.world.Home, "workspace"), "marked-")[0]))
	parleytest.Must(t, err)
	times := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		times[strings.TrimSpace(line)]++
	}
	for mark, n := range times {
		if n != 1 || !regexp.MustCompile(`^marked-[0-3]-[0-9]$`).MatchString(mark) {
			t.Errorf("%s ran %d times", mark, n)
		}
	}
	if worked == 0 || len(times) < worked {
		t.Errorf("%d calls were answered, and %d have run", worked, len(times))
	}
	t.Logf("%d of %d calls were answered, %d have run; the broker delivered %d messages", worked, people*rounds, len(times), messages)
	p.Stop()
}
