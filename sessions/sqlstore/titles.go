package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// A title is what a person has said, so it is not copied: a session's row has the number of the entry
// whose first words it is, and lists read them there. What is erased from the log is in no title.

// titles is the migration that adds this number. What the release before has written has none; its title
// is looked for when it is read, and noted with the next append.
const titles = `ALTER TABLE sessions ADD COLUMN title BIGINT NOT NULL DEFAULT 0;`

// names is the migration that adds the titles that models give. Such a title is made of what was said, too:
// it counts only as long as the entry has its words whose number stands beside it, and each erasure from the
// session removes it; see namesSince.
const names = `
ALTER TABLE sessions ADD COLUMN named TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN named_for BIGINT NOT NULL DEFAULT 0;
`

// namesSince is the migration that notes which erasure was the session's last when a model gave the title. A
// process of the release before, which knows no such titles, counts what it erases, too: then the title
// does not count any more, because it may be made of what was erased.
const namesSince = `ALTER TABLE sessions ADD COLUMN named_erasures BIGINT NOT NULL DEFAULT 0;`

// hasWords is an SQL condition for the entries in which people say something. What is left of a deleted
// message, and a file without words, have an empty text, alone or behind a name. Quotes of it have texts
// too, but nothing that may stand behind this one, and no text has a quotation mark that is not escaped.
const hasWords = `kind = 'user' AND data NOT LIKE '{"text":""%'` +
	silent + `}'` + silent + `,"sent":%'` + silent + `,"quotes":%'` + silent + `,"chat":%'` + silent + `,"schedule":%'` + silent + `,"untrusted":%'` + silent + `,"deleted":%'`

const silent = ` AND data NOT LIKE '{"name":"%","text":""` // before what may stand behind the text

// titleEntry is in SQL the number of the entry that has the title of a session s: the one that its row
// names or, if that is erased or was never noted, one of the first that no summary covers.
const titleEntry = `coalesce(
	(SELECT n FROM entries WHERE session = s.id AND n = s.title AND ` + hasWords + `),
	(SELECT n FROM (SELECT n, kind, data FROM entries WHERE session = s.id AND n > s.covers ORDER BY n LIMIT 20) AS f WHERE ` + hasWords + ` ORDER BY n LIMIT 1),
	0)`

// retitle notes the entry of a session's title anew, after something was erased from the session.
func retitle(tx *sqldb.Tx, session int64) error {
	_, err := tx.Exec("UPDATE sessions AS s SET named = '', title = "+titleEntry+" WHERE id = ?", session)
	return err
}

// SetTitle gives the conversation a title; see [sessions.Titler].
func (l *log) SetTitle(ctx context.Context, n int64, title string) error {
	_, err := l.logs.db.Exec(ctx, "UPDATE sessions SET named = ?, named_for = ?, named_erasures = erasures WHERE id = ? AND key = ? AND fence = ? AND erasures = ? AND title = ?",
		sqldb.Text(title), n, l.session, l.key, l.fence, l.erasures, n)
	if err != nil {
		return fmt.Errorf("give a session its title: %w", err)
	}
	return nil
}

// findTitle finds the entry of the title among those of the log as it was opened.
func (s *state) findTitle(entries []sessions.Entry) {
	s.title = s.storedTitle
	for _, e := range entries {
		switch {
		case e.Kind == sessions.KindSummary && e.N == s.summary && s.title <= s.covers:
			if sum, err := sessions.Decode[sessions.Summary](e); err == nil && sum.BeginsAnew() {
				s.title = 0 // the release before leaves it
			}
		case e.Kind == sessions.KindUser && s.title == 0 && e.N > s.covers && titleOf(string(e.Data)) != "":
			s.title = e.N
		}
	}
}

// noteSaid makes an entry the session's title if it has none.
func (s *state) noteSaid(r row) {
	if s.title == 0 && titleOf(r.data) != "" {
		s.title = r.n
	}
}

// newTitle returns the number that an append has to store, -1 if it stays as it is.
func (s *state) newTitle() int64 {
	if s.title == s.storedTitle {
		return -1
	}
	return s.title
}

// titleBytes is how much of an entry is read for its title.
const titleBytes = "4096"

// titleOf returns the first words of a user's entry, of whose data at least the first titleBytes are
// given; "" if there are none.
func titleOf(data string) string {
	var said sessions.User
	if json.Unmarshal([]byte(data), &said) == nil {
		return sessions.FirstWords(said.Text)
	}
	at := strings.Index(data, `"text":"`) // behind the name alone, in which a quotation mark is escaped
	if at < 0 {
		return ""
	}
	data = data[at:]
	for cut := range min(12, len(data)) { // it may end within a character that is escaped
		if json.Unmarshal([]byte("{"+data[:len(data)-cut]+`"}`), &said) == nil {
			return sessions.FirstWords(said.Text)
		}
	}
	// The text is whole, and what follows it is not.
	decoder := json.NewDecoder(strings.NewReader("{" + data))
	for range 2 { // the brace, and the name of the field
		if _, err := decoder.Token(); err != nil {
			return ""
		}
	}
	text, _ := decoder.Token()
	words, _ := text.(string)
	return sessions.FirstWords(words)
}
