package subagents

import (
	"context"
	"errors"
	"fmt"

	"parley/sessions"
	"parley/tools"
)

// An entryJSON is one entry of a session's log in the form that a model is shown.
type entryJSON struct {
	N    int64  `json:"n"`
	At   string `json:"at"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// A historyJSON is a part of a session's log.
type historyJSON struct {
	Session string      `json:"session"`
	Entries []entryJSON `json:"entries"`
	Next    int64       `json:"next,omitempty"` // the number of the next entry to read
}

// History implements subagenttools.Backend. It shows the model what was said in other sessions (except the
// conversation's own and its sub-agents') only in this turn and not in later ones, because the people who said it
// may have it erased from those sessions. If from is 0, it shows the newest entries.
func (d *Service) History(ctx context.Context, call tools.Call, session string, from int64) (any, error) {
	t, err := d.find(ctx, call, session)
	if err != nil {
		return nil, err
	}
	info, err := d.cfg.Sessions.Info(ctx, session)
	if errors.Is(err, sessions.ErrNotFound) {
		return historyJSON{Session: session, Entries: []entryJSON{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the session cannot be read now: %w", err)
	}
	if from <= 0 {
		from = max(1, info.LastEntry-maxEntries)
	}
	shown, foreign, err := d.read(ctx, session, from)
	switch {
	case err != nil:
		return nil, err
	case t.ID == "" && session != call.Session:
		kept := map[string]any{"session": session, "entries": len(shown.Entries), "note": "what it held was shown in that turn alone"}
		return tools.Untrusted{Value: tools.Fleeting{Value: shown, StoredValue: kept}}, nil
	case foreign || t.Untrusted:
		return tools.Untrusted{Value: shown}, nil
	}
	return shown, nil
}

// read returns a part of a session's log, beginning with the entry number from, as much as a model is shown at once,
// and whether strangers may have written some of it. They count as authors of a model's own words, too, if these may
// repeat what the model had read before that part.
func (d *Service) read(ctx context.Context, session string, from int64) (h historyJSON, foreign bool, err error) {
	h = historyJSON{Session: session, Entries: []entryJSON{}}
	size := 0
	for e, err := range d.cfg.Sessions.Read(ctx, session, 1) {
		if err != nil {
			return h, false, fmt.Errorf("the session cannot be read now: %w", err)
		}
		text, untrusted, err := textOf(e)
		if err != nil {
			return h, false, err
		}
		foreign = foreign || untrusted
		if text == "" || e.N < from {
			continue
		}
		text = shorten(text)
		if size += len(text); size > maxHistory || len(h.Entries) == maxEntries {
			h.Next = e.N
			break
		}
		h.Entries = append(h.Entries, entryJSON{N: e.N, At: formatTime(e.At), Kind: string(e.Kind), Text: text})
	}
	return h, foreign, nil
}

// shorten shortens a text to the length that one entry may have.
func shorten(text string) string {
	if r := []rune(text); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return text
}

// textOf returns what a model is shown of an entry, or "" for nothing, and whether strangers may have written
// it.
func textOf(e sessions.Entry) (text string, untrusted bool, err error) {
	if e.MarksMemory() || e.IsEpisode() {
		return "", false, nil
	}
	switch e.Kind {
	case sessions.KindUser:
		d, err := sessions.Decode[sessions.User](e)
		return d.Text, d.Untrusted || len(d.Quotes) > 0, err
	case sessions.KindText:
		d, err := sessions.Decode[sessions.Text](e)
		return d.Text, false, err
	case sessions.KindToolUse:
		d, err := sessions.Decode[sessions.ToolUse](e)
		return d.Name + " " + string(d.Args), false, err
	case sessions.KindToolResult:
		d, err := sessions.Decode[sessions.ToolResult](e)
		return string(d.Content), d.Untrusted, err
	case sessions.KindNotice:
		d, err := sessions.Decode[sessions.Notice](e)
		return d.Text, len(d.Quotes) > 0, err
	case sessions.KindSummary:
		d, err := sessions.Decode[sessions.Summary](e)
		return d.Text, d.Untrusted, err
	case sessions.KindTurnDone:
		d, err := sessions.Decode[sessions.TurnDone](e)
		return d.State, false, err
	case sessions.KindFetched:
		return "", true, nil
	}
	return "", false, nil
}
