package worker

import (
	"context"

	"parley/agent/episodes"
	"parley/agent/journal"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/sessions"
)

// withEnd appends the end of a turn to entries, and before that an episode if the turn has used tools. The
// episode is in the same write as the end, so the log contains one for each such turn, whichever process ends
// it.
func withEnd(ctx context.Context, s *turn.Session, t *turn.Turn, done sessions.TurnDone, entries []sessions.Entry) []sessions.Entry {
	if t.HasCalls() { // most turns only answer
		m := episodes.Maker{Agent: &s.Agent, Redact: s.Redactor(), Records: s.Journal.LoggedRecords(), Untrusted: s.Trusted != t.ID || hasReadStrangers(ctx, s, t)}
		if e, ok := m.Of(t, done.State, entries); ok {
			entries = append(entries, e)
		}
	}
	return append(entries, journal.NewEntry(t.ID, sessions.KindTurnDone, done))
}

// hasReadStrangers reports whether strangers may have written some of what the log contains for a turn, or some
// of the files that the agent has read.
func hasReadStrangers(ctx context.Context, s *turn.Session, t *turn.Turn) bool {
	return transcript.Untrusted(s.Journal.Records(), t.ID, s.Journal.Newest()+1) || s.Agent.Untrusted != nil && s.Agent.Untrusted(ctx, s.Key())
}
