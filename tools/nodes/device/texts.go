package device

// What the operator of a node reads in its log.
const (
	textJoinAgain   = "an owner lets this device join again: parley nodes invite, on the server; then parley node join, here"
	textOtherServer = "if the server was set up anew, join it again: parley nodes invite, on the server; then parley node join, here"
	textOtherKey    = "another device has joined under this name, or node.key was changed: put the key back, or join again under another name"
	textOfferLess   = "offer fewer tools, or shorter descriptions: the folder of skills says what is offered"
)
