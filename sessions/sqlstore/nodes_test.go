package sqlstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/nodes"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

// nodeJoins has a node join and link to a process.
func nodeJoins(t *testing.T, s *sqlstore.Store, name string) {
	t.Helper()
	err := s.Nodes().Invite(t.Context(), name, time.Now().Add(time.Hour))
	if err == nil {
		err = s.Nodes().Join(t.Context(), name, nodes.Node{Name: name, Key: []byte("key"), Joined: time.Now()})
	}
	if err == nil {
		_, err = s.Nodes().Link(t.Context(), name, "p1", []byte(`{}`), time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// giveCalls gives a node calls of a session and a person, whose session it opens.
func giveCalls(t *testing.T, s *sqlstore.Store, key, person string, ids ...string) {
	t.Helper()
	if _, err := s.Open(t.Context(), key, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := s.Nodes().Give(t.Context(), nodeCall(id, key, person)); err != nil {
			t.Fatal(err)
		}
	}
}

func nodeCall(id, key, person string) nodes.Call {
	return nodes.Call{ID: id, Node: "pi", Tool: "look", Session: key, Person: person, Args: []byte(`{"at":"xyzzyplugh"}`), Made: time.Now()}
}

// wantCalls fails the test unless exactly these calls are left of those.
func wantCalls(t *testing.T, s *sqlstore.Store, all, left string) {
	t.Helper()
	var got []string
	for id := range strings.FieldsSeq(all) {
		if _, err := s.Nodes().Call(t.Context(), id); err == nil {
			got = append(got, id)
		} else if !errors.Is(err, nodes.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if strings.Join(got, " ") != left {
		t.Errorf("left are %q, want %q", got, left)
	}
}

// A session and a person take their calls along, whatever became of these, and nothing brings them back.
func TestCallsOfNodesAreErased(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		const all = "a b c d e f"
		nodeJoins(t, one, "pi")
		giveCalls(t, one, "main:telegram:7", "telegram:7", "a", "b")
		giveCalls(t, one, "main:telegram:8", "telegram:8", "c")
		sharedSession(t, one, "main:telegram:-1", 10) // of telegram:7 and telegram:8
		giveCalls(t, one, "main:telegram:-1", "telegram:7", "d", "e")
		giveCalls(t, one, "main:telegram:-1", "telegram:8", "f")
		for _, id := range []string{"b", "d"} {
			if _, err := one.Nodes().Send(t.Context(), id, "p1", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := one.Nodes().End(t.Context(), "d", []byte(`{}`), time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := other.EraseSession(t.Context(), "main:telegram:7"); err != nil {
			t.Fatal(err)
		}
		wantCalls(t, one, all, "c d e f")
		if _, err := one.Nodes().End(t.Context(), "b", []byte(`{}`), time.Now()); !errors.Is(err, nodes.ErrUnknown) {
			t.Errorf("an erased call ends: %v", err)
		}
		if _, err := one.Nodes().Give(t.Context(), nodeCall("a", "main:telegram:7", "telegram:7")); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("give a call of an erased session: %v", err)
		}
		if _, err := other.ErasePerson(t.Context(), "telegram:7"); err != nil {
			t.Fatal(err)
		}
		wantCalls(t, one, all, "c f")
		if _, err := other.ErasePerson(t.Context(), "telegram:8"); err != nil {
			t.Fatal(err)
		}
		wantCalls(t, one, all, "")
		if n, err := one.Nodes().Node(t.Context(), "pi"); err != nil || n.Process != "p1" {
			t.Errorf("the node is %+v, %v", n, err)
		}
	})
}

// What is old goes with [retention], unless somebody still waits for it.
func TestOldCallsOfNodesAreErased(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		nodeJoins(t, one, "pi")
		giveCalls(t, one, "main:telegram:7", "telegram:7", "ended", "cancelled", "open", "new")
		old := time.Now().Add(-2 * time.Hour)
		for _, id := range []string{"cancelled", "open"} {
			if _, err := one.Nodes().Send(t.Context(), id, "p1", old); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := one.Nodes().Cancel(t.Context(), "cancelled", []byte(`{}`), old); err != nil {
			t.Fatal(err)
		}
		for id, at := range map[string]time.Time{"ended": old, "new": time.Now()} {
			if _, err := one.Nodes().End(t.Context(), id, []byte(`{}`), at); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.EraseBefore(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		wantCalls(t, one, "ended cancelled open new", "open new")
	})
}

// A call that is given while its session is erased is erased too, or isn't given.
func TestGiveACallWhileItsSessionIsErased(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		nodeJoins(t, one, "pi")
		for i := range 15 {
			key, id := fmt.Sprint("main:telegram:", i), fmt.Sprint("c", i)
			giveCalls(t, one, key, "telegram:7")
			var given, erased error
			var both sync.WaitGroup
			both.Go(func() { _, given = one.Nodes().Give(t.Context(), nodeCall(id, key, "telegram:7")) })
			both.Go(func() { _, erased = other.EraseSession(t.Context(), key) })
			both.Wait()
			if erased != nil || given != nil && !errors.Is(given, sessions.ErrNotFound) && !errors.Is(given, nodes.ErrUnknown) {
				t.Errorf("given: %v; erased: %v", given, erased)
			}
			wantCalls(t, one, id, "")
		}
	})
}

// Nothing of an erased call is left in the files.
func TestNoTraceOfACallIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "sessions.db"))
	nodeJoins(t, s, "pi")
	giveCalls(t, s, "main:telegram:-1", "telegram:7", "a") // by somebody who has said nothing there
	traces := func() (n int) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(raw, []byte("xyzzyplugh"))
		}
		return n
	}
	if traces() == 0 {
		t.Fatal("nothing is in the files: the test cannot fail")
	}
	if _, err := s.ErasePerson(t.Context(), "telegram:7"); err != nil {
		t.Fatal(err)
	}
	if n := traces(); n > 0 {
		t.Errorf("there are %d traces", n)
	}
}

// Whoever moves a store to a server moves the nodes and their calls.
func TestNodesMoveToAnotherStore(t *testing.T) {
	t.Parallel()
	from := open(t, filepath.Join(t.TempDir(), "sessions.db"))
	to := open(t, sqldbtest.New(t))
	nodeJoins(t, from, "pi")
	if err := from.Nodes().Accept(t.Context(), "pi", []byte(`{}`), []byte(`{"a":"b"}`)); err != nil {
		t.Fatal(err)
	}
	if err := from.Nodes().Invite(t.Context(), "code", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	giveCalls(t, from, "main:telegram:7", "telegram:7", "sent", "waits")
	if err := from.Nodes().OpenWait(t.Context(), sessions.NodeWait{ID: "w", Node: "pi", Session: "main:telegram:7", Person: "telegram:7", Until: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Nodes().Send(t.Context(), "sent", "p1", time.Now()); err != nil {
		t.Fatal(err)
	}
	rows, err := sqlstore.Copy(t.Context(), from, to, func(*sqldb.Tx) error { return nil })
	if err != nil || rows["nodes"] != 1 || rows["node_codes"] != 1 || rows["node_calls"] != 2 || rows["node_waits"] != 1 {
		t.Fatal(rows, err)
	}
	want, err := from.Nodes().Node(t.Context(), "pi")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := to.Nodes().Node(t.Context(), "pi"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it is %+v, %v, want %+v", got, err, want)
	}
	opened, err := from.Nodes().Open(t.Context(), "pi")
	if err != nil || len(opened) != 2 || opened[0].Sent.IsZero() {
		t.Fatal(opened, err)
	}
	if got, err := to.Nodes().Open(t.Context(), "pi"); err != nil || fmt.Sprint(got) != fmt.Sprint(opened) {
		t.Errorf("the calls are %+v, %v, want %+v", got, err, opened)
	}
	if err := to.Nodes().Join(t.Context(), "code", nodes.Node{Name: "lab", Key: []byte("k"), Joined: time.Now()}); err != nil {
		t.Error(err)
	}
}

// Whatever a node or a call is looked up for, it is found by index.
func TestNoStatementOfNodesReadsAWholeTable(t *testing.T) {
	s, db, statements := watched(t)
	nodeJoins(t, s, "pi")
	giveCalls(t, s, "main:telegram:7", "telegram:7", "a", "b")
	table, at := s.Nodes(), time.Now()
	if _, err := table.Give(t.Context(), nodeCall("c", "main:telegram:9", "telegram:9")); !errors.Is(err, sessions.ErrNotFound) {
		t.Fatal(err)
	}
	_, sent := table.Send(t.Context(), "a", "p1", at)
	_, cancelled := table.Cancel(t.Context(), "a", []byte(`{}`), at)
	_, ended := table.End(t.Context(), "a", []byte(`{}`), at)
	open, opened := table.Open(t.Context(), "pi")
	_, withdrawn := table.Withdraw(t.Context(), "a")
	wait := sessions.NodeWait{ID: "w", Node: "pi", Session: "main:telegram:7", Person: "telegram:7", Until: at}
	_, waits := table.WaitsIn(t.Context(), wait.Session)
	_, _, due := table.DueWaits(t.Context(), at, at, 10)
	err := errors.Join(table.OpenWait(t.Context(), wait), table.OpenWait(t.Context(), wait), waits, due, table.NoteWoken(t.Context(), "w", at), table.CloseWait(t.Context(), "w"))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(sent, cancelled, ended, opened, withdrawn, table.Hold(t.Context(), "p1", at), table.Unlink(t.Context(), "pi", "p1", at),
		table.Accept(t.Context(), "pi", []byte(`{}`), []byte(`{}`)), table.Revoke(t.Context(), "pi", []byte(`{}`), at))
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	asked := statements.List()
	if len(asked) < 15 {
		t.Fatalf("only %d statements were seen", len(asked))
	}
	// To find waits whose nodes are here, the nodes are looked through, which are few, and no waits of others.
	asked = slices.DeleteFunc(asked, func(query string) bool { return strings.Contains(query, "nodes n JOIN") })
	growing := strings.Fields("nodes n node_codes node_calls node_waits w")
	mayScan := func(table, _ string) bool { return !slices.Contains(growing, table) }
	onBoth(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) { sqldbtest.WantNoScan(t, db, asked, mayScan) })
}

// To find the waits for the nodes that are here, none for others are read.
func TestWaitsAreFoundByTheirNode(t *testing.T) {
	s, db, statements := watched(t)
	nodeJoins(t, s, "pi")
	if _, _, err := s.Nodes().DueWaits(t.Context(), time.Now(), time.Now(), 10); err != nil {
		t.Fatal(err)
	}
	asked := slices.DeleteFunc(statements.List(), func(query string) bool { return !strings.Contains(query, "nodes n JOIN") })
	if len(asked) != 1 {
		t.Fatalf("the statements are %q", asked)
	}
	onBoth(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) {
		sqldbtest.WantNoScan(t, db, asked, func(table, _ string) bool { return table != "w" && table != "node_waits" })
	})
}

// A wait is erased with its session, or with its person, in however many sessions.
func TestWaitsForNodesAreErased(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		nodeJoins(t, one, "pi")
		for i, key := range []string{"main:telegram:7", "main:telegram:-1", "main:telegram:8"} {
			giveCalls(t, one, key, "telegram:7")
			person := []string{"telegram:7", "telegram:7", "telegram:8"}[i]
			if err := one.Nodes().OpenWait(t.Context(), sessions.NodeWait{ID: key, Node: "pi", Session: key, Person: person, Until: time.Now().Add(-time.Minute)}); err != nil {
				t.Fatal(err)
			}
		}
		left := func(want int) {
			t.Helper()
			all, _, err := one.Nodes().DueWaits(t.Context(), time.Now(), time.Now(), 10)
			if err != nil || len(all) != want {
				t.Errorf("the waits are %+v, %v, want %d", all, err, want)
			}
		}
		left(3)
		if _, err := other.EraseSession(t.Context(), "main:telegram:7"); err != nil {
			t.Fatal(err)
		}
		left(2)
		if _, err := other.ErasePerson(t.Context(), "telegram:7"); err != nil {
			t.Fatal(err)
		}
		left(1)
		if _, err := other.EraseBefore(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		left(1)
		if _, err := other.EraseBefore(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		left(0)
	})
}
