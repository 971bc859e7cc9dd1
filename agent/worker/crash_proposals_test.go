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

// findingAgent answers, and names another fact each time that it is asked for some.
func findingAgent(h *crashHome, book *sqlbook.Book, made agent.Agent) agent.Agent {
	effects := filepath.Join(h.dir, "effects")
	made.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if !isFinding(r) {
			return text("I heard you"), nil
		}
		all, err := os.ReadFile(effects)
		if err != nil && !os.IsNotExist(err) {
			return llm.Answer{}, err
		}
		n := strings.Count(string(all), "\n") + 1
		return text(fmt.Sprintf("person: Fact %d.", n)), os.WriteFile(effects, append(all, "asked\n"...), 0o600)
	})
	made.Proposals = newProposing(book, h.store, h.bus)
	return made
}

// A process that dies while it finds out what to remember leaves one proposal, of which the person is told once. The model is
// asked again only if the process dies before the answer is kept.
func TestKilledWhileSomethingIsProposed(t *testing.T) {
	for at, asked := range map[string]int{"propose:ask": 1, "propose:found": 2, "propose:kept": 1, "propose:told": 1, "settled": 1} {
		bothWays(t, at, func(t *testing.T, dir string) {
			say := func(n int, kind, said string) {
				publishIn(t, dir, bus.Inbound{ID: fmt.Sprint("m", n), Kind: kind, From: bus.Person{ID: "test:ann1"}, At: bus.Address{Channel: "test", Chat: "1"}, Private: true, Text: said})
			}
			for n := range 5 {
				say(n, bus.Said, fmt.Sprint("words ", n))
				goOn(t, dir, findingFacts)
			}
			say(5, bus.Command, "new")
			killed(t, dir, at, findingFacts)
			goOn(t, dir, findingFacts)
			say(6, bus.Said, "hello") // where the command was settled, this begins the next run
			goOn(t, dir, findingFacts)
			h := openHome(t, dir)
			told := 0
			for _, out := range outbound(t, h.bus) {
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
