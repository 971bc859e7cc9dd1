package erase

import "parley/sessions"

// AuditFiles are files that hold audit records.
type AuditFiles interface {
	// Forget empties the arguments of the records that are named and who caused them,
	// and returns how many there were.
	Forget(which func(sessions.AuditRecord) bool) (int, error)
}

// forgetAudit takes what was erased out of the files of the audit. The store redacts
// its records by itself.
func (e *Eraser) forgetAudit(r *Receipt, which func(sessions.AuditRecord) bool) (err error) {
	if e.cfg.Audit != nil {
		r.AuditFiles, err = e.cfg.Audit.Forget(which)
	}
	return err
}
