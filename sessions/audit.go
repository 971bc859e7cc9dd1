package sessions

import (
	"context"
	"encoding/json"
	"time"
)

// The kinds of audit records.
const (
	AuditTool    = "tool"    // a tool call that has its result
	AuditPairing = "pairing" // somebody was admitted, refused or made the owner
	AuditExport  = "export"  // somebody exported a session's log
	AuditReplay  = "replay"  // a dead letter was published again, or dropped
	AuditForget  = "forget"  // what somebody said was erased

	AuditJob      = "job"      // a job has ended
	AuditApproval = "approval" // a request to people was answered by a program
	AuditSchedule = "schedule" // a schedule was cancelled by a program
)

// An AuditRecord records one thing that was done, for whoever has to account for it. It
// holds no result of a tool, only the result's length. Of its fields only Arguments may
// hold what people wrote; erasing empties that field.
type AuditRecord struct {
	// ID grows from record to record; the store gives it.
	ID   int64     `json:"id,omitempty"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	// By is who did it: for a tool call the person on whose behalf it ran, as CHANNEL:USER,
	// otherwise the name of the API token that was presented.
	By      string `json:"by,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Call    string `json:"call,omitempty"`
	Tool    string `json:"tool,omitempty"`
	// Arguments are the arguments with which the call ran: secrets are redacted, and long ones are
	// cut.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Verdict is the guard's decision on the call: allow, deny or ask.
	Verdict string `json:"verdict,omitempty"`
	// Result is "ok" or the code of the error.
	Result   string `json:"result"`
	ExitCode *int   `json:"exit_code,omitempty"` // the exit code of a command; nil if none ran
	Bytes    int64  `json:"bytes,omitempty"`     // the length of the result before it was cut
	Elapsed  int64  `json:"elapsed_ms"`
	// Detail is an id that fits no other field: that of a dead letter, a person or a session; for a
	// tool call, that of the person who approved, denied or answered it.
	Detail string `json:"detail,omitempty"`
}

// An Auditor keeps audit records.
type Auditor interface {
	// Audit keeps a record; when it returns nil, the record is durable.
	Audit(ctx context.Context, r AuditRecord) error
	// AuditRecords returns the records of a kind ("" means every kind) with ids greater
	// than after, in the order of their ids, at most limit.
	AuditRecords(ctx context.Context, kind string, after int64, limit int) ([]AuditRecord, error)
	// DropAudit deletes the records from before that time, and returns how many it deleted.
	DropAudit(ctx context.Context, before time.Time) (int64, error)
}

// A SoonAuditor is an Auditor that can also keep a record without waiting for the disk.
type SoonAuditor interface {
	// AuditSoon does what Audit does, but may return before the record is durable. It becomes durable
	// a moment later, or earlier, once something that is appended to a log afterwards is.
	AuditSoon(ctx context.Context, r AuditRecord) error
}
