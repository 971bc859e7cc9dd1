package chaos

import (
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"parley/sessions"
	"parley/sessions/archive"
	"parley/sessions/archive/bucket"
	"parley/sessions/sqldb"
)

// This file writes audit records of days before the storm, and checks that the fleet archives them while it is harmed.

// These constants set the number of days and records. Some days are in the database before the storm, and the others
// are added during it, as if they had just ended; otherwise all days would be archived before any process is killed.
const (
	pastDays      = 45
	daysBefore    = 25
	recordsOfADay = 230 // more than the archive handles at once
)

// Each record has a unique number, in a field that the archive keeps: the size of the result. The numbers are too large
// for any real call of the storm.
const firstNumber = 1 << 40

// restAfterDay is longer than the archive waits after the end of a day.
const restAfterDay = 15 * time.Minute

// privateWord is in each record, in fields that no file of the archive may contain.
const privateWord = "xyzzyplugh"

// archivePoints returns the crashpoints of the archive, which every role has.
func archivePoints() []string {
	return []string{"archive:begun", "archive:page", "archive:sealed", "archive:put", "archive:recorded"}
}

// A past contains the audit records of the days before a storm.
type past struct {
	s       *storm
	place   archive.Place
	db      *sql.DB
	today   time.Time // the beginning of the day after the last day of the past
	days    int       // the number of days that are over
	records map[int64]*pastRecord
}

// A pastRecord is an audit record of a past day.
type pastRecord struct {
	sessions.AuditRecord
	late  bool // whether it was written with a later day's records, or after all days
	maybe bool // whether its write failed, so that the database may not have it
}

// newPast writes the audit records of the first days. The caller runs pass as one of the storm's breakers, and calls
// finish after the storm.
func newPast(s *storm, place archive.Place) *past {
	s.T.Helper()
	db, err := sql.Open("pgx", s.pg.URL())
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = db.Close() }) // the server may be gone
	p := &past{s: s, place: place, db: db, today: time.Now().Add(-restAfterDay).UTC().Truncate(24 * time.Hour), records: map[int64]*pastRecord{}}
	for p.days < daysBefore {
		if err := p.endDay(rand.New(rand.NewPCG(s.seed, uint64(p.days)))); err != nil {
			s.T.Fatalf("write the audit of a day: %v", err)
		}
	}
	return p
}

// archiveSettings returns the settings that make a folder the archive.
func archiveSettings(dir string) string { return fmt.Sprintf("\n[audit]\narchive = %q\n", dir) }

// pass writes the records of one day after another, and then late records, until the storm is over.
func (p *past) pass(_ *storm, random *rand.Rand, over <-chan struct{}) {
	for pause(random, 300*time.Millisecond, 2*time.Second, over) {
		switch {
		case p.days == pastDays:
			_ = p.write(p.late(random, 1+random.IntN(3))) // the records may be missing if the database was away
		case random.IntN(2) == 0:
			_ = p.endDay(random)
		}
	}
}

// endDay writes the records of the next day, together with some late records of earlier days. Late records alone would
// make the archive write files for days that have not ended here.
func (p *past) endDay(random *rand.Rand) error {
	p.days++
	var all []*pastRecord
	for n := range recordsOfADay {
		all = append(all, p.newRecord(p.days, time.Duration(n)*5*time.Minute, false))
	}
	return p.write(append(all, p.late(random, random.IntN(6))...))
}

// late returns new records of days that are already over.
func (p *past) late(random *rand.Rand, count int) (all []*pastRecord) {
	for range count {
		at := time.Duration(random.Int64N(int64(24 * time.Hour))).Truncate(time.Microsecond)
		all = append(all, p.newRecord(1+random.IntN(p.days), at, true))
	}
	return all
}

// newRecord returns a new record of a day. In half of the conversations of these records, a person also speaks during
// the storm.
func (p *past) newRecord(day int, at time.Duration, late bool) *pastRecord {
	n := len(p.records)
	who := firstPerson + n%12
	r := &pastRecord{late: late, AuditRecord: sessions.AuditRecord{
		At: p.today.AddDate(0, 0, day-1-pastDays).Add(at), Kind: sessions.AuditTool, By: fmt.Sprintf("telegram:%d", who), Agent: "main",
		Session: fmt.Sprintf("main:telegram:%d", who+6*(n%2)), Turn: privateWord + strconv.Itoa(n), Call: "call_" + privateWord,
		Tool: "exec_shell", Arguments: json.RawMessage(`{"command":"` + privateWord + `"}`), Verdict: "allow", Result: "ok",
		Bytes: firstNumber + int64(n), Elapsed: int64(n % 1000), Detail: fmt.Sprintf("slack:U%d", who),
	}}
	p.records[r.Bytes] = r
	return r
}

// write writes records to the database in one statement. If the statement fails, it marks the records, because the
// database may or may not have them.
func (p *past) write(all []*pastRecord) error {
	const columns = "at, kind, person, agent, session, turn, call, tool, arguments, verdict, result, exit_code, bytes, elapsed_ms, detail"
	var rows []string
	var args []any
	for _, r := range all {
		values := []any{sqldb.FormatTime(r.At), r.Kind, r.By, r.Agent, r.Session, r.Turn, r.Call, r.Tool, string(r.Arguments), r.Verdict, r.Result, "0", r.Bytes, r.Elapsed, r.Detail}
		var places []string
		for i := range values {
			places = append(places, fmt.Sprint("$", len(args)+i+1))
		}
		rows, args = append(rows, "("+strings.Join(places, ", ")+")"), append(args, values...)
	}
	ctx, cancel := context.WithTimeout(p.s.T.Context(), 10*time.Second)
	defer cancel()
	_, err := p.db.ExecContext(ctx, "INSERT INTO audit ("+columns+") VALUES "+strings.Join(rows, ", "), args...)
	for _, r := range all {
		r.maybe = err != nil
	}
	return err
}

// finish writes the records of the other days, and waits until all days are archived. It restarts all processes,
// because a process looks for new days only once a day.
func (p *past) finish(patience time.Duration) {
	p.s.T.Helper()
	for p.days < pastDays {
		if err := p.endDay(rand.New(rand.NewPCG(p.s.seed, uint64(p.days)))); err != nil {
			p.s.T.Fatalf("write the audit of a day: %v", err)
		}
	}
	yesterday := p.today.AddDate(0, 0, -1).Format(time.DateOnly)
	archived := func() bool {
		days := p.s.queryRows("SELECT day FROM audit_files WHERE archived > 0 ORDER BY file DESC LIMIT 1")
		return len(days) == 1 && days[0] >= yesterday
	}
	for _, m := range slices.Concat(p.s.members, p.s.members) {
		if archived() {
			break
		}
		p.s.waitUntil(patience, m.name+" to serve", m.isServing)
		m.signal(syscall.SIGTERM, 0)
		p.s.waitUntil(patience, m.name+" to serve again", m.isServing)
		for soon := time.Now().Add(patience / 10); !archived() && time.Now().Before(soon); {
			<-time.After(50 * time.Millisecond)
		}
	}
	if !archived() {
		p.s.T.Errorf("the audit of %s isn't archived: %v", yesterday, p.s.queryRows("SELECT * FROM audit_archive"))
	}
	p.verify()
}

// verify makes the program check the archive.
func (p *past) verify() {
	p.s.T.Helper()
	cmd := p.s.Command("--json", "audit", "verify")
	cmd.Env = append(cmd.Env, "PARLEY_ONCE_URL="+p.s.once.url) // a tool of the settings
	out, err := cmd.Output()
	var report archive.Report
	if err != nil || json.Unmarshal(out, &report) != nil || report.Break != nil || report.Files == 0 {
		p.s.T.Errorf("audit verify: %s (%v)", out, err)
	}
}

// A pastLine contains the fields of any line of the archive.
type pastLine struct {
	sessions.AuditRecord
	File int64  `json:"file"` // only in a file's first line
	Day  string `json:"day"`  // only in a file's first line
	End  string `json:"end"`  // only in a file's last line
	// inFile is the number of the line's file, and ofDay the file's day.
	inFile int64
	ofDay  string
}

// mostViolations is how many violations are reported, because one bug in the archive affects every record.
const mostViolations = 20

// check compares the archive and the database with the records that were written, and reports each violation.
func (p *past) check(tell func(format string, args ...any)) {
	t := p.s.T
	t.Helper()
	broken := 0
	violation := func(format string, args ...any) {
		if broken++; broken <= mostViolations {
			tell(format, args...)
		}
	}
	defer func() {
		if broken > mostViolations {
			tell("the archive has %d more violations", broken-mostViolations)
		}
	}()
	lines, rows := p.readFiles(violation), p.readRows()
	people, files := map[string]string{}, map[string][]int64{} // files contains the files of each day
	archived, late, lateThere, left := 0, 0, 0, 0
	for number, r := range p.records {
		found, kept := lines[number], rows[number]
		switch {
		case len(found) > 1 || len(kept) > 1:
			violation("the record %d has %d lines in the archive and %d rows in the database: %+v", number, len(found), len(kept), found)
		case len(found) == 1 && len(kept) == 1 && kept[0] != found[0].inFile:
			violation("the record %d is in file %d, and the database says %d", number, found[0].inFile, kept[0])
		case len(found) == 1:
			p.compare(r, found[0], people, violation)
			if archived++; r.late {
				late++
			} else {
				files[r.At.Format(time.DateOnly)] = append(files[r.At.Format(time.DateOnly)], found[0].inFile)
			}
			if len(kept) == 0 {
				left++
			}
		case len(kept) == 1 && kept[0] == 0 && r.late:
			lateThere++ // its file is that of a later day
		case len(kept) == 1:
			violation("the record %d of %s isn't in the archive, and the database says that it is in file %d", number, r.At, kept[0])
		case !r.maybe:
			violation("the record %d of %s is lost", number, r.At)
		}
	}
	newest := int64(0)
	for _, day := range slices.Sorted(maps.Keys(files)) {
		if slices.Min(files[day]) < newest {
			violation("%s is in file %d, and an earlier day in file %d", day, slices.Min(files[day]), newest)
		}
		newest = slices.Max(files[day])
	}
	t.Logf("of %d records of past days %d are archived, %d of them late, %d have left the database, and %d are late and still there", len(p.records), archived, late, left, lateThere)
	if late == 0 || left == 0 {
		t.Error("no record was late, or none has left the database: the storm has not seen what it is for")
	}
}

// readRows returns, by the number of the record, the archive files that contain it according to the database; 0 means
// no file.
func (p *past) readRows() map[int64][]int64 {
	p.s.T.Helper()
	rows := map[int64][]int64{}
	for _, row := range p.s.queryRows(fmt.Sprintf("SELECT bytes, archived FROM audit WHERE bytes >= %d", firstNumber)) {
		var number, file int64
		if _, err := fmt.Sscan(row, &number, &file); err != nil {
			p.s.T.Fatal(err)
		}
		rows[number] = append(rows[number], file)
	}
	return rows
}

// compare checks that a line contains the public fields of a record, and that each person has one pseudonym. people
// maps people to their pseudonyms and pseudonyms to their people.
func (p *past) compare(r *pastRecord, l pastLine, people map[string]string, violation func(string, ...any)) {
	if !l.At.Equal(r.At) || l.Kind != r.Kind || l.Agent != r.Agent || l.Tool != r.Tool || l.Verdict != r.Verdict || l.Result != r.Result || l.ExitCode == nil || l.Elapsed != r.Elapsed {
		violation("the record %d is archived as %+v, want %+v", r.Bytes, l.AuditRecord, r.AuditRecord)
	}
	if r.At.Format(time.DateOnly) > l.ofDay {
		violation("the record %d of %s is in the file of %s", r.Bytes, r.At, l.ofDay)
	}
	for who, name := range map[string]string{r.By: l.By, r.Detail: l.Detail} {
		if len(name) != 32 || people[who] != "" && people[who] != name || people[name] != "" && people[name] != who {
			violation("%s is called %q in file %d, and was %q; this name was that of %q", who, name, l.inFile, people[who], people[name])
		}
		people[who], people[name] = name, who
	}
}

// readFiles returns the archive's lines by the number of their record. It checks that the files contain no names or
// words of people, that the days are in order, and that no record has two lines.
func (p *past) readFiles(violation func(string, ...any)) map[int64][]pastLine {
	t := p.s.T
	names, err := p.place.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	lines, ids := map[int64][]pastLine{}, map[int64]string{}
	last := int64(0)
	for _, name := range names {
		if !strings.HasSuffix(name, ".gz") {
			continue
		}
		var head pastLine
		for _, raw := range p.readLines(name) {
			if strings.Contains(raw, privateWord) || strings.Contains(raw, "telegram:") || strings.Contains(raw, "slack:") || strings.Contains(raw, "discord:") {
				violation("%s has somebody's name or words: %s", name, raw)
			}
			var l pastLine
			if err := json.Unmarshal([]byte(raw), &l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch {
			case l.File > 0:
				head = l
			case l.End == "":
				if was := ids[l.ID]; was != "" {
					violation("%s has the record %d, and so has %s", name, l.ID, was)
				}
				l.inFile, l.ofDay, ids[l.ID] = head.File, head.Day, name
				lines[l.Bytes] = append(lines[l.Bytes], l)
			}
		}
		if !strings.Contains(name, head.Day) || head.File != last+1 {
			violation("%s is file %d, of %s, and comes after file %d", name, head.File, head.Day, last)
		}
		last = head.File
	}
	return lines
}

// readLines returns the lines of a file of the archive.
func (p *past) readLines(name string) (lines []string) {
	t := p.s.T
	content, err := p.place.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	unpacked, err := gzip.NewReader(content)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	all, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.Split(strings.TrimSuffix(string(all), "\n"), "\n")
}

// An unsureBucket is a bucket on a server that fails at random.
type unsureBucket struct {
	*bucket.Bucket
	settings string // the settings that make the bucket the archive
	calm     atomic.Bool
}

func newUnsureBucket(t *testing.T) *unsureBucket {
	t.Helper()
	const keys, secret = "access-key", "very-secret-key"
	stored := s3mem.New()
	if err := stored.CreateBucket("audit"); err != nil {
		t.Fatal(err)
	}
	b, fake := &unsureBucket{}, gofakes3.New(stored).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		act := rand.IntN(12)
		switch {
		case b.calm.Load():
		case act == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case act == 1:
			panic(http.ErrAbortHandler) // nothing was done, and nothing is answered
		case act == 2:
			fake.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // the file is stored
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	var err error
	b.Bucket, err = bucket.New(bucket.Config{Endpoint: server.URL, Region: "us-east-1", Bucket: "audit", Prefix: "storm", AccessKey: keys, SecretKey: secret, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	b.settings = fmt.Sprintf("\n[audit]\narchive = \"s3://audit/storm\"\nendpoint = %q\nregion = \"us-east-1\"\naccess_key = %q\nsecret_key = %q\n", server.URL, keys, secret)
	return b
}
