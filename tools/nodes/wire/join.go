package wire

// JoinPath is the path at which a device joins: it posts a JoinRequest as JSON, and gets a JoinAnswer, or an error of
// the API with one of the codes below.
const JoinPath = "v1/nodes/join"

// A JoinRequest asks for a device to join. It may be sent again: the same device joins once with a code.
type JoinRequest struct {
	Code string `json:"code"` // that an owner got from parley nodes invite
	Name string `json:"name"` // 1 to 32 of a-z0-9-, and a letter or a digit first
	Key  []byte `json:"key"`  // the device's public key
}

// A JoinAnswer says that a device has joined.
type JoinAnswer struct {
	Name string `json:"name"`
	Key  []byte `json:"key"` // the server's public key, by which the node knows it from now on
}

// The codes of errors with which a server refuses a device. After other codes or statuses, it may try again.
const (
	RefusedCode = "wrong_code" // the code is wrong, used or too old
	RefusedName = "name_taken" // another node has that name
	RefusedForm = "bad_node"   // no node can have this name or key
)
