package channels_test

import (
	"context"
	"errors"
	"fmt"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// A letterbox is a channel over letters. Receive publishes the unread ones, and Send prints a letter.
type letterbox struct{ unread []bus.Inbound }

// Receive implements [channels.Channel]. A letter is removed from the box only once it is published.
func (l *letterbox) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	for len(l.unread) > 0 {
		if err := publish(ctx, l.unread[0]); err != nil && ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			continue // the same letter again; a real channel would wait a little before it retries
		}
		l.unread = l.unread[1:]
	}
	return nil
}

// Send implements [channels.Channel].
func (l *letterbox) Send(_ context.Context, to bus.Address, part channels.Part) (id string, err error) {
	if to.Chat == "" {
		return "", &channels.SendError{Fault: channels.Rejected, Err: errors.New("a letter without an address")}
	}
	fmt.Printf("to %s: %s\n", to.Chat, part.Text)
	return part.Key, nil
}

// Limits implements [channels.Channel].
func (l *letterbox) Limits() channels.Limits {
	return channels.Limits{Dialect: markup.Plain, Length: 2000}
}

// A channel only translates between a platform and messages of the bus. The gateway and the dispatcher decide
// who may talk, what is a repetition, and when to retry.
func ExampleChannel() {
	at := bus.Address{Channel: "letters", Chat: "Elm Street 5"}
	var ch channels.Channel = &letterbox{unread: []bus.Inbound{
		{ID: "letters:1", Kind: bus.Said, From: bus.Person{ID: "letters:ann"}, At: at, Text: "Are you there?"},
	}}
	tries := 0
	err := ch.Receive(context.Background(), func(_ context.Context, in bus.Inbound) error {
		if tries++; tries == 1 {
			return errors.New("the bus is away")
		}
		fmt.Printf("from %s: %s\n", in.From.ID, in.Text)
		_, err := ch.Send(context.Background(), in.At, channels.Part{Key: channels.PartKey(bus.ReplyID(in.ID), 0), Text: "I am."})
		return err
	})
	fmt.Println(tries, err)
	// Output:
	// from letters:ann: Are you there?
	// to Elm Street 5: I am.
	// 2 <nil>
}
