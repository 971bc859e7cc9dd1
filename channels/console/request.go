package console

import (
	"fmt"
	"slices"
	"strings"

	"parley/bus"
)

// The text in front of the typed line while the person has to decide about a request, and the explanation of the
// possible answers.
const (
	answerText  = "y/n/s › "
	answersHelp = "y runs it · n denies it, n WHY says why · s runs it, now and whenever this exact call comes up again in this conversation"
)

// approvalRequests are the approvals that the person at the terminal is asked for. The person decides about the
// first one, then about the next.
type approvalRequests struct {
	open []bus.Ask
	// replaced says that the request on the screen was decided elsewhere and replaced by another one: the next
	// typed line may still be meant for the old one.
	replaced bool
}

// add adds a request for an approval, unless it is known already or people are asked only in other chats.
func (r *approvalRequests) add(a *bus.Ask, here bus.Address) {
	if a == nil || a.Kind != bus.AskApproval || len(a.Asked) > 0 && !slices.Contains(a.Asked, here) {
		return
	}
	if !slices.ContainsFunc(r.open, func(known bus.Ask) bool { return known.ID == a.ID }) {
		r.open = append(r.open, *a)
	}
}

// remove removes a request that has ended.
func (r *approvalRequests) remove(id string) {
	at := slices.IndexFunc(r.open, func(a bus.Ask) bool { return a.ID == id })
	if at < 0 {
		return
	}
	r.open = slices.Delete(r.open, at, at+1)
	r.replaced = len(r.open) > 0 && (r.replaced || at == 0)
}

// question returns the question that the terminal is asking; "" if no request is open.
func (r *approvalRequests) question() string {
	if len(r.open) == 0 {
		return ""
	}
	return fmt.Sprintf("%s needs your approval (%s): %s", oneLine(r.open[0].Tool), r.open[0].ID, answersHelp)
}

// command returns the command for a typed line that decides about the current request, and goes on to the next
// request; wrong says why a line that looks like a decision is not accepted as one. Both are "" for any other line.
func (r *approvalRequests) command(text string) (command, wrong string) {
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
	if r.replaced {
		r.replaced = false
		return "", "somebody has already decided that request; the next one is " + id + ": answer again if you want to decide that one"
	}
	r.open = r.open[1:]
	return command, ""
}

// takeDecision returns the command for a typed line if the line decides about the current request. It returns "" and
// true if the line looks like a decision but may be meant for an earlier request; taken is false if the line is meant
// for the agent.
func (s *screen) takeDecision(text string) (command string, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	command, wrong := s.requests.command(text)
	if wrong != "" {
		s.display.print(passage{text: wrong})
	}
	if command != "" {
		s.display.showQuestion(s.requests.question())
	}
	return command, command != "" || wrong != ""
}
