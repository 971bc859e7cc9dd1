package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"

	"parley/agent/llm"
	"parley/tools/plainjson"
)

// CallIDs holds the ids of the calls in one request. A call and its result get the same id.
type CallIDs struct {
	Short bool // the ids must be nine letters and digits
	known map[string]string
}

// IDFor returns the id of a call in the request: the provider's, or else one made from ours.
func (ids *CallIDs) IDFor(b llm.Block) string {
	if known, ok := ids.known[b.Call]; ok && b.Call != "" {
		return known
	}
	id := b.ProviderID
	if id == "" {
		id = b.Call
		if !WellFormed(id) {
			id = "call_" + digest(id, 24)
		}
	}
	if ids.Short {
		id = digest(id, 9)
	}
	if ids.known == nil {
		ids.known = map[string]string{}
	}
	ids.known[b.Call] = id
	return id
}

// WellFormed reports whether an id has a form that every server accepts, except those that require short ids.
func WellFormed(id string) bool {
	return id != "" && len(id) <= 40 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// digest returns a hash of a text as n letters and digits.
func digest(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:n]
}

// WriteArgs returns a call's arguments as the text of a JSON object, an empty one for no arguments. It wraps
// anything else in an object: some servers parse the arguments, and would forever refuse a conversation in which a
// model once wrote something else.
func WriteArgs(args json.RawMessage) string {
	trimmed := bytes.TrimSpace(args)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return "{}"
	}
	if trimmed[0] == '{' {
		return string(trimmed)
	}
	return `{"not_an_object":` + string(trimmed) + `}`
}

// ReadArgs returns the arguments that a model wrote as a JSON object. If the text is empty, it returns an empty
// object, and if it is not JSON, the text as a JSON string.
func ReadArgs(written string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(written))
	if IsEmpty(raw) {
		return json.RawMessage(`{}`)
	}
	if rest, ok := bytes.CutPrefix(raw, []byte("{}")); ok && len(rest) > 0 && rest[0] == '{' {
		raw = rest // some servers send an empty object before the arguments
	}
	if raw[0] == '"' { // the arguments were encoded twice
		var inner string
		if json.Unmarshal(raw, &inner) == nil && json.Valid([]byte(inner)) && strings.HasPrefix(strings.TrimSpace(inner), "{") {
			raw = []byte(inner)
		}
	}
	if json.Valid(raw) {
		return raw
	}
	text, err := plainjson.Marshal(written)
	if err != nil { // a string always marshals
		return json.RawMessage(`""`)
	}
	return text
}
