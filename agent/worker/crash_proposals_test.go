package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/channels/sqlbook"
)

// findingAgent returns an agent that answers, and that finds a new fact each time that it is asked for facts.
func findingAgent(h *crashHome, book *sqlbook.Book, made agent.Agent) agent.Agent {
	effects := filepath.Join(h.dir, "effects")
	made.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if !isFinding(r) {
			return textAnswer("I heard you"), nil
		}
		all, err := os.ReadFile(effects)
		if err != nil && !os.IsNotExist(err) {
			return llm.Answer{}, err
		}
		n := strings.Count(string(all), "\n") + 1
		return textAnswer(fmt.Sprintf("person: Fact %d.", n)), os.WriteFile(effects, append(all, "asked\n"...), 0o600)
	})
	made.Proposals = newProposing(book, h.store, h.bus)
	return made
}

// If a process dies while it looks for facts to remember, there is one proposal, and the person is told once. The model
// is asked again only if the process dies before the answer is stored.
func TestKilledWhileSomethingIsProposed(t *testing.T) {
	for at, asked := range map[string]int{"propose:ask": 1, "propose:found": 2, "propose:kept": 1, "propose:told": 1, "settled": 1} {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			say := func(n int, kind, said string) {
				publishInbound(t, dir, bus.Inbound{ID: fmt.Sprint("m", n), Kind: kind, From: bus.Person{ID: "test:ann1"}, At: bus.Address{Channel: "test", Chat: "1"}, Private: true, Text: said})
			}
			for n := range 5 {
				say(n, bus.Said, fmt.Sprint("words ", n))
				runToEnd(t, dir, findingFacts)
			}
			say(5, bus.Command, "new")
			runKilled(t, dir, at, findingFacts)
			runToEnd(t, dir, findingFacts)
			say(6, bus.Said, "hello") // where the command was settled, this begins the next run
			runToEnd(t, dir, findingFacts)
			h := openHome(t, dir)
			told := 0
			for _, out := range outboundMail(t, h.bus) {
				if strings.Contains(out.Text, "I could remember") {
					told++
					if !strings.Contains(out.Text, fmt.Sprintf("1. Fact %d.", asked)) {
						t.Errorf("the person is told %q", out.Text)
					}
				}
			}
			book, err := h.openBook(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer book.Close()
			all, err := book.ProposalsTo(t.Context(), "test:ann1")
			if err != nil || len(all) != 1 || all[0].Text != fmt.Sprintf("Fact %d.", asked) || told != 1 {
				t.Errorf("proposed is %+v, %v, and %d messages say so", all, err, told)
			}
			effects, err := os.ReadFile(filepath.Join(dir, "effects"))
			if n := strings.Count(string(effects), "\n"); err != nil || n != asked {
				t.Errorf("the model was asked %d times, %v, want %d", n, err, asked)
			}
			checkMoney(t, h, "1")
		})
	}
}
