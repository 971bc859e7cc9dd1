// Package news is what becomes of messages after they were said: people edit them, delete them, and react to what an agent says.
package news

import (
	"fmt"

	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// The codes of notices, by which the log remembers why they were given.
const (
	codeEdited  = "edited"
	codeReacted = "reacted"
	codeUnread  = "deleted_unread" // a message that nobody has read
)

// IsNews tells whether a message tells of an earlier one, and says nothing itself.
func IsNews(kind string) bool {
	return kind == bus.Edited || kind == bus.Deleted || kind == bus.Reacted
}

// Entry is what the log is told of an edit or a reaction; false if there is nothing to
// tell: the log knows no such message of that person's, or it reads as it did.
func Entry(turn string, in bus.Inbound, records []journal.Record) (sessions.Entry, bool) {
	var n sessions.Notice
	switch in.Kind {
	case bus.Edited:
		said, ok := find(in.Of, records)
		u, isUser := said.Data.(sessions.User)
		if !ok || !isUser || said.Person != in.From.ID || reads(in.Of, said, records) == in.Text || u.Deleted {
			return sessions.Entry{}, false
		}
		n = sessions.Notice{Code: codeEdited, Text: "A person has edited an earlier message of theirs. It reads now:",
			Quotes: []sessions.Quote{{Kind: bus.Edited, Person: in.From.ID, Name: in.From.Name, At: in.SentAt, Text: in.Text}}, Of: in.Of}
	case bus.Reacted:
		what := "reacted with"
		if in.Removed {
			what = "took back the reaction"
		}
		n = sessions.Notice{Code: codeReacted, Text: fmt.Sprintf("%s %s %s to what you said here. It needs no answer.", in.From.ID, what, in.Reaction)}
	default:
		return sessions.Entry{}, false
	}
	e := journal.NewEntry(turn, sessions.KindNotice, n)
	e.Cause, e.Person = in.ID, in.From.ID
	return e, true
}

// Unread is what the log is told of a message that was deleted before it was answered: it
// is known by its id, so that it is not answered if it comes again.
func Unread(in bus.Inbound) sessions.Entry {
	e := journal.NewEntry(in.ID, sessions.KindNotice, sessions.Notice{Code: codeUnread, Text: "A message was deleted before you have read it."})
	e.Cause, e.Person = in.ID, in.From.ID
	return e
}

func find(cause string, records []journal.Record) (journal.Record, bool) {
	for _, r := range records {
		if r.Cause == cause {
			return r, true
		}
	}
	return journal.Record{}, false
}

// reads is how a message reads by the log: as it was said, or as it was edited last.
func reads(of string, said journal.Record, records []journal.Record) string {
	text := ""
	if u, ok := said.Data.(sessions.User); ok {
		text = u.Text
	}
	for _, r := range records {
		if n, ok := r.Data.(sessions.Notice); ok && n.Code == codeEdited && n.Of == of && len(n.Quotes) == 1 {
			text = n.Quotes[0].Text
		}
	}
	return text
}

// Concerns tells whether a change is one of what that person has said. Who has deleted
// something is not always told.
func Concerns(change bus.Inbound, person string) bool {
	return change.From.ID == person || change.Kind == bus.Deleted && change.From.ID == ""
}

// Apply changes messages that wait as what came behind them says: an edit replaces the
// text, and what was deleted is told apart. Only who has said a message changes it.
func Apply(said []bus.Inbound, behind []bus.Inbound) (now []bus.Inbound, deleted []bus.Inbound) {
	for _, in := range said {
		gone := false
		for _, change := range behind {
			if change.Of != in.ID || !Concerns(change, in.From.ID) {
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
