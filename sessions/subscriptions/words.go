package subscriptions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// Words returns what was said in an event that comes from a session's log: a person's message, or the messages that a
// turn has ended with. It is "" if there is nothing, for example because it was erased.
func (t *Table) Words(ctx context.Context, e Event) (string, error) {
	kind := sessions.Kind("")
	switch e.Type {
	case MessageReceived:
		kind = sessions.KindUser
	case TurnEnded:
		kind = sessions.KindTurnDone
	default:
		return "", nil
	}
	data, err := t.entry(ctx, e, "e.n = ? AND e.kind = ? AND e.turn = ?", e.Entry, string(kind), sqldb.Text(e.Data.Turn))
	if err != nil || data == "" {
		return "", err
	}
	if kind == sessions.KindUser {
		var said sessions.User
		err := json.Unmarshal([]byte(data), &said)
		return said.Text, err
	}
	var done sessions.TurnDone
	if err := json.Unmarshal([]byte(data), &done); err != nil {
		return "", err
	}
	var texts []string
	for _, out := range done.Outbound {
		texts = append(texts, out.Text)
	}
	return strings.Join(texts, "\n\n"), nil
}

// codeNoTool is the code of the failure of a call whose tool doesn't exist. Some tools fail with it, too.
const codeNoTool = "not_found"

// maxToolName is the length of the longest name that an event has.
const maxToolName = 100

// Tool returns the name of the tool whose call has completed; "" if it is no longer known. In place of a name that a model
// seems to have made up, it returns sessions.OtherTool: one that never ran because there is no such tool, or that doesn't
// look like a tool's name.
func (t *Table) Tool(ctx context.Context, e Event) (string, error) {
	if e.Type != ToolCompleted {
		return "", nil
	}
	data, err := t.entry(ctx, e, "e.n < ? AND e.kind = ? AND e.call = ?", e.Entry, string(sessions.KindToolUse), sqldb.Text(e.Data.Call))
	if err != nil || data == "" {
		return "", err
	}
	var use struct{ Name string }
	if err := json.Unmarshal([]byte(data), &use); err != nil {
		return "", err
	}
	if e.Data.Code == codeNoTool {
		started, err := t.entry(ctx, e, "e.n < ? AND e.kind = ? AND e.call = ?", e.Entry, string(sessions.KindToolStarted), sqldb.Text(e.Data.Call))
		if err != nil {
			return "", err
		}
		if started == "" {
			return sessions.OtherTool, nil
		}
	}
	if !isToolName(use.Name) {
		return sessions.OtherTool, nil
	}
	return use.Name, nil
}

// isToolName reports whether a name looks like that of a tool, rather than like words.
func isToolName(name string) bool {
	return name != "" && len(name) <= maxToolName && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// entry returns the data of the newest entry of an event's session for which the condition holds; "" if there is none.
func (t *Table) entry(ctx context.Context, e Event, condition string, args ...any) (data string, err error) {
	err = t.db.Read.QueryRowContext(ctx, "SELECT e.data FROM entries e JOIN sessions s ON s.id = e.session WHERE s.key = ? AND "+condition+" ORDER BY e.n DESC LIMIT 1",
		append([]any{sqldb.Text(e.Data.Session)}, args...)...).Scan(&data)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read the log for event %s: %w", e.ID, err)
	}
	return data, nil
}
