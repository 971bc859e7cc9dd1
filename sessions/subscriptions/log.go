package subscriptions

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// An Entry is what this package needs to know of an entry that is being appended to a session's log. Texts have the
// form in which the database stores them.
type Entry struct {
	Number                            int64
	At, Kind, Turn, Cause, Call, Data string
}

// typeOf returns the type of the event that an entry of this kind is; "" if it is none.
func typeOf(kind string) string {
	switch sessions.Kind(kind) {
	case sessions.KindUser:
		return MessageReceived
	case sessions.KindTurnStarted:
		return TurnBegun
	case sessions.KindTurnParked:
		return TurnWaiting
	case sessions.KindTurnUnparked:
		return TurnResumed
	case sessions.KindTurnDone:
		return TurnEnded
	case sessions.KindToolResult:
		return ToolCompleted
	}
	return ""
}

// InLog returns the event that an entry of a session's log is; false if nobody wants it, or it is none.
func (t *Table) InLog(session string, e Entry) (Event, bool, error) {
	what := typeOf(e.Kind)
	if what == "" || !t.Wants(what) {
		return Event{}, false, nil
	}
	at, err := time.Parse(time.RFC3339Nano, e.At)
	if err != nil {
		return Event{}, false, fmt.Errorf("%s entry %d: %w", e.Kind, e.Number, err)
	}
	// The time tells the entry from one that had its number before an erasure.
	made := Event{
		ID: NewID("log", session, strconv.FormatInt(e.Number, 10), e.At, e.Kind), Type: what, At: at, Entry: e.Number,
		Data: Data{Session: session, Turn: sqldb.Untext(e.Turn)},
	}
	known, err := made.Data.complete(what, e)
	if err != nil {
		return Event{}, false, fmt.Errorf("read %s entry %d: %w", e.Kind, e.Number, err)
	}
	return made, known, nil
}

// complete adds what the entry's own data says. It returns false if the entry is no event after all.
func (d *Data) complete(what string, e Entry) (known bool, err error) {
	switch what {
	case MessageReceived:
		d.ID = sqldb.Untext(e.Cause)
		return e.Cause != "", nil
	case TurnBegun, TurnResumed:
		d.State = "running"
	case TurnWaiting:
		var parked sessions.TurnParked
		if err := json.Unmarshal([]byte(e.Data), &parked); err != nil {
			return false, err
		}
		d.State, d.Kind = "waiting", "people"
		if parked.WaitsForSubAgents() {
			d.Kind = "tasks"
		} else if !parked.WaitsForPeople() {
			d.Kind = "nodes"
		}
	case TurnEnded:
		var done struct{ State, Code string }
		if err := json.Unmarshal([]byte(e.Data), &done); err != nil {
			return false, err
		}
		d.State, d.Code = done.State, done.Code
	case ToolCompleted:
		var result struct{ Code string }
		if err := json.Unmarshal([]byte(e.Data), &result); err != nil {
			return false, err
		}
		d.Call, d.State, d.Code = sqldb.Untext(e.Call), "done", result.Code
		if result.Code != "" {
			d.State = "failed"
		}
	}
	return true, nil
}
