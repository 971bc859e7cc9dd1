package console

import (
	"fmt"
	"slices"
	"strings"

	"parley/bus"
)

// The answers to a request, and how they are asked for.
const (
	answerText = "y/n/s › "
	answersAre = "y runs it · n refuses it, n WHY says why · s runs it, and again whenever exactly this is called in this conversation"
)

// requests are the approvals that wait for the person at the terminal. The first one is
// asked about, the others after it.
type requests struct {
	open []bus.Ask
	// exchanged says that the one that was asked about was decided elsewhere: what is
	// typed next may still be meant for it.
	exchanged bool
}

// add takes in a request that people are asked about here.
func (r *requests) add(a *bus.Ask, here bus.Address) {
	if a == nil || a.Kind != bus.AskApproval || len(a.Asked) > 0 && !slices.Contains(a.Asked, here) {
		return
	}
	if !slices.ContainsFunc(r.open, func(known bus.Ask) bool { return known.ID == a.ID }) {
		r.open = append(r.open, *a)
	}
}

// drop forgets a request that has ended.
func (r *requests) drop(id string) {
	at := slices.IndexFunc(r.open, func(a bus.Ask) bool { return a.ID == id })
	if at < 0 {
		return
	}
	r.open = slices.Delete(r.open, at, at+1)
	r.exchanged = len(r.open) > 0 && (r.exchanged || at == 0)
}

// question is what the terminal asks now; "" if nothing is.
func (r *requests) question() string {
	if len(r.open) == 0 {
		return ""
	}
	return fmt.Sprintf("%s waits for your word (%s): %s", oneLine(r.open[0].Tool), r.open[0].ID, answersAre)
}

// command is the command that a typed line stands for, if it decides about what is asked
// now; wrong says why it is not taken for one.
func (r *requests) command(text string) (command, wrong string) {
	if len(r.open) == 0 {
		return "", ""
	}
	id := r.open[0].ID
	word, why, _ := strings.Cut(text, " ")
	switch word = strings.ToLower(word); {
	case (word == "y" || word == "yes") && why == "":
		command = "/approve " + id
	case word == "s" && why == "":
		command = "/approve " + id + " " + bus.ApproveSession
	case word == "n" || word == "no" && why == "":
		command = strings.TrimSpace("/deny " + id + " " + strings.TrimSpace(why))
	default:
		return "", ""
	}
	if r.exchanged {
		r.exchanged = false
		return "", "what was asked about has been decided elsewhere; this is the next request, " + id + ": say it once more if you mean that"
	}
	r.open = r.open[1:]
	return command, ""
}

// decides gives the command that a line stands for where the person is asked about a
// call; taken is false where it is said to the agent.
func (s *screen) decides(text string) (command string, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	command, wrong := s.requests.command(text)
	if wrong != "" {
		s.on.print(passage{text: wrong})
	}
	if command != "" {
		s.on.ask(s.requests.question())
	}
	return command, command != "" || wrong != ""
}
