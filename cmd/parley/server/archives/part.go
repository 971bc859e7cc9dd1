package archives

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/metrics"
	"parley/bus"
	"parley/channels/problems"
	"parley/cmd/parley/config"
	"parley/sessions/archive"
)

// hold is the name that the process that archives the audit holds on the bus, where only one process at a time can
// hold it.
const hold = "audit/archive"

// toldAfter is how long archiving may fail before the owners are notified.
const toldAfter = 24 * time.Hour

// Needs is what a Part is made from.
type Needs struct {
	Settings func() *config.Config
	Table    archive.Table
	Bus      bus.Holder
	Serves   bool          // whether this process may archive
	Spool    string        // a folder for a temporary file
	Keep     time.Duration // how long records stay in the audit
	Ready    func(ctx context.Context) (bool, error)
	Point    func(name string)
	Log      *slog.Logger
}

// A Part moves the audit of each day to its archive, if the settings name one.
type Part struct {
	Needs
	archiver *archive.Archiver // nil if there is no archive
}

// New returns a Part.
func New(n Needs) *Part { return &Part{Needs: n} }

// Load records whether the audit is archived, so that nothing is deleted before it is. It refuses a folder that can't be
// written to; whether a bucket can be is found out later, because its server may be down.
func (p *Part) Load(ctx context.Context) error {
	if !p.Serves {
		return nil
	}
	c := p.Settings()
	place, err := Open(c.Audit)
	if err != nil {
		return &config.SettingError{Where: c.Origin("audit.endpoint"), Key: "audit.endpoint", Remedy: err.Error()}
	}
	if _, _, isBucket := c.Audit.Bucket(); place != nil && !isBucket {
		if err := place.Check(ctx); err != nil {
			return &config.SettingError{
				Where: c.Origin("audit.archive"), Key: "audit.archive", Remedy: fmt.Sprintf("it can't be written to (%v): name an existing folder", err),
			}
		}
	}
	if place != nil {
		p.archiver = archive.New(archive.Config{Table: p.Table, Place: place, Spool: p.Spool, Ready: p.Ready, RecordLifetime: p.Keep, Point: p.Point, Log: p.Log})
	}
	return p.Table.Want(ctx, place != nil)
}

// Run archives the audit while no other process of the fleet does, until ctx is done.
func (p *Part) Run(ctx context.Context) error {
	if p.archiver == nil {
		return nil
	}
	if err := bus.WhileHeld(ctx, p.Bus, hold, p.archiver.Run); err != nil {
		p.Log.Warn("this process no longer archives the audit", slog.Any("error", err))
	}
	return nil
}

// Gauges returns the metrics. There are none while no archive is configured.
func (p *Part) Gauges() []metrics.Gauge {
	return []metrics.Gauge{
		{Name: "audit_archive_age_seconds", Help: textAge, Values: func() map[string]float64 {
			if p.archiver == nil {
				return nil
			}
			age, known := p.archiver.Age()
			if !known {
				return nil
			}
			return map[string]float64{"": age.Seconds()}
		}},
		{Name: "audit_archive_failing_seconds", Help: textFailing, Values: func() map[string]float64 {
			if p.archiver == nil {
				return nil
			}
			return map[string]float64{"": p.archiver.Failing().Seconds()}
		}},
	}
}

// Source returns the problems.Source that watches whether the audit is archived. judges is its Judges. It says that
// records are overdue only once it has existed for archive.MaxArchivingTime, because the server may have been down for days
// before.
func Source(t archive.Table, judges func() bool) problems.Source {
	const id = "audit_archive"
	began := time.Now()
	return problems.Source{
		ID: id, IsResponsible: judges,
		FindConcerns: func(ctx context.Context, _ map[string]bool) ([]problems.Concern, error) {
			s, err := t.State(ctx)
			if err != nil || !s.Wanted {
				return nil, err
			}
			const layout = "2006-01-02 15:04 MST"
			switch {
			case !s.Failing.IsZero() && time.Since(s.Failing) >= toldAfter:
				return []problems.Concern{{ID: id, Text: fmt.Sprintf(textNotArchived, s.Failing.UTC().Format(layout), s.Problem)}}, nil
			case s.Failing.IsZero() && !s.Overdue.IsZero() && time.Since(began) >= archive.MaxArchivingTime:
				return []problems.Concern{{ID: id, Text: fmt.Sprintf(textOverdue, s.Overdue.UTC().Format(layout))}}, nil
			}
			return nil, nil
		},
		EndText: func(string) string { return textAgain },
	}
}
