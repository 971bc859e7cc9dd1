package worker

import (
	"context"

	"parley/agent/episodes"
	"parley/agent/journal"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/sessions"
)

// appendTurnEnd appends the end of a turn to entries, preceded by an episode if the turn has used tools. One write
// contains both, so each such turn has one episode, whichever process ends it.
func appendTurnEnd(ctx context.Context, s *turn.Session, t *turn.Turn, done sessions.TurnDone, entries []sessions.Entry) []sessions.Entry {
	if t.HasCalls() { // most turns only answer
		m := episodes.Maker{Agent: &s.Agent, Redact: s.Redactor(), Records: s.Journal.LoggedRecords(), Untrusted: s.TrustedTurn != t.ID || hasStrangersText(ctx, s, t)}
		if e, ok := m.Of(t, done.State, entries); ok {
			entries = append(entries, e)
		}
	}
	return append(entries, journal.NewEntry(t.ID, sessions.KindTurnDone, done))
}

// hasStrangersText reports whether strangers may have written some of the turn's entries, or of the files that the
// agent has read.
func hasStrangersText(ctx context.Context, s *turn.Session, t *turn.Turn) bool {
	return transcript.Untrusted(s.Journal.Records(), t.ID, s.Journal.Newest()+1) || s.Agent.Untrusted != nil && s.Agent.Untrusted(ctx, s.Key())
}
