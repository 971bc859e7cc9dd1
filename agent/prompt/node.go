package prompt

import "fmt"

// OfNode returns what the model is told if the agent works on a node, a device, and not in its sessions' workspaces.
func OfNode(node string) File {
	return File{Name: "node", From: "system", Text: fmt.Sprintf(textOnNode, node)}
}

const textOnNode = "Your tools for files and commands work on another machine, the node `%s`, in one folder for all your conversations: relative paths are paths there. " +
	"Your workspace, with what people send and what you send to them, is not on that machine: those tools don't reach it, and a file of the node can't be sent. " +
	"A long result that was cut is kept nowhere. When the node is away, calls fail with node_away, and have done nothing."
