// Package welcome writes the texts that tell people at a first contact that they talk to a bot and
// what becomes of what they say, and what the bot may do for them.
package welcome

import (
	"fmt"
	"slices"
	"strings"

	"parley/tools"
)

// Facts say who a person is and what the agent may do for them.
type Facts struct {
	Owner, Approver bool // what the person is
	Capabilities    []tools.Permission
	Prefix          string // what commands begin with
}

// Text returns in Markdown the text that tells a person what the bot may do for them.
func Text(f Facts) string {
	var b strings.Builder
	b.WriteString("Write to me here, or mention me in a channel I'm in. Each thread is a conversation of its own, with its own files and memory.\n\n")
	b.WriteString("**What I can do for you in our own chat**\n\n- answer, and send messages where I'm allowed to\n")
	for _, one := range capabilityTexts() {
		if slices.Contains(f.Capabilities, one.permission) {
			b.WriteString("- " + one.words + "\n")
		}
	}
	switch {
	case f.Owner:
		b.WriteString("\nYou own this bot: you let others in, and I ask you when something needs an approval.\n")
	case f.Approver:
		b.WriteString("\nYou can approve requests from conversations on this channel.\n")
	}
	fmt.Fprintf(&b, "\n**Commands**\n\n- `%[1]snew` begins a new conversation; files and memory stay\n- `%[1]sstop` ends what I'm doing\n- `%[1]sstatus` says what I am doing\n- `%[1]shelp` says what else there is\n", f.Prefix)
	return b.String()
}

// A capabilityText says in words what an agent with a permission can do.
type capabilityText struct {
	permission tools.Permission
	words      string
}

// capabilityTexts returns for each capability, in words, what the agent can do for a person if it
// has it.
func capabilityTexts() []capabilityText {
	return []capabilityText{
		{tools.FileRead, "read the files of our conversation"},
		{tools.FileWrite, "write files of our conversation, and remember things there"},
		{tools.Shell, "run programs on those files, in a sandbox"},
		{tools.Git, "keep versions of them with git"},
		{tools.Network, "read pages of the web, and search it"},
		{tools.Session, "look into other conversations, and start new ones"},
	}
}
