// This file contains the texts from this package that people read.

package outbox

import "parley/channels/markup"

// operatorText returns the text that people read when an operator answers in place of the agent.
func operatorText(name, text string) string {
	who := "Operator"
	if name != "" {
		who += " (" + markup.Verbatim(name) + ")"
	}
	return "**" + who + ":**\n\n" + text
}
