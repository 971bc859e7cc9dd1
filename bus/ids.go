package bus

import (
	"strconv"
	"strings"
)

// The ids of what is said in consequence of a message are made of that message's
// id. So whoever is cut off between publishing and noting it publishes the same
// id again, and the bus passes the repetition over.

// replySuffix makes the id of a reply out of the id of what it answers.
const replySuffix = "#reply"

// ReplyID is the id of the reply to a turn or a command with that id.
func ReplyID(cause string) string { return cause + replySuffix }

// ReplyCause is the id of the turn or command to which a reply with that id is one.
func ReplyCause(id string) string { return strings.TrimSuffix(id, replySuffix) }

// IsReply tells a turn's answer from what else the turn says. A turn's id is that
// of the first message that it answers.
func (out Outbound) IsReply() bool { return out.Turn != "" && out.ID == ReplyID(out.Turn) }

// Cause is the id of what is answered, or spoken of, under an id that was made of it.
// Derived is false for any other id, which is its own cause.
func Cause(id string) (cause string, derived bool) {
	cause, _, derived = strings.Cut(id, "#")
	return cause, derived
}

// FallbackID is the id under which a message is published to its n-th fallback.
func FallbackID(id string, n int) string { return id + "~fallback/" + strconv.Itoa(n) }

// DerivedID is the id of something that is said about the message with that id,
// such as a notice to its session. It is shortened to what the bus takes as an id.
func DerivedID(id, suffix string) string {
	return id[:min(len(id), MaxID-len(suffix))] + suffix
}
