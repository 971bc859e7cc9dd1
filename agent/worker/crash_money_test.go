package worker_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
)

// crashPrice returns the price of a costly model: $5 and $25 for a million tokens.
func crashPrice() llm.Price {
	return llm.Price{Input: 5_000_000, Cached: 5_000_000, Output: 25_000_000}
}

// crashLimits returns the default limits, and one on tokens.
func crashLimits() agent.Limits {
	return agent.Limits{Turns: 3, TurnsHour: 100, TokensDay: 1e6, TokensAlways: true, UserDay: 2_000_000, Day: 20_000_000, Month: 200_000_000}
}

// checkMoney fails the test if a reservation is left, or if budgets differ from what the log says that the person in a
// chat has used.
func checkMoney(t *testing.T, h *crashHome, chat string) {
	t.Helper()
	person := ""
	for e, err := range h.store.Read(t.Context(), "main:test:"+chat, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == sessions.KindTurnStarted {
			person = e.Person
		}
	}
	now := time.Now()
	for _, c := range []bill.Cap{{Subject: bill.Person(person)}, {}, {IsMonthly: true}} {
		used, err := h.store.Bill().Usage(t.Context(), bill.ByAgent, now.AddDate(0, 0, -40), now)
		if err != nil || len(used) != 1 {
			t.Fatalf("used is %+v, %v", used, err)
		}
		spent, aside, err := h.store.Money().State(t.Context(), c, now)
		if spent != used[0].Microdollars || aside != 0 || err != nil {
			t.Errorf("%+v: %d are spent and %d set aside, %v, and the log has %d", c, spent, aside, err, used[0].Microdollars)
		}
		tokens, err := h.store.Spent(t.Context(), person, now)
		if want := used[0].Input + used[0].Output; tokens != want || err != nil {
			t.Errorf("%d tokens are spent and reserved, %v, and the log has %d", tokens, err, want)
		}
	}
}

// Kinds of processes: threeInFlight is killed while three turns wait for a model, and costly serves the same turns and
// is not killed.
const (
	threeInFlight = "three in flight"
	costly        = "costly"
)

// costlyAgent answers. If it is to be killed, it answers once, and then waits until three turns wait for
// an answer. Who has waited twice in other lives, which the file says, is answered: a turn that is cut off
// more often is given up.
func costlyAgent(waited string, killed bool) agent.Agent {
	made := crashAgent("")
	var mu sync.Mutex
	answered, waiting := 0, 0
	waits := func(chat string) bool {
		mu.Lock()
		defer mu.Unlock()
		before, _ := os.ReadFile(waited) // it is not there at first
		if answered < 1 || strings.Count(string(before), chat) >= 2 {
			answered++
			return false
		}
		if err := os.WriteFile(waited, append(before, chat...), 0o600); err != nil {
			panic(err)
		}
		if waiting++; waiting == 3 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return true
	}
	made.Model = model(func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		chat, _, _ := strings.Cut(newestUserText(r), " ")
		if killed && waits(chat) {
			<-ctx.Done()
			return llm.Answer{}, ctx.Err()
		}
		a := textAnswer("done")
		a.Usage = llm.Usage{Input: int64(len(newestUserText(r)) / 4), Output: 40}
		return a, nil
	})
	return made
}

// However many processes are killed, everybody is answered: the process that resumes a turn takes over its reservation.
func TestTwelveMessagesThroughFourKills(t *testing.T) {
	t.Parallel()
	runSharedAndSeparate(t, "", func(t *testing.T, dir string) {
		const messages = 12
		long := strings.Repeat("word ", 7200) // 9,000 tokens, as much as a prompt with its tools
		for n := range messages {
			chat := fmt.Sprint(n + 1)
			publishInbound(t, dir, bus.Inbound{ID: "m" + chat, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: chat}, Text: "chat" + chat + ". " + long})
		}
		for range 4 {
			runKilled(t, dir, threeInFlight)
		}
		runToEnd(t, dir, costly)
		h := openHome(t, dir)
		for range messages {
			if out := outboundMail(t, h.bus); len(out) != 1 || out[0].Text != "done" {
				t.Errorf("said %+v", out)
			}
		}
		checkMoney(t, h, "1")
	})
}

// All processes that resume a turn share its reservation: wherever one dies, the budget holds it once.
func TestKilledTurnsSetAsideNoMoreThanOneCall(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c1", "c3:before/1", "c3/1", "c4/1", "c5/2", "c3:before/2", "c5/5", "c3:before/3"} {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			at := at // both ways go on from it, side by side
			publishFirstMessage(t, dir)
			for range 2 {
				runKilled(t, dir, at)
				h := openHome(t, dir)
				all, err := h.store.Money().SetAside(t.Context())
				if most := int64(4096*25 + 20_000); all.All > most || err != nil {
					t.Errorf("%d are set aside, %v, want that of one call", all.All, err)
				}
				h.Close()
				if !hasAny(t, dir, sessions.KindTurnStarted) { // the disk had not got it
					break
				}
				at = map[bool]string{true: "c3:before/1", false: at}[at == "c1"] // C1 is over
				if strings.HasPrefix(at, "c4") || strings.HasPrefix(at, "c5") || strings.HasPrefix(at, "c3/") {
					break // what was done is not done again
				}
				at, _, _ = strings.Cut(at, "/")
			}
			runToEnd(t, dir)
			checkMoney(t, openHome(t, dir), "1")
		})
	}
}

// hasAny reports whether the log has an entry of a kind.
func hasAny(t *testing.T, dir string, kind sessions.Kind) bool {
	t.Helper()
	h := openHome(t, dir)
	defer h.Close()
	for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == kind {
			return true
		}
	}
	return false
}
