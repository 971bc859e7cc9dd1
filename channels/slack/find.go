package slack

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
)

// lookBack is how old a send can be that is looked for: far older than anything
// that is still tried.
const lookBack = 7 * 24 * time.Hour

// FindSent looks for a part in the history of where it was to go, by its key.
func (c *Channel) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	chat, err := c.chat(ctx, to)
	if err != nil {
		return "", false, err
	}
	me, err := c.identity(ctx)
	if err != nil {
		return "", false, err
	}
	f := &finding{part: part, me: me.User}
	oldest := stamp(time.Now().Add(-lookBack))
	if root := thread(to, part); root != "" {
		err := c.readThread(ctx, once, chat, root, oldest, f.look)
		if err != nil && !isThreadGone(err) {
			return "", false, err
		}
	}
	// What belongs to an earlier message may have gone beside it.
	if f.id == "" && to.Thread == "" {
		if err := c.readChat(ctx, once, chat, oldest, f.look); err != nil {
			return "", false, err
		}
	}
	if f.id == "" && f.doubtful {
		return "", false, &channels.SendError{Fault: channels.Unknown, Code: "no_key", Err: errors.New("a file was sent with the same text")}
	}
	return f.id, f.id != "", nil
}

// A finding is a search for one part.
type finding struct {
	part channels.Part
	me   string

	id string
	// Files carry no key. One of ours with the same text may be what is looked for.
	doubtful bool
}

// look looks at one message; false ends the search.
func (f *finding) look(m slackgo.Message) bool {
	if key, ok := m.Metadata.EventPayload["key"].(string); ok && m.Metadata.EventType == partEvent && key == f.part.Key {
		f.id = m.Timestamp
		return false
	}
	if len(m.Files) > 0 && m.Metadata.EventType == "" && m.User == f.me {
		said := letters(m.Text)
		f.doubtful = f.doubtful || said == letters(f.part.Text) || said == letters(f.part.Plain)
	}
	return true
}

// letters are what Slack leaves of a text as it was: it gives emoji back as names
// between colons, and writes marks and links in its own way.
func letters(text string) string {
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		if r == ':' {
			if end := strings.IndexFunc(text[1:], noShortcode); end > 0 && text[1+end] == ':' {
				text = text[end+2:]
				continue
			}
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}

func noShortcode(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_+-'", r)
}
