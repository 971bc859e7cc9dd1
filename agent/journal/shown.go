package journal

import (
	"encoding/json"
	"slices"

	"parley/sessions"
)

// ShowResult makes Records return content as the result of a call, instead of what is in the log, until
// HideResults is called. After a crash, only the log's version remains.
func (j *Journal) ShowResult(call string, content json.RawMessage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = slices.Clone(j.records) // others still read the old slice
	for i, r := range j.records {
		if d, ok := r.Data.(sessions.ToolResult); ok && r.Call == call {
			if j.replacedResults == nil {
				j.replacedResults = map[string]sessions.ToolResult{}
			}
			j.replacedResults[call] = d
			d.Content = content
			j.records[i].Data = d
		}
	}
}

// LoggedRecords returns the records with all results as they are in the log, regardless of ShowResult.
// Summaries are made from these.
func (j *Journal) LoggedRecords() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clip(j.loggedRecords())
}

// loggedRecords does what LoggedRecords does, but keeps the spare room for further records. The caller holds
// the lock.
func (j *Journal) loggedRecords() []Record {
	if j.replacedResults == nil {
		return j.records
	}
	records := slices.Clone(j.records)
	for i, r := range records {
		if d, shown := j.replacedResults[r.Call]; shown && r.Kind == sessions.KindToolResult {
			records[i].Data = d
		}
	}
	return records
}

// HideResults ends the effect of ShowResult: from now on Records returns each result as it is in the log.
func (j *Journal) HideResults() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = j.loggedRecords()
	j.replacedResults = nil
}
