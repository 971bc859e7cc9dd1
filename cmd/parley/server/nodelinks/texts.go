// This file holds the text that people see from this package.

package nodelinks

import "fmt"

const (
	textNodeUp      = "Whether the node, which an owner has accepted, has a link to the server."
	textNoNode      = "no node by that name has joined: parley nodes list, or GET /v1/nodes, lists those that have"
	textNoLinks     = "this process doesn't take the links of nodes: connect to a gateway"
	textWrongCode   = "the code is wrong, used or older than ten minutes: get a new one with `parley nodes invite`"
	textTaken       = "the name %[1]s is taken: join under another name, or remove the other node first (`parley nodes revoke %[1]s`)"
	textTooMany     = "too many devices try to join: wait a minute"
	textLater       = "the server can't let you join now: try again"
	textNoRequest   = "this isn't a request to join"
	textOtherDevice = "the request is for another name or key than the connection is for"
	textOffered     = "the node now offers something other than what you looked at: look at it again"
	textRevoked     = "the node was removed: it has to join again before you can accept it"
	textJudged      = "a model has to judge that call, and it's only asked if the tool is called by its own name"
	textNodeAsks    = "the node %s runs it only if a person has approved it"
	textRoundabout  = "You work on that node: call the tool by its own name, without nodes. If you don't have it, you may not use it."
	textConfigured  = "the settings name it: an agent's runs_on is %s; take that out first"
	textUnlinked    = "the node hasn't linked yet, so nobody knows what it offers: start `parley node` on the device"
)

func nameTaken(name string) string { return fmt.Sprintf(textTaken, name) }
