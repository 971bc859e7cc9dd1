package channels

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// LogPanic logs a panic r with its type and stack but without its value, which may contain what somebody wrote.
// activity says what the program was doing for the channel, id for which message.
func LogPanic(log *slog.Logger, activity, channel, id string, r any) {
	log.Error("panic in a channel", slog.String("what", activity), slog.String("channel", channel), slog.String("id", id),
		slog.String("panic", fmt.Sprintf("%T", r)), slog.String("stack", string(debug.Stack())))
}
