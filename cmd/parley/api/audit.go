package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
)

// Audit keeps a record of who has changed what over the API. Nothing is recorded if Record is
// nil.
type Audit struct {
	// Record stores a record.
	Record func(ctx context.Context, r sessions.AuditRecord) error
	// Records returns the records of a kind whose ids follow after; see [sessions.Auditor].
	Records func(ctx context.Context, kind string, after int64, limit int) ([]sessions.AuditRecord, error)
	// Reads is set if exports of sessions are recorded too, which only read.
	Reads bool
	// Lost is called when something was done but its record could not be stored.
	Lost func()
}

// withAudit returns the route, marked so that the audit records each of its requests under this
// kind and with this result.
func (r route) withAudit(kind, result string) route {
	r.kind, r.result = kind, result
	return r
}

// serveRecorded serves a route and records the request in the audit. A request that only reads is
// recorded first, and gets no answer if that fails; a request that changes something is recorded
// afterwards.
func (a *API) serveRecorded(w *response, r *http.Request, to route) error {
	if to.kind == "" || a.cfg.Audit.Record == nil || to.kind == sessions.AuditExport && !a.cfg.Audit.Reads {
		return to.serve(w, r)
	}
	record := sessions.AuditRecord{Kind: to.kind, By: "token:" + w.caller.name, Result: to.result}
	if to.kind == sessions.AuditExport {
		record.Session = truncateForLog(r.PathValue("key"))
		if err := a.cfg.Audit.Record(r.Context(), record); err != nil {
			return err
		}
		return to.serve(w, r)
	}
	if err := to.serve(w, r); err != nil {
		return err
	}
	if w.status >= http.StatusBadRequest {
		return nil // the handler has refused it
	}
	record.Detail = truncateForLog(cmp.Or(w.auditSubject, r.PathValue("id")))
	if err := a.cfg.Audit.Record(context.WithoutCancel(r.Context()), record); err != nil {
		a.cfg.Audit.Lost()
		a.cfg.Log.Error("what was done is not in the audit", slog.String("route", w.route), slog.Any("error", err))
	}
	return nil
}

// listAudit lists the audit's records, the oldest first.
func (a *API) listAudit(w *response, r *http.Request) error {
	after, err := queryNumber(r, "after", 0, 1<<62)
	if err != nil {
		return err
	}
	limit, err := queryNumber(r, "limit", pageDefault, pageMost)
	if err != nil {
		return err
	}
	page := struct {
		Records []sessions.AuditRecord `json:"records"`
		Next    int64                  `json:"next,omitempty"`
	}{Records: []sessions.AuditRecord{}}
	if a.cfg.Audit.Records == nil {
		return w.json(http.StatusOK, page)
	}
	found, err := a.cfg.Audit.Records(r.Context(), r.URL.Query().Get("kind"), after, int(limit)+1)
	if err != nil {
		return err
	}
	if page.Records = append(page.Records, found...); len(found) > int(limit) {
		page.Records = page.Records[:limit]
		page.Next = page.Records[limit-1].ID
	}
	return w.json(http.StatusOK, page)
}

// Usage knows how many tokens models have used, and what these have cost.
type Usage struct {
	// Sums adds up what was used; see [bill.Table].
	Sums   func(ctx context.Context, by bill.Grouping, from, to time.Time) ([]bill.Sum, error)
	Prices string // the date of the list of prices
}

// usage answers with the tokens that models have used and their cost: by default those of this
// month, by day.
func (a *API) usage(w *response, r *http.Request) error {
	q, now := r.URL.Query(), time.Now().UTC()
	from, err := queryDay(q, "from", time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return err
	}
	to, err := queryDay(q, "to", now)
	if err != nil {
		return err
	}
	all, err := a.cfg.Usage.Sums(r.Context(), bill.Grouping(cmp.Or(q.Get("by"), string(bill.ByDay))), from, to)
	if errors.Is(err, bill.ErrUnknownBy) {
		return badRequest("bad_query", "by is to be day, person, session, agent or model")
	}
	if err != nil {
		return err
	}
	return w.json(http.StatusOK, struct {
		Usage  []bill.Sum `json:"usage"`
		Prices string     `json:"prices"`
	}{append([]bill.Sum{}, all...), a.cfg.Usage.Prices})
}

// queryDay reads the day in the query's parameter of this name; otherwise is what it returns if
// there is none.
func queryDay(q url.Values, name string, otherwise time.Time) (time.Time, error) {
	text := q.Get(name)
	if text == "" {
		return otherwise, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, badRequest("bad_query", "%s is to be a day, as 2026-01-31", name)
	}
	return day, nil
}
