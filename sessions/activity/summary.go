package activity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// A Period says how long the time span of each sum in a summary is.
type Period string

// The values of Period.
const (
	Hour Period = "hour"
	Day  Period = "day" // in UTC
)

// MaxSpan is how far back a summary may reach.
func (p Period) MaxSpan() time.Duration {
	if p == Hour {
		return 14 * 24 * time.Hour
	}
	return CountLifetime
}

// Begin returns when the period that contains a time began.
func (p Period) Begin(at time.Time) time.Time {
	at = at.UTC().Truncate(time.Hour)
	if p == Day {
		at = at.Add(-time.Duration(at.Hour()) * time.Hour)
	}
	return at
}

// A Sum is what happened in an hour or a day.
type Sum struct {
	At     time.Time `json:"at"` // when the hour or day began
	Turns  Turns     `json:"turns"`
	First  Latency   `json:"first_token"`
	Answer Latency   `json:"answer"`
	Calls  int64     `json:"calls"`        // tool calls
	Failed int64     `json:"failed_calls"` // the Calls that did not succeed
	// Tools lists the tools that were called most, at most MaxTools. More says that others were called,
	// too.
	Tools        []Tool `json:"tools"`
	HasMoreTools bool   `json:"more_tools"`

	lengths map[string]map[string]int64
	tools   map[string]*Tool
}

// MaxTools is the most tools that a sum lists.
const MaxTools = 50

// Turns counts turns by how they ended.
type Turns struct {
	Done    int64 `json:"done"`
	Failed  int64 `json:"failed"`
	GivenUp int64 `json:"given_up"`
	Stopped int64 `json:"stopped"`
	Refused int64 `json:"refused"`
}

// Latency says how long something took, as precisely as the buckets in which it is counted allow. The
// durations are 0 if nothing was counted.
type Latency struct {
	Count int64 `json:"count"`
	P50   int64 `json:"p50_ms"`
	P95   int64 `json:"p95_ms"`
}

// A Tool says how the calls of a tool went.
type Tool struct {
	Tool     string           `json:"tool"`
	Calls    int64            `json:"calls"`
	Outcomes map[string]int64 `json:"outcomes"`
}

// A Summary is what happened since a time, by hour or by day.
type Summary struct {
	By    Period    `json:"by"`
	Since time.Time `json:"since"`
	Sums  []Sum     `json:"sums"`  // those in which something happened, oldest first
	Total Sum       `json:"total"` // of all of them
}

// Summary sums up what happened in each period, beginning with the period that contains since.
func (t *Table) Summary(ctx context.Context, by Period, since time.Time) (s Summary, err error) {
	s = Summary{By: by, Since: by.Begin(since), Sums: []Sum{}}
	width := len(HourLayout)
	if by == Day {
		width = len(time.DateOnly)
	}
	found, err := t.db.Read.QueryContext(ctx, fmt.Sprintf(`SELECT substr(hour, 1, %d), what, CAST(sum(n) AS BIGINT) FROM activity
		WHERE hour >= ? GROUP BY 1, 2 ORDER BY 1, 2`, width), hourOf(s.Since))
	if err != nil {
		return s, fmt.Errorf("sum up what was done: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	period := ""
	for found.Next() {
		var at, what string
		var n int64
		if err := found.Scan(&at, &what, &n); err != nil {
			return s, fmt.Errorf("sum up what was done: %w", err)
		}
		if at != period {
			period = at
			begun, err := time.Parse(HourLayout[:width], at)
			if err != nil {
				return s, fmt.Errorf("sum up what was done: %w", err)
			}
			s.Sums = append(s.Sums, Sum{At: begun})
		}
		what = sqldb.Untext(what)
		s.Sums[len(s.Sums)-1].add(what, n)
		s.Total.add(what, n)
	}
	for i := range s.Sums {
		s.Sums[i].finish()
	}
	s.Total.At = s.Since
	s.Total.finish()
	return s, found.Err()
}

// add adds one count.
func (s *Sum) add(what string, n int64) {
	kind, name, _ := strings.Cut(what, "/")
	switch kind + "/" {
	case turnPrefix:
		s.Turns.add(name, n)
	case firstTextPrefix, answerPrefix:
		if s.lengths == nil {
			s.lengths = map[string]map[string]int64{firstTextPrefix: {}, answerPrefix: {}}
		}
		s.lengths[kind+"/"][name] += n
	case toolPrefix:
		s.addCalls(name, n)
	}
}

// add adds turns that ended in the same way.
func (t *Turns) add(state string, n int64) {
	switch state {
	case turnDone:
		t.Done += n
	case turnFailed:
		t.Failed += n
	case turnGivenUp:
		t.GivenUp += n
	case turnStopped:
		t.Stopped += n
	case turnRefused:
		t.Refused += n
	}
}

// addCalls adds calls that were counted under the name TOOL/OUTCOME.
func (s *Sum) addCalls(name string, n int64) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return
	}
	tool, outcome := name[:at], name[at+1:]
	s.Calls += n
	if outcome != sessions.CallOK {
		s.Failed += n
	}
	if s.tools == nil {
		s.tools = map[string]*Tool{}
	}
	if s.tools[tool] == nil {
		s.tools[tool] = &Tool{Tool: tool, Outcomes: map[string]int64{}}
	}
	s.tools[tool].Calls += n
	s.tools[tool].Outcomes[outcome] += n
}

// finish computes the latencies and lists the tools, once everything was added.
func (s *Sum) finish() {
	s.First, s.Answer = latencyOf(s.lengths[firstTextPrefix]), latencyOf(s.lengths[answerPrefix])
	s.Tools = []Tool{}
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		s.Tools = append(s.Tools, *s.tools[name])
	}
	slices.SortStableFunc(s.Tools, func(a, b Tool) int { return cmp.Compare(b.Calls, a.Calls) })
	if s.HasMoreTools = len(s.Tools) > MaxTools; s.HasMoreTools {
		s.Tools = s.Tools[:MaxTools]
	}
	s.lengths, s.tools = nil, nil
}

// latencyOf computes a latency from the number of durations in each bucket.
func latencyOf(buckets map[string]int64) (l Latency) {
	for _, n := range buckets {
		l.Count += n
	}
	l.P50, l.P95 = percentile(buckets, l.Count, 0.5), percentile(buckets, l.Count, 0.95)
	return l
}

// percentile returns the duration that the given part of all durations did not exceed, as if those in a
// bucket were spread evenly over it.
func percentile(buckets map[string]int64, all int64, part float64) int64 {
	wanted, seen, from := float64(all)*part, 0.0, int64(0)
	for _, to := range bucketBounds() {
		n := float64(buckets[strconv.FormatInt(to, 10)])
		if n > 0 && seen+n >= wanted {
			return from + int64(float64(to-from)*(wanted-seen)/n)
		}
		seen, from = seen+n, to
	}
	if all == 0 {
		return 0
	}
	return from
}
