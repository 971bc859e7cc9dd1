package sqlbook_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
)

func TestSubjectsAreForgottenAMonthAfterTheirLastUse(t *testing.T) {
	place := newPlace(t)
	synctest.Test(t, func(t *testing.T) {
		b := openBook(t, place)
		at := bus.Address{Channel: "c", Chat: "1"}
		bind := func(subject, id string) {
			if err := b.BindMessage(t.Context(), "ci", subject, at, id); err != nil {
				t.Fatal(err)
			}
		}
		bind("old", "1")
		bind("in use", "2")
		time.Sleep(20 * 24 * time.Hour) // in the bubble's fake time
		bind("in use", "2")
		time.Sleep(20 * 24 * time.Hour)
		for i := range 256 {
			bind(fmt.Sprint("new", i), "3")
		}
		synctest.Wait()
		for subject, want := range map[string]string{"old": "", "in use": "2"} {
			if id, err := b.BoundMessage(t.Context(), "ci", subject, at); id != want || err != nil {
				t.Errorf("%s is bound to %q, %v; want %q", subject, id, err, want)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAccept(b *testing.B) {
	book := openBook(b, newPlace(b))
	b.Cleanup(func() {
		if err := book.Close(); err != nil {
			b.Error(err)
		}
	})
	var n atomic.Int64
	b.SetParallelism(100)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := fmt.Sprint("m_", n.Add(1))
			p := channels.Submission{ID: id, Origin: "ci", Key: id, Digest: id, Destinations: []bus.Address{{Channel: "c", Chat: "1"}}}
			if _, fresh, err := book.Accept(b.Context(), p); err != nil || !fresh {
				b.Error(fresh, err)
			}
		}
	})
}
