package device

// What models read about calls.
const (
	textCutOff      = "OUTCOME UNKNOWN: the node was cut off while it ran %s, so the call may have had its effect. Inspect before repeating it."
	textLost        = "OUTCOME UNKNOWN: the node has run %s before and has forgotten how it ended. Inspect before repeating it."
	textCancelled   = "%s was cancelled while it ran on the node, and everything that it had started was ended. What it did until then is done: inspect before repeating it."
	textStopped     = "the node was stopped while %s ran, and everything that it had started was ended. What it did until then is done: inspect before repeating it."
	textNotBegun    = "the call was cancelled before the node had begun it, so nothing was done"
	textTooMany     = "too many calls wait at the node already, so this one was not begun: wait for them"
	textNoRecord    = "the node can't write its journal, so the call was not begun: its disk may be full or broken"
	textNoOneToAsk  = "the node's own settings forbid it, because nobody can be asked there: %s"
	textNotApproved = "the node's own settings forbid it, because no person has approved it: %s"
	textTimeout     = "%s took longer than %s on the node and was cut off. It may have had its effect: inspect before repeating it."
	textTimeoutPure = "%s took longer than %s on the node."
	textCrashed     = "%s crashed. It may work with other arguments."
)
