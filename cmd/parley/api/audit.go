package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools/plainjson"
)

// Audit keeps a record of who changed what over the API. Nothing is recorded if Record is nil.
type Audit struct {
	// Record stores a record.
	Record func(ctx context.Context, r sessions.AuditRecord) error
	// Records returns the records that match a query; see [sessions.Auditor].
	Records func(ctx context.Context, q sessions.AuditQuery) ([]sessions.AuditRecord, error)
	// Reads is set if exports of sessions, which only read, are recorded, too.
	Reads bool
	// Lost is called when something was done but its record could not be stored.
	Lost func()
}

// serve serves a route and, if the route has a kind in the audit, records the request. It records an export before
// serving it, and doesn't serve it if that fails; without Reads, it records none. It records any other request
// afterwards, unless it was refused.
func (a Audit) serve(w *exchange.Answer, r *http.Request, to exchange.Route, log *slog.Logger) error {
	if to.Audit == "" || a.Record == nil || to.Audit == sessions.AuditExport && !a.Reads {
		return to.Serve(w, r)
	}
	record := sessions.AuditRecord{Kind: to.Audit, Result: to.Result}
	if to.Audit == sessions.AuditExport {
		record.By, record.Session = byCaller(w), exchange.Shorten(r.PathValue("key"))
		if name := r.PathValue("name"); name != "" { // the name is in Arguments, because an erasure empties that field
			record.Arguments, _ = plainjson.Marshal(map[string]string{"name": exchange.Shorten(name)}) // strings can always be encoded
		}
		if err := a.Record(r.Context(), record); err != nil {
			return err
		}
		return to.Serve(w, r)
	}
	if err := to.Serve(w, r); err != nil {
		return err
	}
	if w.Status() >= http.StatusBadRequest || cmp.Or(w.Noted.Result, to.Result) == "" {
		return nil // the handler refused the request, or noted nothing on a route without a Result
	}
	record.By, record.Detail = byCaller(w), exchange.Shorten(cmp.Or(w.Subject, r.PathValue("id")))
	record.Result, record.Session, record.Tool = cmp.Or(w.Noted.Result, to.Result), exchange.Shorten(w.Noted.Session), w.Noted.Tool
	if err := a.Record(context.WithoutCancel(r.Context()), record); err != nil {
		a.Lost()
		log.Error("what was done is not in the audit", slog.String("route", w.Route), slog.Any("error", err))
	}
	return nil
}

// byCaller returns the caller in the audit's form. For a request that signs somebody in, call it after the handler,
// which finds out who that is.
func byCaller(w *exchange.Answer) string { return "token:" + w.Caller.Name }

// list lists the audit's records, the oldest first unless the newest are asked for.
func (a Audit) list(w *exchange.Answer, r *http.Request) error {
	q, err := auditQuery(r)
	if err != nil {
		return err
	}
	page := struct {
		Records []sessions.AuditRecord `json:"records"`
		Next    int64                  `json:"next,omitempty"`
	}{Records: []sessions.AuditRecord{}}
	if a.Records == nil {
		return w.JSON(http.StatusOK, page)
	}
	limit := q.Limit
	q.Limit++
	found, err := a.Records(r.Context(), q)
	if err != nil {
		return err
	}
	if page.Records = append(page.Records, found...); len(found) > limit {
		page.Records = page.Records[:limit]
		page.Next = page.Records[limit-1].ID
	}
	return w.JSON(http.StatusOK, page)
}

// auditQuery reads which records a request asks for.
func auditQuery(r *http.Request) (q sessions.AuditQuery, err error) {
	asked := r.URL.Query()
	q = sessions.AuditQuery{Kind: asked.Get("kind"), Session: asked.Get("session"), Person: asked.Get("person")}
	after, err := exchange.After(r)
	if err != nil {
		return q, err
	}
	if q.Newest, err = exchange.Newest(r); err != nil {
		return q, err
	}
	if q.After = after; q.Newest {
		q.After, q.Before = 0, after
	}
	if q.Since, err = exchange.Moment(r, "since"); err != nil {
		return q, err
	}
	q.Limit, err = exchange.Limit(r)
	return q, err
}
