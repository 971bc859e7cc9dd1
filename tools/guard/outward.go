package guard

import (
	"context"
	"fmt"

	"parley/tools"
)

// The rule of two: a model that has read text that strangers may have written, and can see private data, must not
// also act on the outside without a person's approval, because that text may contain instructions.

// describeOutward says what a call would do to the outside, beyond answering the person who asks; "" if nothing.
func (g *Guard) describeOutward(call tools.Call, t tools.Touch) string {
	switch does := t.Outward.(type) {
	case tools.OutwardEffect:
		return "the call would " + string(does)
	case tools.RunsProgram:
		if g.cfg.ReachesNetwork == nil || g.cfg.ReachesNetwork(call) {
			return "the call would " + string(does.Effect)
		}
		return ""
	case tools.NothingOutward, tools.HandsOutTask:
		return g.describeReached(call, t.Subject)
	}
	return fmt.Sprintf("the call would use %s, which nobody has marked as safe for the outside world", tools.OneLine(call.Name))
}

// describeReached says what a call that only sends a message or fetches a page would do to the outside. It returns
// "" if the message goes to the conversation itself, or if the address was seen before. Even the address of a page
// may carry information out, if the model has built it from what it knows.
func (g *Guard) describeReached(call tools.Call, of tools.Subject) string {
	switch of := of.(type) {
	case tools.Chat:
		for _, p := range g.addressedParts(of) {
			if p.text != call.Address {
				return "the call would send a message to " + tools.OneLine(p.text)
			}
		}
	case tools.URL:
		if call.Seen == nil || !call.Seen(string(of)).Found {
			return fmt.Sprintf("the call would fetch %s, an address that nobody wrote and that no result contained", tools.OneLine(string(of)))
		}
	}
	return ""
}

// applyRuleOfTwo says to ask a person about a call that acts on the outside, or that requests too many pages, if
// the agent has read something that strangers may have written.
func (g *Guard) applyRuleOfTwo(call tools.Call, t tools.Touch) tools.Verdict {
	if !call.Untrusted || !g.cfg.AskUntrusted {
		return tools.Verdict{}
	}
	what := g.describeOutward(call, t)
	if what == "" {
		return g.checkSpending(call, t)
	}
	return askBecauseUntrusted(what)
}

// askBecauseUntrusted returns the verdict to ask a person about a call; what says what the call would do.
func askBecauseUntrusted(what string) tools.Verdict {
	return askVerdict("this conversation contains text that strangers may have written, such as a web page or a forwarded message, and %s", what)
}

// describeNetworkedReader says why a call that may write files could leak them: a job with network access, started
// earlier, may read or run them. It returns "" if no job could, or if no approval is needed.
func (g *Guard) describeNetworkedReader(ctx context.Context, call tools.Call, t tools.Touch) string {
	if !t.MayWrite() || !call.Untrusted || !g.cfg.AskUntrusted || g.cfg.NetworkedReader == nil {
		return ""
	}
	reader, err := g.cfg.NetworkedReader(ctx, call)
	switch {
	case err != nil:
		return "the call would write files, and I can't tell right now whether anything with network access reads them"
	case reader == "":
		return ""
	}
	return fmt.Sprintf("the call would write files that %s, which has network access, may read", reader)
}
