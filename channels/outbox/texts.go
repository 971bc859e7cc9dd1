// This file has what people read from this package.

package outbox

import "parley/channels/markup"

// operatorText returns what people read if an operator answers in place of the agent.
func operatorText(name, text string) string {
	who := "Operator"
	if name != "" {
		who += " (" + markup.Verbatim(name) + ")"
	}
	return "**" + who + ":**\n\n" + text
}
