package unsent_test

import (
	"testing"

	"parley/bus"
	"parley/bus/redisbus/unsent"
)

// The calls that send a turn's events also carry its events for the server's feed, without the pieces of the answer.
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
	// The beginning and the end of the turn twice each, the block's beginning once, and its pieces as one.
	b := unsent.New()
	for _, e := range turn {
		b.Add(e, unsent.AllFeeds)
	}
	if got := b.NextBatch(); len(got) != 2+3+2 || b.Len() != 0 {
		t.Errorf("the first call has %d items, and %d events wait, want a call with 7 and none that waits", len(got), b.Len())
	}
}
