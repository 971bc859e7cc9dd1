package connections_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/connections"
)

// A memoryNotes keeps notes in memory, and counts how many were written.
type memoryNotes struct {
	mu     sync.Mutex
	kept   map[string]string
	times  int
	broken atomic.Bool
}

func (m *memoryNotes) SetNote(_ context.Context, _, about, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken.Load() {
		return errors.New("it is broken")
	}
	m.kept[about] = value
	m.times++
	return nil
}

func (m *memoryNotes) AllNoted(context.Context, string) (all []channels.Note, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for about, value := range m.kept {
		all = append(all, channels.Note{About: about, Value: value})
	}
	return all, nil
}

type silentEmitter struct{}

func (silentEmitter) Emit(bus.Event) {}

// What a process knows about a channel is stored when it changes, and the times of messages at most every ten
// seconds.
func TestFactsAreStoredForAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memoryNotes{kept: map[string]string{}}
		traffic := &connections.Traffic{}
		var known, up atomic.Bool
		var bot atomic.Pointer[string]
		bot.Store(new(string))
		w := connections.Watch{Events: silentEmitter{}, Notes: kept, Channels: []connections.Channel{{
			Name: "slack", Known: known.Load, Up: up.Load, Bot: func() string { return *bot.Load() }, Traffic: traffic,
		}}}
		var running sync.WaitGroup
		running.Go(func() {
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
		facts := func() connections.Facts {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			all, err := connections.Read(t.Context(), kept)
			if err != nil {
				t.Fatal(err)
			}
			return all["slack"]
		}
		traffic.Observe(func(string, time.Duration) {})("failed", 0)
		if f := facts(); f != (connections.Facts{}) || kept.times != 0 {
			t.Errorf("a process that knows nothing has kept %+v", f)
		}
		traffic.Observe(func(string, time.Duration) {})("sent", 0) // a process that does not receive can still send
		sent := time.Now().Truncate(time.Second)
		if f := facts(); !f.LastOut.Equal(sent) || f.Up || !f.Since.IsZero() {
			t.Errorf("kept is %+v, want what was sent", f)
		}
		known.Store(true)
		up.Store(true)
		f := facts()
		if since := time.Since(f.Since); !f.Up || since > 2*time.Second || f.Bot != "" {
			t.Errorf("kept is %+v", f)
		}
		name := "@parley"
		bot.Store(&name)
		if got := facts(); got.Bot != "@parley" || got.Since != f.Since {
			t.Errorf("kept is %+v, want the name and the same time", got)
		}
		times := kept.times
		for range 60 { // messages arrive all the time
			traffic.NoteReceived()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := kept.times - times; n < 5 || n > 7 {
			t.Errorf("within a minute it was kept %d times when messages came", n)
		}
		kept.broken.Store(true)
		up.Store(false)
		if f := facts(); !f.Up {
			t.Errorf("kept is %+v", f)
		}
		kept.broken.Store(false)
		if f := facts(); f.Up || time.Since(f.Since) > 5*time.Second {
			t.Errorf("after the store was broken there is %+v", f)
		}
		t.Cleanup(running.Wait)
	})
}

// A note of another release is no error, and times that are newer than the note are added to it.
func TestFactsOfOtherReleases(t *testing.T) {
	kept := &memoryNotes{kept: map[string]string{"state slack": "what?", "in slack": strings.Repeat("9", 30), "new slack": "x", "out slack": "2030-01-02T03:04:05Z"}}
	all, err := connections.Read(t.Context(), kept)
	if err != nil || len(all) != 1 || all["slack"].Up || !all["slack"].LastIn.IsZero() || all["slack"].LastOut.Year() != 2030 {
		t.Errorf("read is %+v, %v", all, err)
	}
	traffic := &connections.Traffic{}
	if f := traffic.AddTo(all["slack"]); f != all["slack"] {
		t.Errorf("without traffic it is %+v", f)
	}
	traffic.NoteReceived()
	if f := traffic.AddTo(all["slack"]); f.LastIn.IsZero() || f.LastOut.Year() != 2030 {
		t.Errorf("with traffic it is %+v", f)
	}
}
