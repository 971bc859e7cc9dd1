package channels_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"parley/channels"
)

func TestReachability(t *testing.T) {
	var c channels.Reachability
	for _, step := range []struct {
		name string
		err  error
		up   bool
	}{
		{"reached", nil, true},
		{"out of reach", &channels.SendError{Fault: channels.Retry, Code: "unreachable"}, false},
		{"ended on this side", fmt.Errorf("poll: %w", context.Canceled), false},
		{"too often", &channels.SendError{Fault: channels.Retry, RateLimited: true}, true},
		{"refused", &channels.SendError{Fault: channels.Stop}, false},
		{"one message refused", &channels.SendError{Fault: channels.Rejected}, true},
		{"cut off", fmt.Errorf("send: %w", &channels.SendError{Fault: channels.Unknown}), false},
		{"reached again", nil, true},
		{"something else", errors.New("?"), false},
	} {
		if c.Note(step.err); c.Connected() != step.up {
			t.Errorf("%s: connected is %v", step.name, !step.up)
		}
	}
}
