package bustest

import (
	"slices"
	"strings"
)

var rosterPromises = []promise{
	{"names this process first, and nobody else by its name", testRosterNames},
	{"lists the names that this process holds", testHeld},
}

// processes returns the names of the processes that have the bus open, as b lists them.
func (r *rig) processes(b Bus) []string {
	r.Helper()
	names, err := b.Processes(r.Context())
	r.noError("processes", err)
	if len(names) == 0 || names[0] == "" {
		r.Fatalf("the processes are %q: this one is not first", names)
	}
	return names
}

func testRosterNames(r *rig) {
	r.open(Options{})
	var before []string
	for range 3 {
		got := r.processes(r.Bus)
		if len(got) != 1 || slices.Contains(before, got[0]) {
			r.Errorf("the processes are %q after %q", got, before)
		}
		if again := r.processes(r.Bus); !slices.Equal(again, got) {
			r.Errorf("the processes are %q, and then %q", got, again)
		}
		before = append(before, got[0])
		r.reopen()
	}
}

// testHeld checks that Held lists the names that a process holds, besides those that the bus holds for itself.
func testHeld(r *rig) {
	r.open(Options{})
	want := func(names ...string) {
		r.Helper()
		var held []string
		for _, name := range r.Held() {
			if !strings.HasPrefix(name, "bus/") {
				held = append(held, name)
			}
		}
		if !slices.Equal(held, names) {
			r.Errorf("it holds %q, want %q", held, names)
		}
	}
	want()
	_, releaseB, err := r.Hold(r.Context(), "b")
	r.noError("hold", err)
	_, releaseA, err := r.Hold(r.Context(), "a")
	r.noError("hold", err)
	want("a", "b")
	releaseB()
	want("a")
	releaseA()
	want()
}

// testFleetRoster checks that a process that opens a bus is in the roster before it has its
// first lease: before it can write what the others may not understand, or read what it does
// not understand itself.
func testFleetRoster(r *rig) {
	r.open(Options{})
	self := r.processes(r.Bus)[0]
	p := r.startChild("work") // it prints a line as soon as it has a lease
	r.publish("k", "a")
	p.nextLine()
	names := r.processes(r.Bus)
	if len(names) != 2 || names[0] != self || names[1] == self {
		r.Fatalf("the processes are %q, want %q and the child", names, self)
	}
	for range 5 {
		other := r.openAnother()
		theirs, ours := r.processes(other), r.processes(r.Bus)
		if len(theirs) != 3 || !slices.Contains(theirs, self) || !slices.Contains(theirs, names[1]) || !slices.Contains(ours, theirs[0]) {
			r.Errorf("the processes are %q, and to the newest %q", ours, theirs)
		}
		r.noError("close", other.Close())
		r.await("the process that has closed the bus to be gone", func() bool { return len(r.processes(r.Bus)) == 2 })
	}
	p.kill()
	r.await("the process that was killed to be gone", func() bool { return slices.Equal(r.processes(r.Bus), []string{self}) })
}
