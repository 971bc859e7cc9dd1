package erase

import (
	"slices"

	"parley/sessions"
)

// AuditFiles are files that hold audit records.
type AuditFiles interface {
	// Forget empties the arguments of the records that are named and who caused them,
	// and returns how many there were.
	Forget(which func(sessions.AuditRecord) bool) (int, error)
}

// forgetAudit takes what is erased out of the files of the audit: what a person caused
// or is named in, if there is one, and what was done in sessions. The store redacts its
// records by itself.
func (e *Eraser) forgetAudit(r *Receipt, person string, whole []string) error {
	if e.cfg.Audit == nil {
		return nil
	}
	n, err := e.cfg.Audit.Forget(func(a sessions.AuditRecord) bool {
		return person != "" && (a.By == person || a.Detail == person) || slices.Contains(whole, a.Session)
	})
	r.AuditFiles += n
	return err
}
