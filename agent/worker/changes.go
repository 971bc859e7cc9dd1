package worker

import (
	"fmt"

	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// The codes of the log's notices about changed messages.
const (
	codeEdited        = "edited"
	codeReacted       = "reacted"
	codeDeletedUnread = "deleted_unread" // for a message that was deleted before the agent read it
)

// isChange reports whether a message only changes or reacts to an earlier one.
func isChange(kind string) bool {
	return kind == bus.Edited || kind == bus.Deleted || kind == bus.Reacted
}

// changeEntry returns the log entry for an edit or a reaction. It returns false if there is nothing to record:
// the log contains no such message by that person, the message was deleted, or the text is the same.
func changeEntry(turn string, in bus.Inbound, records []journal.Record) (sessions.Entry, bool) {
	var n sessions.Notice
	switch in.Kind {
	case bus.Edited:
		said, ok := findByCause(in.Of, records)
		u, isUser := said.Data.(sessions.User)
		if !ok || !isUser || said.Person != in.From.ID || currentText(in.Of, said, records) == in.Text || u.Deleted {
			return sessions.Entry{}, false
		}
		n = sessions.Notice{Code: codeEdited, Text: textEdited,
			Quotes: []sessions.Quote{{Kind: bus.Edited, Person: in.From.ID, Name: in.From.Name, At: in.SentAt, Text: in.Text}}, MessageID: in.Of}
	case bus.Reacted:
		what := "reacted with"
		if in.Removed {
			what = "removed the reaction"
		}
		n = sessions.Notice{Code: codeReacted, Text: fmt.Sprintf(textReacted, in.From.ID, what, in.Reaction)}
	default:
		return sessions.Entry{}, false
	}
	e := journal.NewEntry(turn, sessions.KindNotice, n)
	e.Cause, e.Person = in.ID, in.From.ID
	return e, true
}

// deletedUnreadEntry returns the log entry for a message that was deleted before it was answered. The entry has the
// message's id, so the message is not answered if it arrives again.
func deletedUnreadEntry(in bus.Inbound) sessions.Entry {
	e := journal.NewEntry(in.ID, sessions.KindNotice, sessions.Notice{Code: codeDeletedUnread, Text: textDeletedUnread})
	e.Cause, e.Person = in.ID, in.From.ID
	return e
}

// findByCause returns the first record that the message with the id cause led to, or false if there is none.
func findByCause(cause string, records []journal.Record) (journal.Record, bool) {
	for _, r := range records {
		if r.Cause == cause {
			return r, true
		}
	}
	return journal.Record{}, false
}

// currentText returns a message's text according to the log: as it was said, or as it was last edited.
func currentText(of string, said journal.Record, records []journal.Record) string {
	text := ""
	if u, ok := said.Data.(sessions.User); ok {
		text = u.Text
	}
	for _, r := range records {
		if n, ok := r.Data.(sessions.Notice); ok && n.Code == codeEdited && n.MessageID == of && len(n.Quotes) == 1 {
			text = n.Quotes[0].Text
		}
	}
	return text
}

// appliesTo reports whether a change may be applied to that person's messages: the person made it, or it is a
// deletion and the platform doesn't say who made it.
func appliesTo(change bus.Inbound, person string) bool {
	return change.From.ID == person || change.Kind == bus.Deleted && change.From.ID == ""
}

// applyChanges applies the edits and deletions in behind to messages that wait for a turn. It returns the
// messages that remain, the edited ones with their new text, and separately those that were deleted. Only the
// author of a message can change it.
func applyChanges(said []bus.Inbound, behind []bus.Inbound) (now []bus.Inbound, deleted []bus.Inbound) {
	for _, in := range said {
		gone := false
		for _, change := range behind {
			if change.Of != in.ID || !appliesTo(change, in.From.ID) {
				continue
			}
			switch change.Kind {
			case bus.Edited:
				in.Text, in.Attachments = change.Text, change.Attachments
			case bus.Deleted:
				gone = true
			}
		}
		if gone {
			deleted = append(deleted, in)
			continue
		}
		now = append(now, in)
	}
	return now, deleted
}
