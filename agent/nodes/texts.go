// This file holds the text that people see from this package.

package nodes

const (
	textUnknown     = "no node by that name has joined this server"
	textRevoked     = "an owner has removed this node: it has to join again"
	textStopping    = "this process is stopping: try again"
	textWrongKey    = "the connection proves another key than that with which the node has joined, or is under another name"
	textBusy        = "not now: try again later"
	textNodeWaiting = "The device %s (%s) has joined as a node, but no agent can use it yet. Look at what it offers with `parley nodes describe %[1]s`, and accept it with `parley nodes accept %[1]s`."
	textHeard       = "The edge agent %s was heard on the MQTT broker, but no agent can use it yet. Only the broker says that it is that device. Look at what it offers with `parley nodes describe %[1]s`, and accept it with `parley nodes accept %[1]s`."
	textNewTools    = "The node %s offers new or changed tools, which agents can't use yet: %s. Look at them with `parley nodes describe %[1]s`, and accept them with `parley nodes accept %[1]s`."
)
