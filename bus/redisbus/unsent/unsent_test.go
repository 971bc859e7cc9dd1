package unsent_test

import (
	"testing"

	"parley/bus"
	"parley/bus/redisbus/unsent"
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
	b := unsent.New()
	for _, e := range turn {
		b.Add(e, unsent.AllFeeds)
	}
	if got := b.NextBatch(); len(got) != 2+3+2 || b.Len() != 0 {
		t.Errorf("the first call has %d items, and %d events wait, want a call with 7 and none that waits", len(got), b.Len())
	}
}
