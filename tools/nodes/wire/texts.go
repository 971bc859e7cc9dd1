package wire

// What a node is told when it is refused.
const (
	textBusy  = "the server can't look that up now: come again"
	textProof = "the signature isn't that of the key with which the node has joined"
)
