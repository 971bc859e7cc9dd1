package erase

import (
	"slices"

	"parley/sessions"
)

// AuditFiles are the files that hold audit records.
type AuditFiles interface {
	// Forget empties the arguments and the person of the records for which which returns
	// true, and returns how many there were.
	Forget(which func(sessions.AuditRecord) bool) (int, error)
}

// forgetAudit removes what is erased from the audit's files: the arguments of what a
// person (if it is not "") caused or is named in, and of what was done in the sessions of
// whole. The store redacts its records by itself.
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
