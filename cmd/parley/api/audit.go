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

// Audit is where it is recorded what was done. Without Record nothing is.
type Audit struct {
	// Record keeps a record.
	Record func(ctx context.Context, r sessions.AuditRecord) error
	// Records reads the records of a kind beyond an id; see [sessions.Auditor].
	Records func(ctx context.Context, kind string, after int64, limit int) ([]sessions.AuditRecord, error)
	// Reads says that exports are recorded too.
	Reads bool
	// Lost is told of what was done and could not be recorded.
	Lost func()
}

// audited is the route with what it is recorded as, and with which result.
func (r route) audited(kind, result string) route {
	r.kind, r.result = kind, result
	return r
}

// recorded serves a route and records that. What is only read is recorded first, and
// not given out if it cannot be; what changes something is recorded once it is done.
func (a *API) recorded(w *answer, r *http.Request, to route) error {
	if to.kind == "" || a.cfg.Audit.Record == nil || to.kind == sessions.AuditExport && !a.cfg.Audit.Reads {
		return to.serve(w, r)
	}
	record := sessions.AuditRecord{Kind: to.kind, By: "token:" + w.caller.name, Result: to.result}
	if to.kind == sessions.AuditExport {
		record.Session = bounded(r.PathValue("key"))
		if err := a.cfg.Audit.Record(r.Context(), record); err != nil {
			return err
		}
		return to.serve(w, r)
	}
	if err := to.serve(w, r); err != nil {
		return err
	}
	if w.status >= http.StatusBadRequest {
		return nil // it was refused, by what was handed in
	}
	record.Detail = bounded(cmp.Or(w.audited, r.PathValue("id")))
	if err := a.cfg.Audit.Record(context.WithoutCancel(r.Context()), record); err != nil {
		a.cfg.Audit.Lost()
		a.cfg.Log.Error("what was done is not in the audit", slog.String("route", w.route), slog.Any("error", err))
	}
	return nil
}

// listAudit lists what was done, the oldest first.
func (a *API) listAudit(w *answer, r *http.Request) error {
	after, err := number(r, "after", 0, 1<<62)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", pageDefault, pageMost)
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

// Usage is what models have cost.
type Usage struct {
	// Sums sums up what was used; see [bill.Table].
	Sums   func(ctx context.Context, by bill.By, from, to time.Time) ([]bill.Sum, error)
	Prices string // the date of the list of prices
}

// usage sums up what was used, by default of this month and by day.
func (a *API) usage(w *answer, r *http.Request) error {
	q, now := r.URL.Query(), time.Now().UTC()
	from, err := dayOf(q, "from", time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		return err
	}
	to, err := dayOf(q, "to", now)
	if err != nil {
		return err
	}
	all, err := a.cfg.Usage.Sums(r.Context(), bill.By(cmp.Or(q.Get("by"), string(bill.ByDay))), from, to)
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

// dayOf reads a day of the query.
func dayOf(q url.Values, name string, otherwise time.Time) (time.Time, error) {
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
