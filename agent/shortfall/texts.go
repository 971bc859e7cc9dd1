// Package shortfall tells people why a model's answer is incomplete, or why there is none.
package shortfall

import (
	"fmt"
	"slices"
	"time"

	"parley/agent/llm"
)

// Text returns a text that tells people what is missing from an answer, or "" if it is complete. some says that
// people see a part of the answer right before this text.
func Text(a llm.Answer, some bool) string {
	reason := ""
	if a.Reason != "" {
		reason = fmt.Sprintf(" (“%s”)", a.Reason)
	}
	switch {
	case a.Stop == llm.StopLength && some:
		return "_(The answer was cut off at the model's length limit. Say “go on” for more.)_"
	case a.Stop == llm.StopLength && slices.ContainsFunc(a.Blocks, isThought):
		return "_(The model reached its length limit while it was still thinking, and gave no answer. Ask for less at a time, or say “go on”.)_"
	case a.Stop == llm.StopLength:
		return "_(The model's length limit left no room for an answer. Ask for less at a time.)_"
	case a.Stop == llm.StopWindow && some:
		return "_(The answer was cut off because the model's context window is full. Say “go on” for more.)_"
	case a.Stop == llm.StopFiltered && some:
		return "_(The provider's content filter" + reason + " cut the answer off here.)_"
	case a.Stop == llm.StopFiltered:
		return "_(The provider's content filter" + reason + " blocked the answer. Try rephrasing.)_"
	case a.Stop == llm.StopBroken:
		return "_(The provider cut the answer off here" + reason + ", each time I asked. Ask again a little later for the rest.)_"
	case a.Stop == llm.StopLost && some:
		return "_(Each time I asked, the model announced a tool call that never came, so this may be incomplete.)_"
	case a.Stop == llm.StopLost:
		return "_(Each time I asked, the model announced a tool call that never came. Try rephrasing your message.)_"
	case a.Stop == llm.StopUnknown && some:
		return "_(The model stopped for a reason I don't know" + reason + ", so this may be incomplete.)_"
	case !some:
		return "_(The model gave an empty answer. Try again, or rephrase your message.)_"
	}
	return ""
}

// isThought reports whether a block of an answer is reasoning of the model, and not empty.
func isThought(b llm.Block) bool { return b.Kind == llm.BlockThinking && b.Text+b.Name != "" }

// Why returns why a model gave no answer: a code for the log, and a text for people. prefix is what commands
// begin with where these people are. quote says that they may see the provider's own message.
func Why(fault *llm.Error, prefix string, quote bool) (code, text string) {
	switch {
	case fault.Fault == llm.Overflow:
		return "context_too_long", fmt.Sprintf("This conversation is now too long for the model to read. %snew starts over, but keeps files and memory.", prefix)
	case fault.Fault == llm.Refused && quote:
		return "model_refused", fault.Explain()
	case fault.Fault == llm.Refused:
		return "model_refused", fmt.Sprintf("The model's provider is refusing my requests%s. My operator has to check the model's name and key; the server's log has the details.", statusOf(fault))
	case fault.Fault == llm.Rejected && quote:
		return "model_rejected", fmt.Sprintf("%s %snew starts over.", fault.Explain(), prefix)
	case fault.Fault == llm.Rejected:
		return "model_rejected", fmt.Sprintf("The model's provider rejected this request%s. The server's log has the details; %snew starts over.", statusOf(fault), prefix)
	case quote:
		return "model_busy", fmt.Sprintf("%s I gave up after %s.%s", fault.Explain(), triesOf(fault), pauseText(fault, " The provider won't take requests until %s."))
	}
	when := pauseText(fault, "Its provider won't take requests until %s: please ask again then.")
	if when == "" {
		when = "Please ask again a little later."
	}
	return "model_busy", fmt.Sprintf("I can't reach the model, or it's too busy. I gave up after %s. %s", triesOf(fault), when)
}

// longPause is the shortest pause that people are told the provider asks for.
const longPause = 2 * time.Minute

// pauseText returns format with the time until which the provider accepts no requests, or "" if that is soon or
// not known.
func pauseText(fault *llm.Error, format string) string {
	if fault.RetryAfter < longPause {
		return ""
	}
	return fmt.Sprintf(format, clock(time.Now().Add(fault.RetryAfter)))
}

// WaitText tells people that a turn waits for a model until a certain time, and asks it again after a while.
// asked is how long the provider asks to be left alone. prefix is what commands begin with.
func WaitText(asked, after time.Duration, until time.Time, prefix string) string {
	free := clock(time.Now().Add(asked))
	text := fmt.Sprintf("I can't reach the model, or it's too busy. I'll keep trying until %s, and answer as soon as I can", clock(until))
	switch {
	case asked >= longPause && asked <= after:
		text = fmt.Sprintf("The model is too busy: its provider won't take requests until %s. I'll ask again then, keep trying until %s, and answer as soon as I can", free, clock(until))
	case asked >= longPause:
		text = fmt.Sprintf("The model is too busy: its provider won't take requests until %s. I'll wait until %s, try one last time, and then answer or give up", free, clock(until))
	}
	return text + "; " + prefix + "stop makes me give up right away."
}

// clock returns a time in the form that people are shown.
func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") + " UTC" }

// triesOf returns in words how many times a model was asked.
func triesOf(fault *llm.Error) string {
	if fault.Tries <= 1 {
		return "one try"
	}
	return fmt.Sprintf("%d tries", fault.Tries)
}

// statusOf returns a fault's status in brackets, or "" if it has none.
func statusOf(fault *llm.Error) string {
	if fault.Status == 0 {
		return ""
	}
	return fmt.Sprintf(" (status %d)", fault.Status)
}
