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
	AuditExport  = "export"  // somebody exported a session's log, or a file of its workspace
	AuditReplay  = "replay"  // a dead letter was published again, or dropped
	AuditForget  = "forget"  // what somebody said was erased

	AuditJob      = "job"      // a job has ended
	AuditApproval = "approval" // a request to people was answered by a program
	AuditSchedule = "schedule" // a schedule was made, changed, run or canceled by a program
	AuditOperator = "operator" // somebody answered in a session in place of the agent
	AuditMemory   = "memory"   // somebody has changed or erased what an agent remembers
	AuditSignIn   = "sign_in"  // a browser has signed in to the web page, or its sign-in was ended

	AuditJudgement = "judgement" // the model that judges tool calls was asked about one

	AuditTurn    = "turn"    // a turn has ended
	AuditRefusal = "refusal" // messages of a person were refused by a rule
)

// Limits on stored refusals, because strangers can cause any number of them.
const (
	// RefusalLifetime is how long a refusal is kept after its newest message.
	RefusalLifetime = 24 * time.Hour
	// MaxRefusals is how many records of refusals are kept for one rule on one channel. The newest are
	// kept.
	MaxRefusals = 500
	// MaxRefusedIDs is how many message ids one of these records contains. The newest are kept.
	MaxRefusedIDs = 8
)

// What the Detail of a tool call says if no person has decided.
const (
	DetailJudged      = "judge" // the model that judges calls made the decision stricter
	DetailRateLimited = "rate"  // the person has had as many calls as the operator allows
)

// An AuditRecord records one action, for the people who have to account for it. It contains the length of
// a tool's result, but not the result. Only the field Arguments can contain what people wrote; erasing
// empties that field.
type AuditRecord struct {
	// ID grows from record to record; the store gives it.
	ID   int64     `json:"id,omitempty"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	// By is who did it: the name of the API token, if a program did. For a tool call, a job or a turn it
	// is the person on whose behalf it ran, and for a refusal the person who was refused, as
	// CHANNEL:USER.
	By      string `json:"by,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Call    string `json:"call,omitempty"`
	Tool    string `json:"tool,omitempty"`
	// Arguments are the arguments with which the call ran: secrets are redacted, and long ones are
	// cut.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Verdict is the guard's decision on the call: allow, deny or ask. For a judgement it is that of the model
	// that judges calls.
	Verdict string `json:"verdict,omitempty"`
	// Result is how it went: "ok" or the code of the error; for a turn or a job, the state in which it
	// ended; for a refusal, the rule; for a judgement, why the model gave no verdict.
	Result   string `json:"result"`
	ExitCode *int   `json:"exit_code,omitempty"` // the exit code of a command; nil if none ran
	Bytes    int64  `json:"bytes,omitempty"`     // the length of the result before it was cut
	Elapsed  int64  `json:"elapsed_ms"`
	// Detail is an id that has no field of its own: of a dead letter, a person or a session; for a tool
	// call, of the person who approved, denied or answered it, or DetailJudged or DetailRateLimited; for a turn, the
	// code that says why it ended early.
	Detail string `json:"detail,omitempty"`
	// Used is what a turn has used; nil for other kinds.
	Used *AuditUse `json:"used,omitempty"`
	// Address is where messages were refused, as CHANNEL:CHAT or CHANNEL:CHAT/THREAD.
	Address string `json:"address,omitempty"`
	// Messages are the ids of those messages: the newest ones, in their order.
	Messages []string `json:"messages,omitempty"`
	Count    int64    `json:"count,omitempty"` // how many messages were refused there; 0 means as many as there are ids in Messages
	// MayBeRecorded says that the end of this turn may already be recorded. Then the existing record stays the
	// only one.
	MayBeRecorded bool `json:"-"`
}

// An AuditUse is what a turn has used.
type AuditUse struct {
	Model      string `json:"model,omitempty"` // the model that answered last
	ModelCalls int    `json:"model_calls"`
	Calls      int    `json:"calls"` // tool calls
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	Cost       *int64 `json:"microdollars,omitempty"` // nil if it is not known
}

// An AuditQuery says which audit records to read. An empty field matches all records; but without a Limit, none are
// read.
type AuditQuery struct {
	Kind    string
	Session string
	Message string // a refusal of the message with this id; records of other kinds ignore this field
	Place   string // a refusal at this address, as CHANNEL:CHAT, or in a thread there
	Person  string
	Since   time.Time
	After   int64 // only records with greater ids
	Before  int64 // only records with smaller ids; 0 means all
	Newest  bool  // the newest records first
	Limit   int
}

// An Auditor stores audit records.
type Auditor interface {
	// Audit stores a record; when it returns nil, the record is durable.
	Audit(ctx context.Context, r AuditRecord) error
	// AuditNotes stores several records at once. Refusals of one person's messages, by one rule and at
	// one address, are merged into one record, with a new id and the time of the newest. Only the newest
	// of these records are kept; see MaxRefusals.
	AuditNotes(ctx context.Context, records []AuditRecord) error
	// AuditRecords returns the records that match a query, in ascending or descending order of their
	// ids, at most as many as its Limit.
	AuditRecords(ctx context.Context, q AuditQuery) ([]AuditRecord, error)
	// DropAudit deletes the records from before that time, and returns how many it has deleted. Records that are not
	// archived yet, if they are to be, stay and lose their arguments.
	DropAudit(ctx context.Context, before time.Time) (int64, error)
	// DropRefusals deletes the refusals from before that time.
	DropRefusals(ctx context.Context, before time.Time) error
}

// A SoonAuditor is an Auditor that can also store a record without waiting for the disk.
type SoonAuditor interface {
	// AuditSoon does what Audit does, but may return before the record is durable. It becomes durable
	// a moment later, or as soon as a later entry of a log becomes durable.
	AuditSoon(ctx context.Context, r AuditRecord) error
}
