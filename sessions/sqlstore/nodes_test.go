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

// joinNode joins a node and links it to a process.
func joinNode(t *testing.T, s *sqlstore.Store, name string) {
	t.Helper()
	err := s.Nodes().Invite(t.Context(), name, time.Now().Add(time.Hour))
	if err == nil {
		err = s.Nodes().Join(t.Context(), name, nodes.Node{Name: name, Key: []byte("key"), JoinedAt: time.Now()})
	}
	if err == nil {
		_, err = s.Nodes().Link(t.Context(), name, "p1", []byte(`{}`), time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// addCalls opens a session and gives a node calls of that session and a person.
func addCalls(t *testing.T, s *sqlstore.Store, key, person string, ids ...string) {
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
	return nodes.Call{ID: id, Node: "pi", Tool: "look", Session: key, Person: person, Args: []byte(`{"at":"xyzzyplugh"}`), MadeAt: time.Now()}
}

// wantCalls fails the test unless, of all these calls, exactly those in left are in the store.
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

// Erasing a session or a person deletes their calls, in whatever state they are, and no later message of the
// node brings them back.
func TestErasureDeletesCallsOfNodes(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		const all = "a b c d e f"
		joinNode(t, one, "pi")
		addCalls(t, one, "main:telegram:7", "telegram:7", "a", "b")
		addCalls(t, one, "main:telegram:8", "telegram:8", "c")
		writeSharedSession(t, one, "main:telegram:-1", 10) // said by telegram:7 and telegram:8
		addCalls(t, one, "main:telegram:-1", "telegram:7", "d", "e")
		addCalls(t, one, "main:telegram:-1", "telegram:8", "f")
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

// Old calls are deleted by [retention], unless somebody still waits for them.
func TestOldCallsOfNodesAreErased(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		joinNode(t, one, "pi")
		addCalls(t, one, "main:telegram:7", "telegram:7", "ended", "cancelled", "open", "new")
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

// A call that is added while its session is being erased is erased too, or is not added.
func TestACallAddedDuringAnErasureIsErased(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		joinNode(t, one, "pi")
		for i := range 15 {
			key, id := fmt.Sprint("main:telegram:", i), fmt.Sprint("c", i)
			addCalls(t, one, key, "telegram:7")
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

// An erased call leaves no trace in the files.
func TestErasedCallsLeaveNoTraceInTheFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTestStore(t, filepath.Join(dir, "sessions.db"))
	joinNode(t, s, "pi")
	addCalls(t, s, "main:telegram:-1", "telegram:7", "a") // of somebody who has said nothing in that session
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

// Moving a store to a server moves its nodes and their calls.
func TestNodesMoveToAnotherStore(t *testing.T) {
	t.Parallel()
	from := openTestStore(t, filepath.Join(t.TempDir(), "sessions.db"))
	to := openTestStore(t, sqldbtest.New(t))
	joinNode(t, from, "pi")
	if err := from.Nodes().Accept(t.Context(), "pi", []byte(`{}`), []byte(`{"a":"b"}`)); err != nil {
		t.Fatal(err)
	}
	if err := from.Nodes().Invite(t.Context(), "code", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	addCalls(t, from, "main:telegram:7", "telegram:7", "sent", "waits")
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
	if err != nil || len(opened) != 2 || opened[0].SentAt.IsZero() {
		t.Fatal(opened, err)
	}
	if got, err := to.Nodes().Open(t.Context(), "pi"); err != nil || fmt.Sprint(got) != fmt.Sprint(opened) {
		t.Errorf("the calls are %+v, %v, want %+v", got, err, opened)
	}
	if err := to.Nodes().Join(t.Context(), "code", nodes.Node{Name: "lab", Key: []byte("k"), JoinedAt: time.Now()}); err != nil {
		t.Error(err)
	}
}

// Every lookup of nodes and calls uses an index.
func TestNoStatementOfNodesReadsAWholeTable(t *testing.T) {
	s, db, statements := openWatchedStore(t)
	joinNode(t, s, "pi")
	addCalls(t, s, "main:telegram:7", "telegram:7", "a", "b")
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
	// The query for waits whose nodes are here reads all nodes, which are few, but no other waits.
	asked = slices.DeleteFunc(asked, func(query string) bool { return strings.Contains(query, "nodes n JOIN") })
	growing := strings.Fields("nodes n node_codes node_calls node_waits w")
	mayScan := func(table, _ string) bool { return !slices.Contains(growing, table) }
	checkOnBothDatabases(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) { sqldbtest.WantNoScan(t, db, asked, mayScan) })
}

// The query for waits whose nodes are here reads no waits for other nodes.
func TestWaitsAreFoundByNode(t *testing.T) {
	s, db, statements := openWatchedStore(t)
	joinNode(t, s, "pi")
	if _, _, err := s.Nodes().DueWaits(t.Context(), time.Now(), time.Now(), 10); err != nil {
		t.Fatal(err)
	}
	asked := slices.DeleteFunc(statements.List(), func(query string) bool { return !strings.Contains(query, "nodes n JOIN") })
	if len(asked) != 1 {
		t.Fatalf("the statements are %q", asked)
	}
	checkOnBothDatabases(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) {
		sqldbtest.WantNoScan(t, db, asked, func(table, _ string) bool { return table != "w" && table != "node_waits" })
	})
}

// Erasing a session, or a person in several sessions, deletes the waits.
func TestWaitsForNodesAreErased(t *testing.T) {
	t.Parallel()
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		joinNode(t, one, "pi")
		for i, key := range []string{"main:telegram:7", "main:telegram:-1", "main:telegram:8"} {
			addCalls(t, one, key, "telegram:7")
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
