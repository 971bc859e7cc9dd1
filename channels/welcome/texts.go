// This file contains the texts from this package that people read.

package welcome

import "parley/tools"

const (
	textBot          = "I'm a bot: the answers here come from a program with a language model, not from a person."
	textSomeModel    = "What you write to me, and what I read to answer you, goes to the language model my operator has chosen."
	textLocalModel   = "What you write to me stays on the machine I run on."
	textModels       = "What you write to me, and what I read to answer you, goes to the language %s."
	textKept         = "I keep what you write until somebody erases it."
	textKeptDays     = "I keep what you write for %d days."
	textKeptDay      = "I keep what you write for a day."
	textOwnData      = "In a private chat with me, `%[1]sforget` erases what you've said, and `%[1]sexport` sends it to you."
	textWhere        = "Write to me here, or mention me in a channel I'm in. Each thread is a conversation of its own, with its own files and memory.\n\n"
	textCapabilities = "**What I can do for you in our own chat**\n\n- answer, and send messages where I'm allowed to\n"
	textOwner        = "\nYou own this bot: you let others in, and I ask you when something needs approval.\n"
	textApprover     = "\nYou can approve requests from conversations on this channel.\n"
	textCommands     = "\n**Commands**\n\n- `%[1]snew` starts a new conversation, but keeps files and memory\n- `%[1]sstop` makes me stop what I'm doing\n- `%[1]sstatus` says what I'm doing\n- `%[1]shelp` shows what else I can do\n"
)

// A capabilityText says in words what an agent with a permission can do.
type capabilityText struct {
	permission tools.Permission
	words      string
}

// capabilityTexts returns, for each capability, what the agent can do for a person if it has the capability, in
// words.
func capabilityTexts() []capabilityText {
	return []capabilityText{
		{tools.FileRead, "read the files in our conversation's folder"},
		{tools.FileWrite, "write files in our conversation's folder, and remember things there"},
		{tools.Shell, "run programs on those files, in a sandbox"},
		{tools.Git, "keep versions of them with git"},
		{tools.Network, "read web pages, and search the web"},
		{tools.Session, "look into other conversations, and start new ones"},
	}
}

func textRunBy(names string) string {
	return " I'm run by " + names + "."
}
