package why

import (
	"strconv"

	"parley/channels"
	"parley/channels/gateway"
)

// The outcomes of a message, besides refused.
const (
	replied        = "answered"
	silent         = "done"               // its turn has ended without an answer
	running        = "running"            // a turn works on it, or is resumed as soon as a worker is free
	waitsForPeople = "waiting_for_people" // its turn waits for somebody
	waiting        = "waiting"            // nobody has begun with it
	sending        = "sending"            // its answer waits to be sent
	undelivered    = "undelivered"        // its answer could not be sent
	unsure         = "unknown"            // its answer may have been sent or not
	failed         = "failed"
	cancelled      = "cancelled"
	givenUp        = "given_up" // it is a dead letter
)

// inWords says what an outcome means, and what to do about it.
func inWords(outcome string) string {
	return map[string]string{
		replied:        "It was answered.",
		silent:         "It was done, without an answer.",
		running:        "A turn is working on it, or will as soon as a worker is free: `parley status` shows how far it is.",
		waitsForPeople: "Its turn is waiting for an answer: `parley approvals` lists what it asked.",
		waiting:        "It may be waiting for a worker: `parley status` shows what's running before it.",
		sending:        "Its answer is waiting to be sent: `parley status` says whether the channel is connected.",
		undelivered:    "The answer could not be sent: `parley dead-letters` shows it, and sends it again.",
		unsure:         "There's no telling whether its answer arrived.",
		failed:         "Its turn failed.",
		cancelled:      "Somebody stopped its turn.",
		givenUp:        "It was given up: `parley dead-letters` shows it, and tries it again.",
		refused:        "It was refused.",
	}[outcome]
}

// worse returns that of two states of messages that is to be told.
func worse(a, b string) string {
	rank := map[string]int{channels.Sent: 0, channels.Queued: 1, channels.Unsure: 2, channels.Failed: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// outcomeOf returns the outcome of a message whose answer is in that state.
func outcomeOf(state string) string {
	switch state {
	case channels.Failed:
		return undelivered
	case channels.Unsure:
		return unsure
	case channels.Queued, channels.Sending, channels.Drafted:
		return sending
	}
	return replied
}

// ruleInWords says why a rule refuses messages, and what changes that.
func ruleInWords(rule string) string {
	words := map[string]string{
		gateway.RuleStranger:   "Its sender may not talk to the bot: `parley pairing list` shows who may and who asks to, and the channel's `access` how that's decided.",
		gateway.RuleMention:    "It was said in a group, and not to the bot: `mention` of the channel says what is meant for it.",
		gateway.RuleChat:       "The group is not among `chats` of the channel.",
		gateway.RuleFull:       "Too many messages waited in its conversation.",
		gateway.RuleTooLong:    "It is longer than any message may be.",
		gateway.RuleNoSession:  "No agent answers there: `routes` and `agent` of the channel say who does where.",
		gateway.RuleUnreadable: "Something in it makes it unreadable: the server's log says more.",
		"too_many_turns":       "The sender has had as many turns as `user_turns_hour` or `user_turns` allows.",
		"over_budget":          "A budget is used up: `parley usage` shows what is spent and set aside, and which setting it is.",
	}[rule]
	if words == "" {
		return "The limit " + rule + " kept the turn from doing anything."
	}
	return words
}

// reasonInWords says where to look for the reason why a turn failed.
func reasonInWords(code string) string {
	if code == "" {
		return "The server's log says why."
	}
	return "The reason is " + code + "; the server's log has more of it."
}

// counted says how many there are of something.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
