package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
	"parley/channels/sqlbook"
)

// BenchmarkDispatch measures the time from the publication of a message to its arrival on the platform, with a
// bus and a book on disk.
func BenchmarkDispatch(b *testing.B) {
	carrier, err := sqlitebus.Open(b.Context(), sqlitebus.Config{Path: filepath.Join(b.TempDir(), "bus.db")})
	if err != nil {
		b.Fatal(err)
	}
	book, err := sqlbook.Open(b.Context(), filepath.Join(b.TempDir(), "book.db"))
	if err != nil {
		b.Fatal(err)
	}
	var waiting sync.Map // by the part's key
	p := channelstest.NewMemoryChannel()
	p.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
		if done, ok := waiting.LoadAndDelete(part.Key); ok {
			close(done.(chan struct{}))
		}
		return false, nil
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() {
		d := &dispatch.Dispatcher{Name: "c", Channel: p, Bus: carrier, Book: book, Log: slog.New(slog.DiscardHandler)}
		ended <- d.Run(ctx)
	}()
	var n atomic.Int64
	one := func(chat int64) {
		id := fmt.Sprint("m", n.Add(1))
		out := newOutbound(id, fmt.Sprint(chat), "hello there")
		body, err := out.Encode()
		done := make(chan struct{})
		waiting.Store(id+"/0", done)
		if err == nil {
			err = carrier.Publish(b.Context(), bus.OutboundTopic("c"), bus.Message{ID: id, Key: out.To.String(), Body: body})
		}
		if err != nil {
			b.Error(err)
			return
		}
		<-done
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			one(0)
		}
	})
	b.Run("200 chats", func(b *testing.B) {
		b.SetParallelism(100)
		var chats atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for chat := chats.Add(1); pb.Next(); {
				one(chat)
			}
		})
	})
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	if err := book.Close(); err != nil {
		b.Error(err)
	}
	if err := carrier.Close(); err != nil {
		b.Error(err)
	}
}
