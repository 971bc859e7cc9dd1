// Package welcome writes the texts that tell people at the first contact that they are talking to a bot, what
// happens to what they say, and what the bot can do for them.
package welcome

import (
	"fmt"
	"slices"
	"strings"

	"parley/tools"
)

// Facts say who a person is and what the agent can do for them.
type Facts struct {
	Owner, Approver bool // what the person is
	Capabilities    []tools.Permission
	Prefix          string // what commands begin with
}

// Text returns a Markdown text that tells a person what the bot can do for them.
func Text(f Facts) string {
	var b strings.Builder
	b.WriteString(textWhere)
	b.WriteString(textCapabilities)
	for _, one := range capabilityTexts() {
		if slices.Contains(f.Capabilities, one.permission) {
			b.WriteString("- " + one.words + "\n")
		}
	}
	switch {
	case f.Owner:
		b.WriteString(textOwner)
	case f.Approver:
		b.WriteString(textApprover)
	}
	fmt.Fprintf(&b, textCommands, f.Prefix)
	return b.String()
}
