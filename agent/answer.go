package agent

import (
	"fmt"
	"slices"
)

// retryable tells whether an answer that is not whole may be whole if the model is
// asked once more.
func (a Answer) retryable() bool { return a.Stop == StopBroken || a.Stop == StopLost }

func (a Answer) has(kind BlockKind) bool {
	return slices.ContainsFunc(a.Blocks, func(b Block) bool { return b.Kind == kind && b.Text+b.Name != "" })
}

// withoutCalls is an answer whose calls are not to be trusted.
func (a Answer) withoutCalls() Answer {
	a.Blocks = slices.DeleteFunc(slices.Clone(a.Blocks), func(b Block) bool { return b.Kind == BlockToolUse })
	return a
}

// shortfall says in words what an answer lacks, "" of one that lacks nothing.
// Some of it may stand before these words.
func (a Answer) shortfall(some bool) string {
	reason := ""
	if a.Reason != "" {
		reason = fmt.Sprintf(" (“%s”)", a.Reason)
	}
	switch {
	case a.Stop == StopLength && some:
		return "_(The answer was cut off at the model's length limit. Say “go on” for more.)_"
	case a.Stop == StopLength && a.has(BlockThinking):
		return "_(The model reached its length limit while it was still thinking, and has not come to an answer. Ask for less at once, or say “go on”.)_"
	case a.Stop == StopLength:
		return "_(The model's length limit left no room for an answer. Ask for less at once.)_"
	case a.Stop == StopWindow && some:
		return "_(The answer was cut off because the model's window is full. Say “go on” for more.)_"
	case a.Stop == StopFiltered && some:
		return "_(The provider's content filter" + reason + " has cut the answer off here.)_"
	case a.Stop == StopFiltered:
		return "_(The provider's content filter" + reason + " has kept the answer back. Ask in other words.)_"
	case a.Stop == StopBroken:
		return "_(The provider broke the answer off here" + reason + ", each time it was asked. Ask again a little later for the rest.)_"
	case a.Stop == StopLost && some:
		return "_(The model announced a tool call that never came, each time it was asked, so this may not be all.)_"
	case a.Stop == StopLost:
		return "_(The model announced a tool call that never came, each time it was asked. Ask again, perhaps in other words.)_"
	case a.Stop == StopUnknown && some:
		return "_(The model ended for a reason that I do not know" + reason + ", so this may not be all.)_"
	case !some:
		return "_(The model gave an empty answer. Ask again, perhaps in other words.)_"
	}
	return ""
}
