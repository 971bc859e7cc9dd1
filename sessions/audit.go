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
	AuditExport  = "export"  // somebody took a session's log away
	AuditReplay  = "replay"  // a dead letter was published again, or dropped
	AuditForget  = "forget"  // what somebody said was erased

	AuditJob      = "job"      // a job has ended
	AuditApproval = "approval" // a request to people was answered by a program
	AuditSchedule = "schedule" // a schedule was cancelled by a program
)

// An AuditRecord is one thing that was done, for those who have to account for it.
// It holds no result of a tool, only how long it was. Of its fields only Arguments
// may hold what people wrote; erasing empties it.
type AuditRecord struct {
	// ID grows from record to record; the store gives it.
	ID   int64     `json:"id,omitempty"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	// By is who did it: for a tool call the person on whose behalf, CHANNEL:USER,
	// else the name of the token that was presented.
	By      string `json:"by,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Call    string `json:"call,omitempty"`
	Tool    string `json:"tool,omitempty"`
	// Arguments are those of the call as it ran, redacted, and cut if they are long.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Verdict is what the guard said of the call: allow, deny or ask.
	Verdict string `json:"verdict,omitempty"`
	// Result is "ok" or the code of the error.
	Result   string `json:"result"`
	ExitCode *int   `json:"exit_code,omitempty"` // of a command
	Bytes    int64  `json:"bytes,omitempty"`     // of the result, before it was cut
	Elapsed  int64  `json:"elapsed_ms"`
	// Detail is an id that no other field has: of a dead letter, a person, a session; of
	// a tool call, of who approved, denied or answered it.
	Detail string `json:"detail,omitempty"`
}

// An Auditor keeps audit records.
type Auditor interface {
	// Audit keeps a record; when it returns nil, the record is durable.
	Audit(ctx context.Context, r AuditRecord) error
	// AuditRecords returns the records of a kind ("" is any) beyond the id after, in
	// the order of their ids, at most limit.
	AuditRecords(ctx context.Context, kind string, after int64, limit int) ([]AuditRecord, error)
	// DropAudit deletes the records from before a time, and returns how many.
	DropAudit(ctx context.Context, before time.Time) (int64, error)
}
