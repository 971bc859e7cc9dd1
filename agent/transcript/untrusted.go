package transcript

import (
	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// Untrusted tells whether a model that was shown the records before entry n has read
// what nobody here vouches for, or a summary of it: a result that is marked so, and
// what people quote that is not their own. It holds until the past is dropped: the
// model's own words may repeat what it has read.
func Untrusted(records []journal.Record, n int64) bool {
	covered := int64(0)
	for i := len(records) - 1; i >= 0; i-- {
		if s, ok := records[i].Data.(sessions.Summary); ok && records[i].N < n {
			if s.Untrusted && s.Text != "" {
				return true
			}
			covered = s.Covers
			break
		}
	}
	for _, r := range records {
		if r.N > covered && r.N < n && fromOthers(r) {
			return true
		}
	}
	return false
}

// fromOthers tells whether an entry holds what strangers may have written.
func fromOthers(r journal.Record) bool {
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		return d.Untrusted
	case sessions.User:
		return quotesOthers(d.Quotes, r.Person)
	case sessions.Notice:
		return quotesOthers(d.Quotes, "")
	}
	return false
}

// quotesOthers tells whether quotes hold words of somebody else than a person. What
// the agent has said itself is not foreign.
func quotesOthers(quotes []sessions.Quote, person string) bool {
	for _, q := range quotes {
		if q.Kind != bus.Told && (q.Person == "" || q.Person != person) {
			return true
		}
	}
	return false
}
