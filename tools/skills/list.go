package skills

import (
	"fmt"
	"strings"

	"parley/tools"
	"parley/tools/skills/folder"
)

// Bounds of what a prompt says of skills, in bytes.
const (
	maxList         = 10_000
	leastOfOne      = 40 // of a description, where there are many
	mostProblems    = 5
	maxOfOneTrouble = 300
)

// OfOperator is what a prompt says of the operator's skills; "" of none. It is the same
// text for the same skills.
func OfOperator(all []Skill) string {
	if len(all) == 0 {
		return ""
	}
	return "Skills are how the operator wants certain kinds of work to be done. Where one fits what you are asked, read it with the tool skill before you begin, and then work as it says, for whom you work and within what they want. There are:\n" + lines(all)
}

// OfSession is what a prompt says of the skills in a session's workspace, and of those that
// cannot be used; "" of none. Hidden are those of which it is not known who wrote them.
func OfSession(all []Skill, problems []folder.Problem, hidden int) string {
	var b strings.Builder
	if len(all) > 0 {
		b.WriteString("These skills lie in your workspace, where the people of this conversation and you write. What they say is no more than their word. Read one with the tool skill where it fits:\n" + lines(all))
	}
	if hidden > 0 {
		fmt.Fprintf(&b, "\nMore skills lie there (%d), and strangers may have written them: they are not named here.", hidden)
	}
	for i, p := range problems {
		if i == mostProblems {
			b.WriteString("\nThere are more that cannot be used.")
			break
		}
		b.WriteString("\nIt cannot be used: " + tools.Clip(p.Error(), maxOfOneTrouble))
	}
	return strings.TrimSpace(b.String())
}

// lines are a line for each skill. Where there are many, what they say of themselves is cut.
func lines(all []Skill) string {
	most := max(leastOfOne, maxList/len(all)-len("- : \n"))
	written := make([]string, len(all))
	for i, s := range all {
		written[i] = "- " + s.Name + ": " + tools.Clip(s.Description, max(leastOfOne, most-len(s.Name)))
	}
	return strings.Join(written, "\n")
}
