package operation

import (
	"context"
	"testing"
	"time"

	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal/client"
)

// A client that waits for the first answer sees it, even among many conversations with long logs.
func TestTheFirstAnswerIsSeenAmongManyConversations(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "[limits]\nuser_turns_hour = 1000\n")
	w.Serve().WaitServing()
	const others, last = 110, 999 // more than a page, and a key that comes after all others
	for chat := range int64(others) {
		w.Telegram.Say(chat+100, chat+100, "hello")
	}
	for chat := range int64(others) {
		w.WaitSaid(chat+100, 1)
	}
	for n := range 20 { // with six entries each
		w.Telegram.Say(last, last, "hello")
		w.WaitSaid(last, n+1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), parleytest.Patience)
	defer cancel()
	seen := make(chan error, 1)
	go func() { seen <- client.Dial(w.Home).AwaitAnswer(ctx, "telegram") }()
	for n := 20; ; n++ {
		w.Telegram.Say(last, last, "and now?")
		w.WaitSaid(last, n+1)
		select {
		case err := <-seen:
			if err != nil {
				t.Errorf("after %d more answers: %v", n-19, err)
			}
			return
		case <-time.After(time.Second): // the client looks twice a second, and earlier answers do not count
		}
	}
}
