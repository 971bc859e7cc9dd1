package erase

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels/sqlbook"
	"parley/sessions"
)

// A Receipt says what was erased, and what was not. It contains ids and counts, and nothing that
// anybody said.
type Receipt struct {
	What       string          `json:"what"`
	At         time.Time       `json:"at"`
	Log        sessions.Erased `json:"log"`
	Bus        bus.Forgotten   `json:"bus"`
	Book       sqlbook.Erased  `json:"book"`
	Workspaces []string        `json:"workspaces"` // the sessions whose directories were removed
	// Attachments counts the files that were removed from conversations shared with others.
	Attachments int `json:"attachments,omitempty"`
	// OldFiles counts the files of erased turns that were removed from conversations that continue.
	OldFiles   int         `json:"old_files,omitempty"`
	AuditFiles int         `json:"audit_files,omitempty"` // how many records in the audit's files lost their arguments
	Kept       []NotErased `json:"kept"`
}

// NotErased is something that was not erased, and why.
type NotErased struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (r *Receipt) noteKept(what, why string) {
	for _, k := range r.Kept {
		if k.What == what {
			return
		}
	}
	r.Kept = append(r.Kept, NotErased{what, why})
}

// Empty reports whether nothing was erased and nothing was left out.
func (r *Receipt) Empty() bool {
	return len(r.Log.Sessions) == 0 && r.Log.Entries == 0 && len(r.Workspaces) == 0 &&
		r.Bus.Messages == 0 && r.Bus.DeadLetters == 0 && r.Book == sqlbook.Erased{} && r.AuditFiles == 0 && r.Attachments == 0 && r.OldFiles == 0
}

// String returns the receipt in the form in which people read it.
func (r *Receipt) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Erased: %s, %s\n", r.What, r.At.Format(time.RFC3339))
	for _, line := range []struct {
		what string
		n    int64
	}{
		{"sessions erased entirely", int64(len(r.Log.Sessions))},
		{"sessions erased in part", int64(len(r.Log.PartlyErased))},
		{"log entries", r.Log.Entries},
		{"workspaces with their files and memory", int64(len(r.Workspaces))},
		{"messages on their way", int64(r.Bus.Messages)},
		{"turns and sends cut off", int64(r.Bus.Leases)},
		{"dead letters", int64(r.Bus.DeadLetters)},
		{"records of what was sent", r.Book.Sends},
		{"records of what programs submitted", r.Book.Posts},
		{"records of chats", r.Book.Chats},
		{"requests to people", r.Book.Asks},
		{"ratings of answers", r.Book.Ratings},
		{"memories about the person, in all conversations", r.Book.Memories},
		{"files sent to conversations with others", int64(r.Attachments)},
		{"files of erased turns in conversations that continue", int64(r.OldFiles)},
		{"records of tool calls in audit files", int64(r.AuditFiles)},
	} {
		if line.n > 0 {
			fmt.Fprintf(&b, "%8d  %s\n", line.n, line.what)
		}
	}
	if r.Empty() {
		b.WriteString("          there was nothing to erase\n")
	}
	for _, list := range []struct {
		what string
		keys []string
	}{{"whole", r.Log.Sessions}, {"in part", r.Log.PartlyErased}} {
		for _, key := range list.keys {
			fmt.Fprintf(&b, "          session %s, %s\n", key, list.what)
		}
	}
	if len(r.Kept) > 0 {
		b.WriteString("Kept:\n")
	}
	for _, k := range r.Kept {
		fmt.Fprintf(&b, "  - %s: %s\n", k.What, k.Why)
	}
	return b.String()
}

// addErased returns the sum of what two erasures have erased.
func addErased(a, b sessions.Erased) sessions.Erased {
	a.Sessions, a.PartlyErased = addKeys(a.Sessions, b.Sessions), addKeys(a.PartlyErased, b.PartlyErased)
	a.Entries += b.Entries
	return a
}

// addKeys returns the keys in a, followed by those in b that are not in a. There may be very many.
func addKeys(a, b []string) []string {
	known := keySet(a)
	for _, key := range b {
		if !known[key] {
			known[key], a = true, append(a, key)
		}
	}
	return a
}

// keySet returns a set of the keys.
func keySet(keys []string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

func (e *Eraser) receipt(what string) Receipt {
	return Receipt{What: what, At: time.Now().UTC(), Kept: slices.Clone(e.cfg.Kept)}
}

// addKept adds to a receipt what an erasure never reaches, and logs that the erasure was done.
func (e *Eraser) addKept(r *Receipt) {
	r.noteKept("the ids of messages", "so that none of them is answered a second time")
	r.noteKept("existing backups", "erase them by hand")
	r.noteKept("copies on the chat platforms", "only they can erase those")
	e.cfg.Log.Info("erased", slog.Int("sessions", len(r.Log.Sessions)), slog.Int("shared", len(r.Log.PartlyErased)),
		slog.Int64("entries", r.Log.Entries), slog.Int("messages", r.Bus.Messages), slog.Int("dead_letters", r.Bus.DeadLetters),
		slog.Int("workspaces", len(r.Workspaces)), slog.Int("old_files", r.OldFiles))
}
