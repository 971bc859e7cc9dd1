// This file holds the text that people see from this package.

package worker

import (
	"fmt"
	"strings"
	"time"

	"parley/sessions"
)

// textHelp is a format; its arguments are the channel's prefix of commands, and textOwnDataHelp where that applies.
const textHelp = `Just write to me and I'll answer; I can use my tools to work in this conversation's own folder.

- %[1]snew starts a new conversation, but keeps files and memory
- %[1]sstop makes me stop what I'm doing
- %[1]sstatus says what I'm doing, %[1]susage what you've used and what it cost
- %[1]sundo undoes my last change in that folder, and %[1]sundo list shows what can be undone
- %[1]scontext says how much room is left in this conversation, %[1]scompact sums up the conversation so far
- %[1]sapprove ID and %[1]sdeny ID REASON answer a request that I'm waiting on
%[2]s- %[1]shelp shows this list`

// textOwnDataHelp is the part of textHelp about people's own data, which the gateways of platforms send and
// erase.
const textOwnDataHelp = `- %[1]sexport sends you what you've said to me, %[1]sforget erases it
- %[1]srecall WORDS finds what was said earlier
- %[1]smemory shows what I remember about you across conversations, %[1]slink tells me who you are on another channel
`

const (
	textNoted           = "Noted. I'm waiting for %s, and then I'll go on. `%sstop` makes me give up."
	textFinishFirst     = "I'll finish what I'm working on first, and then %s. %sstop stops me right away."
	textCannotSumUp     = "I'm waiting for an answer, and I can't sum anything up until I get it. Please try again after that."
	textStartedNew      = "I've started a new conversation. Your files and memory are still here."
	textKeepsWaiting    = " Anything that's waiting for an answer keeps waiting; %sstop ends it."
	textNothingRuns     = "Nothing is running."
	textNoUsage         = "I don't keep track of usage here."
	textOnlyOnPlatforms = "That only works in a chat with me on a chat platform. Here, `parley forget --user %s` erases what you've said, and `parley sessions` shows it."
	textOnlyInPrivate   = "That only works in a private chat with me on a chat platform."
	textRecallHere      = "On my web page, the search above the list of conversations finds what was said. In a terminal, `parley recall WORDS` does."
	textPageHere        = "Run `parley ui` on the machine I run on: it opens my web page."
	textUnknownCommand  = "I don't know the command %[1]s%[2]s. %[1]shelp lists the ones I know."
	textNoCopies        = "I don't keep copies of what I change here, so I can't undo it."
	textReadingAloud    = "I'm reading my answer aloud."
	textBeenWaiting     = "I've been waiting %s for %s."
	textBeenWorking     = "I've been working for %s: step %d of at most %d%s."
	textInBackground    = " Jobs in the background: %d."
	textSubAgents       = " Sub-agents at work: %d."
	textStatusList      = "\n\n- model: %s\n- messages waiting: %d (at most %d)"
	textTokensToday     = "\n- your tokens today: %s (at most %s)"
	textSetAside        = ", and %s set aside for answers in progress"
	textSession         = "\n- session: `%s`"
	textNoFetch         = "I can't fetch files here"
	textNoAsks          = "I can't ask anything here, so there's nothing to answer."
	textWhichRequest    = "Which request? Say `%s%s ID`; the ID is in the request."
	textRequestEnded    = "Request `%s`: %s."
	textUnsendable      = "I have an answer for you, but I can't send it: the answer is too long, or your message's id is too long. Ask for less at a time, or ask again."
	textCutOff          = "I was cut off %d times while I worked on this, so I've given up on it. Whatever I'd already done stays done. Ask again if it still matters."
	textTooLong         = "I worked on this for %s, the longest a turn may take, so I stopped."
	textTooManyTurns    = "You've asked me %d times in the past hour, and that's the limit. Ask again after %s UTC."
	textNoHistory       = "I couldn't work on your message: I can't open this conversation's history. The server's log says why."
	textKeptFailing     = "I couldn't work on your message: something went wrong each time I tried. The server's log says why."
	textReadInPart      = "_(This is the beginning of my answer. The rest is only in the text above.)_"
	textReadCut         = "_(This is only the beginning. The rest was too long to be read aloud.)_"
	textNotRead         = "_(I couldn't read that aloud: %s.)_"
	textCutOffReading   = "I was cut off while I was reading"
	textBadName         = "I couldn't accept your message: I can't store a conversation under that name. Use another one."
)

// textNode names a node that is waited for, and says since when it is away.
func textNode(a sessions.Ask) string {
	if len(a.AnyOfNodes) > 1 {
		return fmt.Sprintf("whichever of the nodes `%s` comes back first", strings.Join(a.AnyOfNodes, "`, `"))
	}
	if a.Since.IsZero() {
		return fmt.Sprintf("the node `%s`, which has never been here", a.Node)
	}
	return fmt.Sprintf("the node `%s`, which has been away since %s", a.Node, textTime(a.Since))
}

// textWaitsForNode says what a call waits for, and until when.
func textWaitsForNode(a sessions.Ask) string {
	return fmt.Sprintf("waiting for %s, until %s at the latest", textNode(a), textTime(a.Expires))
}

// textNodeAway tells a person that a turn waits for a node.
func textNodeAway(a sessions.Ask, prefix string) string {
	return fmt.Sprintf("I'm waiting for %s. I'll go on when it's back, or without it at %s. `%sstop` makes me give up.", textNode(a), textTime(a.Expires), prefix)
}

// textTime returns a time in words.
func textTime(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

func textStoppedAlso(beside string) string {
	return "Stopped, along with " + beside + "."
}

// textJobs returns a number of jobs in words.
func textJobs(n int) string {
	if n == 1 {
		return "one job that was running in the background"
	}
	return fmt.Sprintf("%d jobs that were running in the background", n)
}

// textSubAgentCount returns a number of sub-agents in words.
func textSubAgentCount(n int) string {
	if n == 1 {
		return "one sub-agent"
	}
	return fmt.Sprintf("%d sub-agents", n)
}
