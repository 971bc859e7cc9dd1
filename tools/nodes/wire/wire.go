// Package wire is the protocol between a node and a server.
//
// A node opens a WebSocket at GET /v1/nodes/link (see Subprotocol). Each message is one Frame as JSON. The beginning:
//
//	node    hello      its name, and a random Nonce
//	server  challenge  a Nonce of its own, and its signature over both (see ServerText)
//	node    proof      its signature over both (see NodeText), and its offer
//	server  welcome    or refused, and then it closes
//
// Each end knows the other's public key since the node has joined, and breaks off if a signature is not that key's. Then:
//
//	server  call       run Call.Tool, once for each ID, ever; it may say that a person has approved it
//	server  cancel     end the call ID; its result still comes
//	server  ack        the result of the call ID is recorded: forget it
//	node    progress   what the call ID reports
//	node    result     how the call ID has ended; it comes again at each link until it is acknowledged
//	node    offer      what the node can do has changed
//
// The server sends all open calls again at each link, so a node must know a call by its ID.
package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"parley/tools/nodes"
)

// Subprotocol is the WebSocket subprotocol of a link.
const Subprotocol = "parley.node.1"

// The types of frames.
const (
	Hello     = "hello"
	Challenge = "challenge"
	Proof     = "proof"
	Welcome   = "welcome"
	Refused   = "refused"
	Call      = "call"
	Cancel    = "cancel"
	Ack       = "ack"
	Progress  = "progress"
	Result    = "result"
	Offer     = "offer"
)

// A Frame is one message. Which fields it has depends on its Type; a reader ignores types that it does not know.
type Frame struct {
	Type      string          `json:"type"`
	Node      string          `json:"node,omitempty"`
	Nonce     []byte          `json:"nonce,omitempty"` // NonceSize random bytes
	Signature []byte          `json:"signature,omitempty"`
	Offer     *nodes.Offer    `json:"offer,omitempty"`
	Reason    string          `json:"reason,omitempty"` // of refused: one of the reasons below
	Text      string          `json:"text,omitempty"`   // of refused: why, for the node's log; of progress: the report
	ID        string          `json:"id,omitempty"`     // of the call
	Tool      string          `json:"tool,omitempty"`
	Args      json.RawMessage `json:"args,omitempty"`
	Timeout   int64           `json:"timeout_ms,omitempty"`
	Approved  bool            `json:"approved,omitempty"` // of call: a person has approved it
	Outcome   *nodes.Outcome  `json:"outcome,omitempty"`
}

// The reasons for which a server refuses a link.
const (
	ReasonUnknown = "unknown"     // no such node has joined here
	ReasonRevoked = "revoked"     // an owner has revoked it
	ReasonProof   = "proof"       // the signature is not that of the node's key
	ReasonOffer   = "offer"       // the offer exceeds the bounds
	ReasonBusy    = "unavailable" // not now: come again
)

// NonceSize is the number of bytes of a nonce.
const NonceSize = 32

// MaxFrame is the number of bytes that a frame may have.
const MaxFrame = nodes.MaxResult + 64<<10

// ServerText returns the text that the server signs to prove its identity for one link. NodeText returns the one that
// the node signs.
func ServerText(node string, fromNode, fromServer []byte) []byte {
	return signedText("parley server 1", node, fromNode, fromServer)
}

// NodeText returns the text that the node signs: see ServerText.
func NodeText(node string, fromNode, fromServer []byte) []byte {
	return signedText("parley node 1", node, fromNode, fromServer)
}

// signedText joins texts so that no two lists of texts give the same result.
func signedText(role, node string, nonces ...[]byte) []byte {
	text := append([]byte(role), 0)
	text = append(append(text, node...), 0) // a name has no NUL
	for _, n := range nonces {
		text = append(text, n...) // both ends check that each has NonceSize bytes
	}
	return text
}

// Verify reports whether a signature of a text belongs to a public key. It accepts a key of any length, and returns
// false for an invalid one.
func Verify(key, text, signature []byte) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, text, signature)
}

// Fingerprint returns a short text with which people compare public keys.
func Fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}
