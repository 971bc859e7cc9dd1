package redisbus_test

import (
	"slices"
	"testing"

	"parley/bus"
	"parley/bus/redisbus"
)

// What the server's feed has of a turn goes along in the calls that send the turn's events, and pieces of
// the answer do not go there.
func TestTheServerFeedNeedsNoCallOfItsOwn(t *testing.T) {
	t.Parallel()
	turn := []bus.Event{{Type: bus.TurnStart}, {Type: bus.BlockStart, Kind: "text"}}
	for range 20 {
		turn = append(turn, bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: "word "})
	}
	turn = append(turn, bus.Event{Type: bus.BlockStop, Kind: "text"}, bus.Event{Type: bus.TurnComplete})
	for i := range turn {
		turn[i].Session, turn[i].Turn, turn[i].Route = "s", "t", bus.Address{Channel: "telegram", Chat: "1"}
	}
	// The beginning and the end, each twice; the block's, and the pieces as one.
	if got := redisbus.CallsOf(turn...); !slices.Equal(got, []int{2 + 3 + 2}) {
		t.Errorf("the calls have %v events, want one call with 7", got)
	}
}
