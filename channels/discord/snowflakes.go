package discord

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"parley/bus"
)

// snowflake returns a Discord id as a number; 0 if the text is not an id. Objects that were created later have
// higher numbers.
func snowflake(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// discordEpoch is the time from which Discord's ids count, in milliseconds since 1970.
const discordEpoch = 1420070400000

// snowflakeAt returns the lowest id that an object created at that time can have.
func snowflakeAt(at time.Time) uint64 {
	return uint64(max(at.UnixMilli()-discordEpoch, 0)) << 22
}

// snowflakeBefore returns the id of an object created d earlier than the one with this id; 0 if there can't be one.
func snowflakeBefore(id uint64, d time.Duration) uint64 {
	before := uint64(d.Milliseconds()) << 22
	if before > id {
		return 0
	}
	return id - before
}

// snowflakeTime returns when the object with that id was created; the zero time if the text is not an id.
func snowflakeTime(id string) time.Time {
	n := snowflake(id)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + discordEpoch).UTC()
}

// isID reports whether a text has the form of a Discord id, which is a number.
func isID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && !strings.HasPrefix(s, "+")
}

// IsID reports whether a text is the id of a Discord user or channel, as opposed to a name.
func IsID(id string) bool { return isID(id) }

// channelID returns the id of the Discord channel for an address: a thread is a channel of its own. It returns an
// error with the fault Rejected if the address contains no Discord id.
func channelID(to bus.Address) (string, error) {
	where := cmp.Or(to.Thread, to.Chat)
	if !isID(where) {
		return "", rejectedError("bad_address", errors.New("the chat is not a number"))
	}
	return where, nil
}
