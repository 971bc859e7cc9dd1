package doctor

import (
	"context"
	"fmt"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/archives"
	"parley/sessions/archive"
	"parley/sessions/sqldb"
)

// checkArchive returns a finding that says whether the audit can be archived, and up to which day it was. It returns
// none if the settings name no archive.
func checkArchive(ctx context.Context, cfg *config.Config) []Finding {
	f := Finding{Part: "archive", State: fine}
	place, err := archives.Open(cfg.Audit)
	if place == nil && err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err == nil {
		err = place.Check(ctx)
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf(textArchiveRefused, err), textArchiveRemedy+settingOf(cfg, "audit.archive")
		return []Finding{f}
	}
	var s archive.State
	err = home.WithTable(ctx, cfg, "audit_archive", func(db *sqldb.DB) (err error) {
		s, err = archive.Table{DB: db}.State(ctx)
		return err
	})
	switch {
	case err != nil:
		f.State, f.Detail = note, fmt.Sprintf(textArchiveUnknown, err)
	case !s.Failing.IsZero():
		f.State, f.Detail = wrong, fmt.Sprintf(textArchiveFailing, cfg.Audit.Archive, s.Failing.Format(time.RFC3339), s.Problem)
		f.Remedy = textArchiveRemedy + settingOf(cfg, "audit.archive")
	case !s.Overdue.IsZero():
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf(textArchiveOverdue, cfg.Audit.Archive, s.Overdue.UTC().Format(time.RFC3339)), textArchiveOverdueRemedy
	case s.Newest.Number == 0:
		f.Detail = fmt.Sprintf(textArchiveNew, cfg.Audit.Archive)
	default:
		f.Detail = fmt.Sprintf(textArchiveFine, cfg.Audit.Archive, s.Newest.Day, s.Newest.Number)
	}
	return []Finding{f}
}
