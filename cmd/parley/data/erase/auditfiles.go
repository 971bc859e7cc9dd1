package erase

import "parley/sessions"

// AuditFiles are the files that contain audit records, which say who did what.
type AuditFiles interface {
	// Forget empties the arguments and the person of the records for which match returns true, and
	// returns how many there were.
	Forget(match func(sessions.AuditRecord) bool) (int, error)
}

// forgetAudit erases people's words from the audit's files: the arguments of records that a person
// caused or is named in (if person is not ""), and of records about the sessions in whole, which
// are erased completely. The records in the store are erased with the logs.
func (e *Eraser) forgetAudit(r *Receipt, person string, whole []string) error {
	if e.cfg.Audit == nil {
		return nil
	}
	erased := keySet(whole)
	n, err := e.cfg.Audit.Forget(func(a sessions.AuditRecord) bool {
		return person != "" && (a.By == person || a.Detail == person) || erased[a.Session]
	})
	r.AuditFiles += n
	return err
}
