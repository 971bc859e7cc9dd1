package bus

import (
	"strconv"
	"strings"
)

// If a message results from another one, its id is derived from that one's id. So a process
// that is interrupted after publishing it and before recording it publishes the same id
// again, and the bus drops the repetition.

// replySuffix is appended to a message's id to form the id of its reply.
const replySuffix = "#reply"

// ReplyID returns the id of the reply to the turn or command with that id.
func ReplyID(cause string) string { return cause + replySuffix }

// ReplyCause returns the id of the turn or command to which the message with that id replies; the id itself if it is
// no reply's.
func ReplyCause(id string) string { return strings.TrimSuffix(id, replySuffix) }

// IsReply reports whether the message is a turn's answer, and not another message of the turn. A turn has the id of
// the first message that it answers.
func (out Outbound) IsReply() bool { return out.Turn != "" && out.ID == ReplyID(out.Turn) }

// Cause returns the part of an id before the first "#". With ReplyID, and with DerivedID if the
// suffix begins with "#", that is the id of the message that is answered or reported on. For an
// id without "#" it returns the id itself and false.
func Cause(id string) (cause string, derived bool) {
	cause, _, derived = strings.Cut(id, "#")
	return cause, derived
}

// fallbackInfix is what follows a message's id in the ids under which it is published to its fallback addresses.
const fallbackInfix = "~fallback/"

// FallbackID returns the id under which a message that could not be delivered is published to its
// n-th fallback address.
func FallbackID(id string, n int) string { return id + fallbackInfix + strconv.Itoa(n) }

// FallbackOf returns the id of the message that was published to a fallback address under this id; the id itself if none
// was.
func FallbackOf(id string) string {
	of, _, _ := strings.Cut(id, fallbackInfix)
	return of
}

// DerivedID returns the id for a message about the message with that id, such as a notice
// to its session. It shortens the id so that the result fits MaxID.
func DerivedID(id, suffix string) string {
	return id[:min(len(id), MaxID-len(suffix))] + suffix
}

// toldSuffix is appended to a message's id to form the id of the notice about it.
const toldSuffix = "#told"

// ToldID returns the id of the notice that tells a session what the message with that id has said in its chat.
func ToldID(id string) string { return DerivedID(id, toldSuffix) }

// ToldOf returns the id of the message that the notice with that id is about; of a message with a long id, only the
// part that ToldID has kept.
func ToldOf(notice string) string { return strings.TrimSuffix(notice, toldSuffix) }
