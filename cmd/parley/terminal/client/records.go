package client

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"parley/sessions"
)

// A RecordQuery says which of the audit's records to show.
type RecordQuery struct {
	Kind, Session, Person string
	Since                 time.Time
	Limit                 int  // show only this many of the newest; 0 means all
	Follow                bool // whether to continue with new records until the context ends
}

const (
	initialRecords = 10 // how many records are shown before those that are followed
	recordPage     = 500
	followEvery    = time.Second
	followBehind   = 200 // how many ids are read again: records in a fleet may appear a moment after others with greater ids
)

// ShowRecords calls show with the records that match a query, the oldest first and each once, a page at a time. With
// Follow, it continues with new ones until ctx is done and then returns nil; without Limit and Since, it then begins
// with the newest initialRecords.
func ShowRecords(ctx context.Context, server *Client, q RecordQuery, show func([]sessions.AuditRecord) error) error {
	r := &recordReader{RecordQuery: q, server: server, show: show, seen: map[int64]bool{}}
	if r.Limit == 0 && r.Follow && r.Since.IsZero() {
		r.Limit = initialRecords
	}
	if err := r.showFirst(ctx); err != nil || !r.Follow {
		return err
	}
	for begun := r.last; ; {
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
		if err := r.showAfter(ctx, max(begun, r.last-followBehind)); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // following ends with ctx
			}
			return err
		}
	}
}

// A recordReader reads records, and remembers which ones it has shown.
type recordReader struct {
	RecordQuery
	server *Client
	show   func([]sessions.AuditRecord) error
	last   int64          // the greatest id that was shown
	seen   map[int64]bool // the ids not far below the greatest
}

// showFirst shows the existing records.
func (r *recordReader) showFirst(ctx context.Context) error {
	if r.Limit == 0 {
		return r.showAfter(ctx, 0)
	}
	var all []sessions.AuditRecord
	q := r.parameters()
	q.Set("order", "desc")
	for len(all) < r.Limit {
		q.Set("limit", strconv.Itoa(min(recordPage, r.Limit-len(all))))
		page, next, err := r.read(ctx, q)
		if err != nil {
			return err
		}
		if all = append(all, page...); next == 0 {
			break
		}
		q.Set("after", strconv.FormatInt(next, 10))
	}
	slices.Reverse(all)
	return r.showNew(all)
}

// showAfter shows the records with ids greater than after.
func (r *recordReader) showAfter(ctx context.Context, after int64) error {
	for {
		q := r.parameters()
		q.Set("after", strconv.FormatInt(after, 10))
		page, next, err := r.read(ctx, q)
		if err != nil {
			return err
		}
		if err := r.showNew(page); err != nil || next == 0 {
			return err
		}
		after = next
	}
}

// showNew shows those of the records that were not shown before.
func (r *recordReader) showNew(records []sessions.AuditRecord) error {
	fresh := slices.DeleteFunc(records, func(one sessions.AuditRecord) bool { return r.seen[one.ID] })
	for _, one := range fresh {
		r.seen[one.ID], r.last = true, max(r.last, one.ID)
	}
	maps.DeleteFunc(r.seen, func(id int64, _ bool) bool { return id < r.last-followBehind })
	return r.show(fresh)
}

// parameters returns the parameters of a request for records.
func (r *recordReader) parameters() url.Values {
	q := url.Values{"limit": {strconv.Itoa(recordPage)}, "kind": {r.Kind}, "session": {r.Session}, "person": {r.Person}}
	if !r.Since.IsZero() {
		q.Set("since", r.Since.UTC().Format(time.RFC3339))
	}
	maps.DeleteFunc(q, func(_ string, v []string) bool { return v[0] == "" })
	return q
}

// read returns a page of records, and the id after which the next one begins; 0 if there is none.
func (r *recordReader) read(ctx context.Context, q url.Values) ([]sessions.AuditRecord, int64, error) {
	var page struct {
		Records []sessions.AuditRecord `json:"records"`
		Next    int64                  `json:"next"`
	}
	err := r.server.Get(ctx, "/v1/audit?"+q.Encode(), &page)
	return page.Records, page.Next, err
}
