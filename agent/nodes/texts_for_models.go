// This file holds the text that models read from this package.

package nodes

const (
	textNoSuchNode       = "there is no node called %q that you may use; those that you may use: %s"
	textNoSuchTool       = "the node %s has no tool %q that an owner has accepted: list the nodes to see what they have"
	textNodeAway         = "the node %s has been away since %s, so nothing was done: do without it, or try again later"
	textAllAway          = "the nodes that have it are away, so nothing was done: %s"
	textNoNodeHas        = "no node that you may use has the capability %q and a tool %q: list the nodes to see what they have"
	textNeverSent        = "the node %s was away or busy all the time, so the call was never sent and nothing was done"
	textStopped          = "the call was stopped before the node heard of it, so nothing was done"
	textRemoved          = "the node %s was removed, so nothing was done"
	textErased           = "the conversation was erased"
	textStoreFailed      = "the list of nodes can't be read right now, so nothing was done: call again"
	textNotReady         = "nodes can't be given calls now, so nothing was done: %s"
	textArgsTooLarge     = "the arguments have more than %d bytes: pass less"
	textUnrecorded       = "OUTCOME UNKNOWN: the call for the node %s couldn't be recorded reliably, so it may have been sent. Inspect before repeating it."
	textNoAnswer         = "OUTCOME UNKNOWN: %s was sent to the node %s, which hasn't said how it ended, so the call may have had its effect. Inspect before repeating it."
	textRevokedMeanwhile = "OUTCOME UNKNOWN: %s was sent to the node %s, which an owner has removed since, so it may have had its effect. Inspect before repeating it."
	textUnreadable       = "OUTCOME UNKNOWN: %s was run on the node %s, and what it said can't be read. Inspect before repeating it."
	textEarlierCall      = "%s was not sent to the node %s, and nothing was done: the node hasn't said how an earlier call of it has ended. It gets no other one until it has said so, or until %s."
	textPureLost         = "%s got no answer from the node %s in time."
	textRevokedUnsent    = "an owner has removed the node %s, and the call was not sent, so nothing was done"
	textNoOutcome        = "the node said that the call ended, but not how"
	textTooOld           = "the parley on the node %s is too old to run anything in the background, so nothing was done: run it without background, or have its owner update the node"
	textJobLate          = "the node %s was away or busy, so the job was never started"
	textNoReason         = "the node said that the call failed, but not why"
	textTooLarge         = "the node's result isn't JSON, or has more than %d bytes"
)
