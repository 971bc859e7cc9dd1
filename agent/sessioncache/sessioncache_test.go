package sessioncache_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/sessioncache"
	"parley/agent/transcript"
	"parley/sessions"
	"parley/sessions/sqlstore"
)

// A testCache is a store, and a cache of its sessions.
type testCache struct {
	t        *testing.T
	store    *sqlstore.Store
	journals *sessioncache.Journals
	fence    int64
	read     bool // whether the last log was read
}

// Open records that a log is read.
func (r *testCache) Open(ctx context.Context, key string, fence int64) (sessions.Log, error) {
	r.read = true
	return r.store.Open(ctx, key, fence)
}

func newTestCache(t *testing.T, b sessioncache.Bounds) *testCache {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &testCache{t: t, store: s, journals: sessioncache.New(b)}
}

func key(n int) string { return fmt.Sprint("main:test:", n) }

// begin begins a run of a session.
func (r *testCache) begin(n int) *sessioncache.Run {
	r.t.Helper()
	r.fence, r.read = r.fence+1, false
	run, err := r.journals.Begin(r.t.Context(), r, key(n), r.fence, false, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	if run.FromMemory == r.read {
		r.t.Errorf("session %d is said to be from memory: %t; its log was read: %t", n, run.FromMemory, r.read)
	}
	return run
}

// say runs a session, in which a text of that many bytes is said, and reports whether its log was read.
func (r *testCache) say(n, bytes int) (read bool) {
	r.t.Helper()
	run := r.begin(n)
	e := journal.NewEntry("t", sessions.KindText, sessions.Text{Text: strings.Repeat("x", bytes)})
	if err := run.Journal.Append(r.t.Context(), e); err != nil {
		r.t.Fatal(err)
	}
	run.End()
	return r.read
}

// wantReads fails the test unless the logs of exactly these sessions are read when all are opened once more.
func (r *testCache) wantReads(of int, want ...int) {
	r.t.Helper()
	var got []int
	for n := range of {
		run := r.begin(n)
		if r.read {
			got = append(got, n)
		} else if run.Journal.Newest() != int64(len(run.Journal.Records())) {
			r.t.Errorf("session %d is remembered in part", n)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("the logs of %v were read, want %v", got, want)
	}
}

func TestRecentSessionsAreKept(t *testing.T) {
	r := newTestCache(t, sessioncache.Bounds{Sessions: 3})
	for _, n := range []int{0, 1, 2, 3, 1, 4} {
		r.say(n, 10)
	}
	if n, _ := r.journals.Size(); n != 3 {
		t.Errorf("%d are kept", n)
	}
	r.wantReads(5, 0, 2)
}

func TestLongSessionsTakeTheRoomOfOthers(t *testing.T) {
	r := newTestCache(t, sessioncache.Bounds{Bytes: 100_000})
	for n := range 5 {
		r.say(n, 20_000)
	}
	r.say(5, 30_000) // more than a quarter of all
	if n, bytes := r.journals.Size(); n != 4 || bytes < 80_000 || bytes > 100_000 {
		t.Errorf("%d are kept with %d bytes", n, bytes)
	}
	r.wantReads(6, 0, 5)
}

func TestIdleSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestCache(t, sessioncache.Bounds{Idle: time.Minute, Age: 2 * time.Minute})
		r.say(0, 10)
		time.Sleep(40 * time.Second)
		r.say(1, 10)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n, _ := r.journals.Size(); n != 1 {
			t.Errorf("%d are kept", n)
		}
		for n, want := range []bool{false, false, true} { // a log that was read two minutes ago is read again
			if got := r.say(1, 10); got != want {
				t.Errorf("time %d: read %t", n, got)
			}
			time.Sleep(50 * time.Second)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n, bytes := r.journals.Size(); n != 0 || bytes != 0 {
			t.Errorf("%d are kept, with %d bytes", n, bytes)
		}
	})
}

func TestErasedTextIsForgottenAtOnce(t *testing.T) {
	r := newTestCache(t, sessioncache.Bounds{})
	r.say(0, 10)
	during := r.begin(1)
	r.journals.Clear()
	if n, bytes := r.journals.Size(); n != 0 || bytes != 0 {
		t.Errorf("%d are kept, with %d bytes", n, bytes)
	}
	during.End()
	if n, _ := r.journals.Size(); n != 0 {
		t.Error("what was worked on during the erasure is kept")
	}
	r.wantReads(2, 0, 1)
}

// A run that has lost its lease may end after the run that took the lease over.
func TestALateRunReplacesNoLaterOne(t *testing.T) {
	r := newTestCache(t, sessioncache.Bounds{})
	late := r.begin(0)
	r.say(0, 10)
	late.End()
	r.wantReads(1)
}

// Records that a summary hides are not kept, except those of turns that have not ended.
func TestRecordsHiddenByASummaryAreNotKept(t *testing.T) {
	r := newTestCache(t, sessioncache.Bounds{})
	run := r.begin(0)
	say := func(turn string, kind sessions.Kind, data any) {
		t.Helper()
		if err := run.Journal.Append(t.Context(), journal.NewEntry(turn, kind, data)); err != nil {
			t.Fatal(err)
		}
	}
	say("open", sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte("{}")})
	say("over", sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte("{}")})
	say("over", sessions.KindText, sessions.Text{Text: "kept"})
	say("over", sessions.KindText, sessions.Text{Text: "hidden"})
	say("over", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
	say("", sessions.KindSummary, sessions.Summary{Covers: 5, Keep: []int64{3}})
	run.End()
	for _, where := range []string{"in memory", "in the log"} {
		run := r.begin(0)
		var got []int64
		for _, rec := range run.Journal.Records() {
			got = append(got, rec.N)
		}
		if fmt.Sprint(got) != "[1 3 6]" || r.read != (where == "in the log") {
			t.Errorf("%s: entries %v", where, got)
		}
	}
}

// Whatever a log contains, the cached records are equal to those that are read from it, completely or by Peek.
func TestCachedRecordsEqualTheLog(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) { compareRandomLog(t, rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
}

func compareRandomLog(t *testing.T, random *rand.Rand) {
	r := newTestCache(t, sessioncache.Bounds{})
	var w randomWriter
	shortest, longest := 0, 0
	for step := range 50 {
		run := r.begin(0)
		if step > 0 && r.read {
			t.Fatal("the log was read")
		}
		for range 1 + random.IntN(3) {
			if err := run.Journal.Append(t.Context(), w.next(random, run.Journal)...); err != nil {
				t.Fatal(err)
			}
		}
		before := agentViewOf(run.Journal.Records())
		sameCurrent(t, run.Journal)
		run.End()
		sameCurrent(t, run.Journal)
		if after := agentViewOf(run.Journal.Records()); before != after {
			t.Fatalf("while it was worked on the model was shown\n%s\nand now\n%s", before, after)
		}
		log, ok, err := r.store.Peek(t.Context(), key(0))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		sameRecords(t, "in brief", run.Journal, log)
		sameSize(t, r.journals, log)
		shortest, longest = len(log.Entries()), int(log.Next()-1)
	}
	log, err := r.store.Open(t.Context(), key(0), 1000)
	if err != nil {
		t.Fatal(err)
	}
	run := r.begin(1) // of another session
	run.Journal, err = journal.Open(log, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	peeked, _, err := r.store.Peek(t.Context(), key(0))
	if err != nil {
		t.Fatal(err)
	}
	sameRecords(t, "as a whole", run.Journal, peeked)
	t.Logf("%d of %d entries are read", shortest, longest)
}

// agentViewOf returns what an agent makes of records: what the model is shown, what counts for its conversation, and
// where the past may be cut.
func agentViewOf(records []journal.Record) string {
	next := int64(1)
	if len(records) > 0 {
		next = records[len(records)-1].N + 1
	}
	inTurn, inAll := transcript.Spent(records, "", "")
	cut, ok := transcript.Cut(records, "now", false, transcript.Budgets{Steps: 40, Unread: 40, OwnWords: 20, EarlierWords: 20})
	var cutOff []llm.Message
	if ok {
		cutOff = transcript.Render(transcript.WithSummary(records, cut), "", nil)
	}
	return fmt.Sprint(transcript.Render(records, "", nil), inTurn, inAll, transcript.Untrusted(records, "", next), cutOff, cut.Keep, cut.Allowances, ok, journal.Unfinished(records))
}

// sameCurrent fails the test unless the current records show which turns have not ended.
func sameCurrent(t *testing.T, j *journal.Journal) {
	t.Helper()
	if want, got := journal.Unfinished(j.Records()), journal.Unfinished(j.Current()); !slices.Equal(want, got) {
		t.Fatalf("of all records the turns %v have not ended, and of the current ones %v", want, got)
	}
}

// sameSize fails the test unless the one journal that is kept counts for as much as one that has just been read.
func sameSize(t *testing.T, kept *sessioncache.Journals, log sessions.Log) {
	t.Helper()
	read, err := journal.Open(log, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := read.KeepForReopen()
	if _, got := kept.Size(); got != want {
		t.Fatalf("%d bytes are kept, and %d were read", got, want)
	}
}

// untouched returns records as they are read from a log, without cached renderings.
func untouched(records []journal.Record) []journal.Record {
	var all []journal.Record
	for _, r := range records {
		e := sessions.Entry{N: r.N, Turn: r.Turn, Kind: r.Kind, At: r.At(), Cause: r.Cause, Person: r.Person, Call: r.Call, Data: make([]byte, r.Size)}
		all = append(all, journal.NewRecord(e, r.Data))
	}
	return all
}

// sameRecords fails the test unless a journal has the same records as a log.
func sameRecords(t *testing.T, how string, held *journal.Journal, log sessions.Log) {
	t.Helper()
	read, err := journal.Open(log, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if want, got := untouched(held.Records()), untouched(read.Records()); !reflect.DeepEqual(want, got) && len(want)+len(got) > 0 {
		describe := func(records []journal.Record) (lines []string) {
			for _, r := range records {
				lines = append(lines, fmt.Sprintf("%d %s %s %d %v", r.N, r.Turn, r.Kind, r.Size, r.Data))
			}
			return lines
		}
		t.Fatalf("%s: remembered is\n%s\nread is\n%s", how, strings.Join(describe(want), "\n"), strings.Join(describe(got), "\n"))
	}
}

// A randomWriter writes random entries as agents do: several turns at once, some of which wait for people.
type randomWriter struct {
	turns  int
	calls  int
	open   []string
	ended  []string // but not published yet
	covers int64    // what the newest summary covers; none covers less than the last
}

func (w *randomWriter) next(random *rand.Rand, j *journal.Journal) []sessions.Entry {
	entry := journal.NewEntry
	if random.IntN(12) == 0 {
		return w.summary(random, j)
	}
	if n := len(w.ended); n > 0 && random.IntN(2) == 0 {
		turn := w.ended[n-1]
		w.ended = w.ended[:n-1]
		return []sessions.Entry{entry(turn, sessions.KindPublished, nil)}
	}
	if len(w.open) == 0 || random.IntN(5) == 0 {
		w.turns++
		turn := fmt.Sprint("t", w.turns)
		w.open = append(w.open, turn)
		said := entry(turn, sessions.KindUser, sessions.User{Text: "hello"})
		said.Cause, said.Person = turn, "test:ann"
		return []sessions.Entry{entry(turn, sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte(`{}`), Agent: "main"}), said}
	}
	i := random.IntN(len(w.open))
	turn := w.open[i]
	used := entry(turn, sessions.KindUsage, sessions.Usage{Model: "m", Input: int64(w.turns)})
	switch random.IntN(8) {
	case 0:
		return []sessions.Entry{entry(turn, sessions.KindTurnParked, sessions.TurnParked{}), entry(turn, sessions.KindPublished, nil)}
	case 1:
		return []sessions.Entry{entry(turn, sessions.KindTurnUnparked, nil)}
	case 2:
		return []sessions.Entry{entry(turn, sessions.KindSuspended, nil), entry(turn, sessions.KindResumed, nil)}
	case 3:
		void := entry("", sessions.KindUsage, sessions.Usage{Model: "m"})
		return []sessions.Entry{entry(turn, sessions.KindToolUse, sessions.ToolUse{Name: "x", Args: []byte(`{}`)}), used, void}
	case 4:
		w.calls++
		var spends []string
		if random.IntN(2) == 0 {
			spends = []string{fmt.Sprint("address http://x/", w.turns)}
		}
		started := entry(turn, sessions.KindToolStarted, sessions.ToolStarted{Attempt: 1, Allowances: spends})
		result := entry(turn, sessions.KindToolResult, sessions.ToolResult{Content: []byte(`"y"`), Untrusted: random.IntN(9) == 0, Allowances: spends})
		started.Call, result.Call = fmt.Sprint("c", w.calls), fmt.Sprint("c", w.calls)
		return []sessions.Entry{started, result}
	}
	w.open = slices.Delete(w.open, i, i+1)
	done := sessions.TurnDone{State: sessions.TurnCompleted}
	if random.IntN(3) > 0 {
		done.Outbound = []sessions.Reply{{ID: turn + "#r", Text: "hello"}}
		w.ended = append(w.ended, turn)
	}
	return []sessions.Entry{entry(turn, sessions.KindText, sessions.Text{Text: "hello"}), used, entry(turn, sessions.KindTurnDone, done)}
}

// summary returns a summary as agents make them: of everything, of the part before a turn, or of the beginning of an
// open one.
func (w *randomWriter) summary(random *rand.Rand, j *journal.Journal) []sessions.Entry {
	s := sessions.Summary{Covers: j.Newest(), Text: "so far"}
	records := j.Records()
	for range 3 {
		if len(records) == 0 || random.IntN(3) == 0 {
			break
		}
		switch r := records[random.IntN(len(records))]; {
		case r.N <= w.covers:
		case r.Kind == sessions.KindTurnStarted:
			s.Covers, s.Turn = r.N-1, ""
		case r.Kind == sessions.KindToolResult && slices.Contains(w.open, r.Turn):
			s.Covers, s.Turn = r.N, r.Turn
		case r.Kind == sessions.KindUser && r.N <= s.Covers:
			s.Keep = append(s.Keep, r.N)
		}
	}
	w.covers = s.Covers
	return []sessions.Entry{journal.NewEntry(s.Turn, sessions.KindSummary, s)}
}

// The limit depends on the memory that the process may use.
func TestTheBoundFollowsTheMemory(t *testing.T) {
	for usable, want := range map[int64]int{0: 0, 1 << 20: 2 << 20, 512 << 20: 32 << 20, 8 << 30: 512 << 20, 1 << 50: 512 << 20} {
		if got := sessioncache.BoundsFor(usable).Bytes; got != want {
			t.Errorf("of %d MB it is %d MB, want %d", usable>>20, got>>20, want>>20)
		}
	}
}
