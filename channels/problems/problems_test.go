package problems_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels/problems"
	"parley/channels/sqlbook"
	"parley/sessions/workspace"
)

// A fleet is a book, owners, and current concerns. It outlives the processes that watch.
type fleet struct {
	book *sqlbook.Book

	mu        sync.Mutex
	concerns  []problems.Concern
	told      map[string]string // texts by id: an id is told once
	order     []string
	tellFails bool // whether owners can't be told
}

// withFleet runs a test in a synctest bubble.
func withFleet(t *testing.T, run func(t *testing.T, f *fleet)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		book, err := sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
		if err != nil {
			t.Fatal(err)
		}
		run(t, &fleet{book: book, told: map[string]string{}})
		if err := book.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (f *fleet) set(wrong ...problems.Concern) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.concerns = wrong
}

func (f *fleet) tell(_ context.Context, suffix, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tellFails {
		return errors.New("the bus is away")
	}
	if _, known := f.told[suffix]; !known {
		f.told[suffix] = text
		f.order = append(f.order, text)
	}
	return nil
}

func (f *fleet) wantTold(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.order, want) {
		t.Errorf("owners were told %q, want %q", f.order, want)
	}
}

// config returns the Config of one process.
func (f *fleet) config(sources ...problems.Source) problems.Config {
	if sources == nil {
		sources = []problems.Source{{
			ID: "part/", IsResponsible: func() bool { return true },
			FindConcerns: func(context.Context, map[string]bool) ([]problems.Concern, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				return f.concerns, nil
			},
			EndText: func(id string) string { return "over: " + id },
		}}
	}
	return problems.Config{Sources: sources, Notes: f.book, Tell: f.tell, Every: 30 * time.Second, GoneFor: time.Minute, Log: slog.New(slog.DiscardHandler)}
}

// runProcesses runs processes for a while, and then kills them.
func (f *fleet) runProcesses(t *testing.T, n int, during time.Duration, sources ...problems.Source) {
	t.Helper()
	ctx, kill := context.WithTimeout(t.Context(), during)
	defer kill()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := problems.Run(ctx, f.config(sources...)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestOwnersAreToldOfTheBeginningAndTheEnd(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		f.set(problems.Concern{ID: "part/a", Text: "a is wrong", TellAfter: 3 * time.Minute}, problems.Concern{ID: "part/b", Text: "b is wrong"})
		f.runProcesses(t, 3, 2*time.Minute)
		f.wantTold(t, "b is wrong")
		f.runProcesses(t, 3, 2*time.Minute) // after a restart
		f.wantTold(t, "b is wrong", "a is wrong")
		f.set(problems.Concern{ID: "part/b", Text: "b is wrong"})
		f.runProcesses(t, 1, 31*time.Second)
		f.set(problems.Concern{ID: "part/a", Text: "a is wrong"}, problems.Concern{ID: "part/b", Text: "b is wrong"}) // the concern was gone for a moment
		f.runProcesses(t, 2, 10*time.Minute)
		f.wantTold(t, "b is wrong", "a is wrong")
		f.set(problems.Concern{ID: "part/b", Text: "b is wrong"})
		f.runProcesses(t, 3, 70*time.Second)
		f.runProcesses(t, 2, time.Hour)
		f.wantTold(t, "b is wrong", "a is wrong", "over: part/a")
		f.set()
		f.runProcesses(t, 2, time.Hour)
		f.wantTold(t, "b is wrong", "a is wrong", "over: part/a", "over: part/b")
		f.set(problems.Concern{ID: "part/b", Text: "b is wrong"})
		f.runProcesses(t, 2, time.Hour) // the concern comes back
		f.wantTold(t, "b is wrong", "a is wrong", "over: part/a", "over: part/b", "b is wrong")
	})
}

func TestShortConcernsAreNotReported(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		for range 5 {
			f.set(problems.Concern{ID: "part/a", Text: "a is wrong", TellAfter: 3 * time.Minute})
			f.runProcesses(t, 2, 2*time.Minute)
			f.set()
			f.runProcesses(t, 2, time.Minute)
		}
		f.wantTold(t)
		if all, err := f.book.AllNoted(t.Context(), "concern"); err != nil || len(all) > 0 {
			t.Errorf("noted is %+v, %v", all, err)
		}
	})
}

func TestAFailedNoticeIsRetried(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		f.tellFails = true
		f.set(problems.Concern{ID: "part/a", Text: "a is wrong"})
		f.runProcesses(t, 2, 10*time.Minute)
		f.mu.Lock()
		f.tellFails = false
		f.mu.Unlock()
		f.runProcesses(t, 2, time.Minute)
		f.wantTold(t, "a is wrong")
	})
}

func TestGrowthIsReportedAtMostHourly(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		count := func(n int) {
			f.set(problems.Concern{ID: "part/a", Text: fmt.Sprint(n), Count: n})
			f.runProcesses(t, 2, 10*time.Minute)
		}
		for _, n := range []int{1, 2, 5} {
			count(n)
		}
		f.wantTold(t, "1")
		f.runProcesses(t, 2, time.Hour)
		f.wantTold(t, "1", "5")
		count(2) // somebody has dealt with some of them
		f.runProcesses(t, 2, 2*time.Hour)
		f.wantTold(t, "1", "5")
		count(3)
		f.wantTold(t, "1", "5", "3")
	})
}

func TestEachChannelIsReported(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		down := map[string]bool{"slack": true, "slack-2": true}
		source := func(name string) problems.Source {
			return problems.Channel(name, func() bool { return !down[name] }, func() bool { return name != "other" }, time.Minute)
		}
		all := []problems.Source{source("slack"), source("slack-2"), source("other")}
		f.runProcesses(t, 1, 10*time.Minute, all...)
		down["slack-2"] = false
		f.runProcesses(t, 1, 10*time.Minute, all...)
		if len(f.order) != 3 || !strings.Contains(f.order[0], "`slack` has been down for 1m0s") || f.order[2] != "The channel `slack-2` is back." {
			t.Errorf("told %q", f.order)
		}
	})
}

func TestADiskThatIsNearlyFull(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		room := problems.DiskSpace{Free: 50 << 30, Size: 100 << 30}
		measure := func(free uint64) {
			room.Free = free
			f.runProcesses(t, 1, 5*time.Minute, problems.Disk("host", "the home", "/", func(string) (problems.DiskSpace, error) { return room, nil }))
		}
		measure(1280 << 20)
		f.wantTold(t)
		measure(1000 << 20)
		measure(1200 << 20) // a little more than the limit
		measure(0)
		f.wantTold(t, "The disk that holds the home on `host` is nearly full: only 1000 MB of 100 GB is free. Make room there: once it's full, I can't accept anything.")
		measure(2 << 30)
		if len(f.order) != 2 || f.order[1] != "The disk that holds the home on `host` has room again." {
			t.Errorf("told %q", f.order)
		}
	})
	if r, err := problems.DiskSpaceOf(t.TempDir()); err != nil || r.Size == 0 || r.Free > r.Size {
		t.Errorf("the room here is %+v, %v", r, err)
	}
}

func TestAFolderThatIsNearlyFull(t *testing.T) {
	root := filepath.Join(t.TempDir(), "workspaces")
	withFleet(t, func(t *testing.T, f *fleet) {
		var all *workspace.Workspaces
		open := func() {
			var err error
			if all, err = workspace.New(workspace.Config{Root: root, MaxBytes: 1 << 20}); err != nil {
				t.Fatal(err)
			}
		}
		open()
		write := func(key string, bytes int) {
			t.Helper()
			dir, err := all.Open(key)
			if err == nil {
				err = dir.Write("a", make([]byte, bytes))
			}
			if err != nil {
				t.Fatal(err)
			}
			f.runProcesses(t, 1, 5*time.Minute, problems.Quotas(all, 1))
		}
		write("main:c:1", 1000<<10)
		write("main:c:2", 100<<10)
		const full = "The folder of the conversation `main/c:1` is nearly full: at 1 MB (`[workspace] max_mb`) I can't write any more files there."
		f.wantTold(t, full)
		if err := all.Close(); err != nil {
			t.Error(err)
		}
		open() // after a restart, nothing has been written there yet
		write("main:c:2", 100<<10)
		f.wantTold(t, full)
		write("main:c:1", 500<<10)
		f.wantTold(t, full, "The folder of the conversation `main/c:1` has room again.")
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDeadLetters(t *testing.T) {
	dir := t.TempDir()
	withFleet(t, func(t *testing.T, f *fleet) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db")})
		if err != nil {
			t.Fatal(err)
		}
		source := problems.DeadLetters(b, func() bool { return true })
		bury := func(topic bus.Topic, id string) {
			t.Helper()
			if err := b.Publish(t.Context(), topic, bus.Message{ID: id, Key: "k", Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			lease, err := b.Claim(t.Context(), topic)
			if err == nil {
				err = lease.Settle(t.Context(), bus.End{Dead: 1 << 60, Reason: "poison"})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		bury(bus.OutboundTopic("c"), "c:1#concern/dead_letters/x/1") // a notice of the watch itself
		f.runProcesses(t, 1, 10*time.Minute, source)
		f.wantTold(t)
		bury(bus.OutboundTopic("c"), "m1")
		bury(bus.InboundTopic, "m2")
		f.runProcesses(t, 1, 10*time.Minute, source)
		if len(f.order) != 1 || !strings.Contains(f.order[0], "for you to look at: 2.") {
			t.Errorf("told %q", f.order)
		}
		for topic, id := range map[bus.Topic]string{bus.OutboundTopic("c"): "m1", bus.InboundTopic: "m2"} {
			if err := b.Drop(t.Context(), topic, id); err != nil {
				t.Fatal(err)
			}
		}
		f.runProcesses(t, 1, 10*time.Minute, source)
		if len(f.order) != 2 || f.order[1] != "All the messages I'd given up on have been taken care of." {
			t.Errorf("told %q", f.order)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A concern without an end text ends silently, and is reported when it comes back.
func TestSomeEndsAreNotReported(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		silent := f.config().Sources[0]
		silent.EndText = func(string) string { return "" }
		f.set(problems.Concern{ID: "part/a", Text: "a is wrong"})
		f.runProcesses(t, 2, 10*time.Minute, silent)
		f.set()
		f.runProcesses(t, 2, time.Hour, silent)
		f.wantTold(t, "a is wrong")
		f.set(problems.Concern{ID: "part/a", Text: "a is wrong"})
		f.runProcesses(t, 2, 10*time.Minute, silent)
		f.wantTold(t, "a is wrong", "a is wrong")
	})
}

// Owners are told once per model which tools are not offered to it, and again if there are more.
func TestLeftTools(t *testing.T) {
	left := map[string][]string{}
	s := problems.LeftTools("here", func() map[string][]string { return left })
	look := func() []problems.Concern {
		all, err := s.FindConcerns(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := look(); len(all) > 0 {
		t.Errorf("without any it says %v", all)
	}
	left["b"], left["a"] = []string{"x__y"}, slices.Repeat([]string{"s__t"}, 23)
	all := look()
	if len(all) != 2 || all[0].ID != "tools/here/a" || all[0].Count != 23 || !strings.Contains(all[0].Text, "`s__t` and 3 more.") || !strings.Contains(all[1].Text, "the model `b` doesn't accept some tools, so I'm working without them: `x__y`.") {
		t.Errorf("it says %+v", all)
	}
}

// A concern that only one of two processes sees is reported, and is not over as long as that process sees it.
func TestAConcernSeenByOneProcessIsReported(t *testing.T) {
	withFleet(t, func(t *testing.T, f *fleet) {
		left := map[string][]string{"m": {"a__x"}}
		sees := problems.LeftTools("here", func() map[string][]string { return left })
		blind := problems.LeftTools("here", func() map[string][]string { return nil })
		both := func(during time.Duration) {
			ctx, kill := context.WithTimeout(t.Context(), during)
			defer kill()
			var all sync.WaitGroup
			for _, s := range []problems.Source{sees, blind} {
				all.Go(func() {
					if err := problems.Run(ctx, f.config(s)); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(10 * time.Second) // in fake time, so that the processes don't look at the same moment
			}
			all.Wait()
		}
		both(30 * time.Minute)
		if len(f.order) != 1 || !strings.Contains(f.order[0], "`a__x`") {
			t.Errorf("told %q", f.order)
			return
		}
		left["m"] = append(left["m"], "b__x")
		both(2 * time.Hour)
		if len(f.order) != 2 || !strings.Contains(f.order[1], "`b__x`") {
			t.Errorf("told %q", f.order)
		}
		left = nil
		both(time.Hour)
		if all, err := f.book.AllNoted(t.Context(), "concern"); err != nil || len(all) > 0 || len(f.order) != 2 {
			t.Errorf("noted is %+v, %v; told %q", all, err, f.order)
		}
	})
}
