package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// A title is something that a person has said, so it is not copied: a session's row contains the number
// of the entry whose first words are the title, and lists read them there. So nothing that was erased
// from the log appears in a title.

// titlesMigration is the migration that adds this number. A row that the release before has written does not have
// it; then the title's entry is found when the log is read, and recorded with the next append.
const titlesMigration = `ALTER TABLE sessions ADD COLUMN title BIGINT NOT NULL DEFAULT 0;`

// modelTitles is the migration that adds the titles that models give. Such a title is also made from what was
// said: it is valid only as long as the entry whose number is stored with it has words, and each erasure
// from the session removes it; see modelTitlesSince.
const modelTitles = `
ALTER TABLE sessions ADD COLUMN named TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN named_for BIGINT NOT NULL DEFAULT 0;
`

// modelTitlesSince is the migration that adds the session's count of erasures at the time when a model gave the
// title. A process of the release before, which does not know such titles, counts its erasures too. Then
// the title is no longer valid, because it may be made from what was erased.
const modelTitlesSince = `ALTER TABLE sessions ADD COLUMN named_erasures BIGINT NOT NULL DEFAULT 0;`

// hasWordsCondition is an SQL condition for the entries in which people say something. The rest of a deleted
// message, and a file without words, have an empty text, alone or after a name. Quotes contain texts too,
// but never followed by any of these continuations, and a quotation mark in a text is always escaped.
const hasWordsCondition = `kind = 'user' AND data NOT LIKE '{"text":""%'` +
	emptyTextCondition + `}'` + emptyTextCondition + `,"sent":%'` + emptyTextCondition + `,"quotes":%'` + emptyTextCondition + `,"chat":%'` + emptyTextCondition + `,"schedule":%'` + emptyTextCondition + `,"untrusted":%'` + emptyTextCondition + `,"deleted":%'`

const emptyTextCondition = ` AND data NOT LIKE '{"name":"%","text":""` // before whatever may follow the text

// titleEntryExpression is SQL for the number of the entry that contains the title of a session s: the one that its
// row names or, if that is erased or was never recorded, one of the first that no summary covers.
const titleEntryExpression = `coalesce(
	(SELECT n FROM entries WHERE session = s.id AND n = s.title AND ` + hasWordsCondition + `),
	(SELECT n FROM (SELECT n, kind, data FROM entries WHERE session = s.id AND n > s.covers ORDER BY n LIMIT 20) AS f WHERE ` + hasWordsCondition + ` ORDER BY n LIMIT 1),
	0)`

// retitle records the entry of a session's title again, after something was erased from the session.
func retitle(tx *sqldb.Tx, session int64) error {
	_, err := tx.Exec("UPDATE sessions AS s SET named = '', title = "+titleEntryExpression+" WHERE id = ?", session)
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

// findTitle finds the title's entry among those of the log when it was opened.
func (s *state) findTitle(entries []sessions.Entry) {
	s.title = s.storedTitle
	for _, e := range entries {
		switch {
		case e.Kind == sessions.KindSummary && e.N == s.summary && s.title <= s.summaryCovers:
			if sum, err := sessions.Decode[sessions.Summary](e); err == nil && sum.BeginsAnew() {
				s.title = 0 // the release before leaves the old title
			}
		case e.Kind == sessions.KindUser && s.title == 0 && e.N > s.summaryCovers && titleOf(string(e.Data)) != "":
			s.title = e.N
		}
	}
}

// noteSaid makes an entry the session's title if the session has none and the entry has words.
func (s *state) noteSaid(r row) {
	if s.title == 0 && titleOf(r.data) != "" {
		s.title = r.n
	}
}

// newTitle returns the number that an append has to store; -1 if it has not changed.
func (s *state) newTitle() int64 {
	if s.title == s.storedTitle {
		return -1
	}
	return s.title
}

// titleBytes is how many bytes of an entry are read for its title.
const titleBytes = "4096"

// titleOf returns the first words of a user's entry; "" if there are none. data is the entry's data, of
// which everything after titleBytes may be missing.
func titleOf(data string) string {
	var said sessions.User
	if json.Unmarshal([]byte(data), &said) == nil {
		return sessions.FirstWords(said.Text)
	}
	at := strings.Index(data, `"text":"`) // only the name comes before it, and in a name a quotation mark is escaped
	if at < 0 {
		return ""
	}
	data = data[at:]
	for cut := range min(12, len(data)) { // the data may end within an escaped character
		if json.Unmarshal([]byte("{"+data[:len(data)-cut]+`"}`), &said) == nil {
			return sessions.FirstWords(said.Text)
		}
	}
	// The text is complete, but what follows it is not.
	decoder := json.NewDecoder(strings.NewReader("{" + data))
	for range 2 { // the brace, and the field's name
		if _, err := decoder.Token(); err != nil {
			return ""
		}
	}
	text, _ := decoder.Token()
	words, _ := text.(string)
	return sessions.FirstWords(words)
}
