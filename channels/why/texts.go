package why

import (
	"strconv"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/sessions"
)

// The outcomes of a message, besides refused.
const (
	outcomeReplied        = "answered"
	outcomeSilent         = "done"               // its turn has ended without an answer
	outcomeRunning        = "running"            // a turn is working on it, or will be resumed as soon as a worker is free
	outcomeWaitsForPeople = "waiting_for_people" // its turn is waiting for somebody
	outcomeWaiting        = "waiting"            // nobody has begun working on it
	outcomeSending        = "sending"            // its answer is waiting to be sent
	outcomeUndelivered    = "undelivered"        // its answer could not be sent
	outcomeUnsure         = "unknown"            // its answer may or may not have been sent
	outcomeFailed         = "failed"
	outcomeCancelled      = "cancelled"
	outcomeGivenUp        = "given_up" // it is a dead letter
)

// outcomeInWords says what an outcome means, and what to do about it.
func outcomeInWords(outcome string) string {
	return map[string]string{
		outcomeReplied:        "It was answered.",
		outcomeSilent:         "It was handled, without an answer.",
		outcomeRunning:        "A turn is working on it, or will be as soon as a worker is free: `parley status` shows how far along it is.",
		outcomeWaitsForPeople: "Its turn is waiting for an answer: `parley approvals` lists what it asked.",
		outcomeWaiting:        "It may be waiting for a worker: `parley status` shows what's ahead of it.",
		outcomeSending:        "Its answer is waiting to be sent: `parley status` says whether the channel is connected.",
		outcomeUndelivered:    "The answer couldn't be sent: `parley dead-letters` shows it, and can send it again.",
		outcomeUnsure:         "There's no telling whether its answer arrived.",
		outcomeFailed:         "Its turn failed.",
		outcomeCancelled:      "Somebody stopped its turn.",
		outcomeGivenUp:        "Parley gave up on it: `parley dead-letters` shows it, and can try it again.",
		stepRefused:           "It was refused.",
	}[outcome]
}

// worseState returns the worse of two states of messages, which is the one to report.
func worseState(a, b string) string {
	rank := map[string]int{channels.Sent: 0, channels.Queued: 1, channels.OutcomeUnknown: 2, channels.Failed: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// outcomeOf returns the outcome of a message whose answer is in that state.
func outcomeOf(state string) string {
	switch state {
	case channels.Failed:
		return outcomeUndelivered
	case channels.OutcomeUnknown:
		return outcomeUnsure
	case channels.Queued, channels.Sending, channels.Drafted:
		return outcomeSending
	}
	return outcomeReplied
}

// ruleInWords says why a rule refuses messages, and how to change that.
func ruleInWords(rule string) string {
	words := map[string]string{
		gateway.RuleStranger:   "Its sender isn't allowed to talk to the bot: `parley pairing list` shows who is and who's asking, and the channel's `access` setting says how that's decided.",
		gateway.RuleMention:    "It was posted in a group and wasn't addressed to the bot: the channel's `mention` setting says which messages are.",
		gateway.RuleChat:       "The group isn't in the channel's `chats` list.",
		gateway.RuleFull:       "Too many messages were already waiting in its conversation.",
		gateway.RuleTooLong:    "It's longer than messages are allowed to be.",
		gateway.RuleNoSession:  "No agent answers there: the channel's `routes` and `agent` settings say which agent answers where.",
		gateway.RuleUnreadable: "Something in it makes it unreadable: the server's log has the details.",
		"too_many_turns":       "The sender has had as many turns as `user_turns_hour` or `user_turns` allows.",
		"over_budget":          "A budget is used up: `parley usage` shows how much has been spent and set aside, and which setting limits it.",
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
	return "The reason is " + code + "; the server's log has the details."
}

// turnEndInWords says how a turn ended, to follow "the turn".
func turnEndInWords(state string) string {
	switch state {
	case sessions.TurnCompleted:
		return "was finished"
	case sessions.TurnFailed:
		return "failed"
	case sessions.TurnCancelled:
		return "was canceled"
	}
	return "ended with the state " + state
}

// askInWords says what a turn is waiting for.
func askInWords(a sessions.Ask) string {
	switch a.Kind {
	case bus.AskQuestion:
		return "an answer"
	case sessions.AskNode:
		return "the node " + a.Node
	}
	return a.Kind
}

// countInWords returns a number together with what it counts, in the plural unless it is 1.
func countInWords(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

const (
	textKeptForever     = "Conversations are kept until somebody erases them"
	textKeptFor         = "Conversations are kept for "
	textNoMessage       = "There's no record of this message. Is its id right? `parley logs` and the server's log have message ids; for the newest messages in a chat, give an address like telegram:42 instead."
	textNoMessagesThere = "There's no record of messages there. `parley chats` lists the chats where somebody has talked to the bot."
	textNoMessagesHere  = "There's no record of messages in this conversation."
	textCarriedOut      = "Parley carried out the command %s"
	textGaveUpAfter     = "Parley gave up on it after %s, so it's a dead letter in the topic %s: %s"
	textGaveUpOn        = "Parley gave up on %s, so it's a dead letter in the topic %s: %s"
	textReplayed        = "Parley gave up on it, and somebody published it again as %s"
	textNeverDelivered  = "If the platform never delivered the message, there's no trace of it here: `parley status` says whether the channel is connected, and `parley doctor` whether the bot may read there."
)

func textRefusalsKept(hours string) string {
	return ", and refusals for " + hours + ", but only the newest for each rule on each channel. Erased messages aren't shown."
}
