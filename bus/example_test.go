package bus_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
)

// A process claims each mailbox that has messages, works on it, and settles it. If it fails or is killed before it
// settles, another process claims the mailbox again.
func ExampleClaimEach() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := sqlitebus.Open(ctx, sqlitebus.Config{Path: filepath.Join(dir, "bus.db")})
	if err != nil {
		panic(err)
	}
	defer func() { _ = b.Close() }()

	const parcels bus.Topic = "parcels"
	for _, id := range []string{"a", "b", "a"} { // an id that was published recently is dropped
		if err := b.Publish(ctx, parcels, bus.Message{Key: "ann", ID: id, Body: []byte("parcel " + id)}); err != nil {
			panic(err)
		}
	}
	wait, err := bus.ClaimEach(ctx, b, parcels, 4, func(lease bus.Lease) {
		defer stop() // there is only one mailbox here
		mail, err := lease.Mail(ctx, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		end := bus.End{}
		for _, m := range mail {
			if err := lease.Held(ctx); err != nil { // before each outward effect
				return
			}
			fmt.Printf("%s gets %s\n", lease.Claim().Key, m.Body)
			end.Done = m.Seq
		}
		if err := lease.Settle(context.WithoutCancel(ctx), end); err != nil {
			fmt.Println(err)
		}
	})
	wait()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// ann gets parcel a
	// ann gets parcel b
}
