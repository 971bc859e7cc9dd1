package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

const (
	// A history of more pages is not read to its end.
	pageSize = 200
	maxPages = 20
)

// errTooMuch says that a history is too long to be read to its end.
var errTooMuch = errors.New("history is too long")

// attempts makes a call, and may repeat it while it fails.
type attempts func(ctx context.Context, call func(context.Context) error) error

// once makes a call once, for callers who repeat the whole reading.
func once(ctx context.Context, call func(context.Context) error) error { return call(ctx) }

// A page is one page of a history.
type page struct {
	messages []slackgo.Message
	next     string // cursor; "" if it is the last
}

// pages gets page after page, until the last or until see returns false. Each page
// is retried by itself: a reading that began anew after a rate limit would meet
// the limit again at the same page.
func pages(ctx context.Context, try attempts, get func(ctx context.Context, cursor string) (page, error), see func(slackgo.Message) bool) error {
	cursor := ""
	for range maxPages {
		var p page
		err := try(ctx, func(ctx context.Context) (err error) {
			p, err = get(ctx, cursor)
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range p.messages {
			if !see(m) {
				return nil
			}
		}
		if p.next == "" {
			return nil
		}
		cursor = p.next
	}
	return &channels.SendError{Fault: channels.Unknown, Code: "too_much", Err: errTooMuch}
}

// readChat reads a chat's messages since oldest, newest first, without the replies
// in threads.
func (c *Channel) readChat(ctx context.Context, try attempts, chat, oldest string, see func(slackgo.Message) bool) error {
	return pages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := begin(ctx)
		defer done()
		r, err := c.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: chat, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, repeatable(sendError(err, t))
		}
		return page{r.Messages, r.ResponseMetaData.NextCursor}, nil
	}, see)
}

// readThread reads the replies of a thread since oldest, and always its root.
func (c *Channel) readThread(ctx context.Context, try attempts, chat, root, oldest string, see func(slackgo.Message) bool) error {
	return pages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := begin(ctx)
		defer done()
		messages, _, next, err := c.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: chat, Timestamp: root, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, repeatable(sendError(err, t))
		}
		return page{messages, next}, nil
	}, see)
}

// Before implements channels.ThreadReader.
func (c *Channel) Before(ctx context.Context, in bus.Inbound, most int) ([]bus.Quote, error) {
	if in.At.Thread == "" || in.At.Thread == in.ReplyTo { // it begins the thread
		return nil, nil
	}
	if _, joined, err := c.joins.Joined(ctx, in.At); err != nil || joined {
		if err != nil {
			return nil, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
		}
		return nil, nil
	}
	me, err := c.identity(ctx)
	if err != nil {
		return nil, err
	}
	var all []*message
	err = c.readThread(ctx, once, in.At.Chat, in.At.Thread, "", func(said slackgo.Message) bool {
		m := fromHistory(in.At.Chat, said)
		if (in.ReplyTo == "" || m.TS < in.ReplyTo) && m.isWritten() {
			all = append(all, &m)
		}
		return in.ReplyTo == "" || m.TS < in.ReplyTo
	})
	if err != nil && !isThreadGone(err) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *message) int { return cmp.Compare(a.TS, b.TS) })
	if len(all) > most {
		all = append(all[:1:1], all[len(all)-most+1:]...)
	}
	quotes := make([]bus.Quote, 0, len(all))
	for _, m := range all {
		quotes = append(quotes, bus.Quote{Kind: bus.Earlier, From: c.author(ctx, m), At: moment(m.TS), Text: c.words(ctx, m, me, false)})
	}
	return quotes, nil
}

// speaker is who said the message in a thread with which a turn began, or spoke there last;
// "" is nobody, or nobody knows. Where another process has heard it, Slack is asked.
func (c *Channel) speaker(ctx context.Context, me Account, chat, thread, turn string) string {
	if user, heard := c.speakers.get(threadKey(chat, thread)); heard {
		return user
	}
	ts, ok := strings.CutPrefix(turn, c.id(&message{Channel: chat}, me))
	if !ok || !isTS(ts) {
		return "" // something else than a message began it
	}
	user := ""
	err := c.readThread(ctx, once, chat, thread, stamp(moment(ts).Add(-time.Microsecond)), func(said slackgo.Message) bool {
		if said.Timestamp == ts && said.BotID == "" {
			user = said.User
		}
		return said.Timestamp < ts || said.Timestamp == thread && thread != ts
	})
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "it is not known for whom an answer is to grow", slog.Any("error", err))
	}
	if user != "" {
		c.speakers.put(threadKey(chat, thread), user)
	}
	return user
}

// lookBack is how far back a sent part is looked for. No send is tried for so long.
const lookBack = 7 * 24 * time.Hour

// FindSent looks for a part by its key, in the history of the chat it was to go to.
func (c *Channel) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	chat, err := c.chat(ctx, to)
	if err != nil {
		return "", false, err
	}
	me, err := c.identity(ctx)
	if err != nil {
		return "", false, err
	}
	f := &finding{part: part, me: me.User, root: thread(to, part)}
	oldest := stamp(time.Now().Add(-lookBack))
	if root := thread(to, part); root != "" {
		err := c.readThread(ctx, once, chat, root, oldest, f.look)
		if err != nil && !isThreadGone(err) {
			return "", false, err
		}
	}
	// Send posts a part beside the message it belongs to if that has no thread.
	if f.id == "" && to.Thread == "" {
		if err := c.readChat(ctx, once, chat, oldest, f.look); err != nil {
			return "", false, err
		}
	}
	if f.id == "" && f.doubtful {
		return "", false, &channels.SendError{Fault: channels.Unknown, Code: "no_key", Err: errors.New("a file was sent with the same text")}
	}
	f.id = cmp.Or(f.id, f.growing)
	return f.id, f.id != "", nil
}

// A finding is a search for one part.
type finding struct {
	part channels.Part
	me   string
	root string

	id string
	// growing is a message of ours without a key, which none with a key follows: Slack takes
	// none for a message that grows.
	growing string
	// A file carries no key. If one of ours has the same text and name, it may be the part.
	doubtful bool
}

// look compares one message with the part; false ends the search.
func (f *finding) look(m slackgo.Message) bool {
	if key, ok := m.Metadata.EventPayload["key"].(string); ok && m.Metadata.EventType == partEvent && key == f.part.Key {
		f.id = m.Timestamp
		return false
	}
	if f.part.Growing != nil && m.User == f.me && f.root != "" && m.Timestamp != f.root && len(m.Files) == 0 && m.SubType == "" {
		f.growing = ""
		if m.Metadata.EventType == "" {
			f.growing = m.Timestamp
		}
	}
	if len(m.Files) > 0 && m.Metadata.EventType == "" && m.User == f.me {
		said := letters(m.Text)
		named := f.part.File == "" || slices.ContainsFunc(m.Files, func(file slackgo.File) bool { return file.Title == f.part.File })
		f.doubtful = f.doubtful || named && (said == letters(f.part.Text) || said == letters(f.part.Plain))
	}
	return true
}

// letters reduces a text to the letters and digits that Slack keeps as they are.
// Slack rewrites emoji as names between colons, and formatting and links in its own
// way, so that only these can be compared.
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

const (
	readThreads  = 20 // of a chat that is read, the newest
	membersPages = 50 // of a thousand each
)

// History implements channels.Historian.
func (c *Channel) History(ctx context.Context, at bus.Address, since time.Time, most int) ([]channels.Utterance, bool, error) {
	me, err := c.identity(ctx)
	if err != nil {
		return nil, false, err
	}
	oldest := ""
	if !since.IsZero() {
		oldest = stamp(since)
	}
	r := reading{oldest: oldest, most: most, found: map[string]message{}, chat: at.Chat}
	if at.Thread != "" {
		err = c.readThread(ctx, once, at.Chat, at.Thread, oldest, r.see)
	} else {
		err = c.readChat(ctx, once, at.Chat, oldest, r.see)
	}
	if err != nil && !errors.Is(err, errTooMuch) {
		return nil, false, err
	}
	for i, root := range r.roots {
		if i == readThreads {
			r.more = true
			break
		}
		t := reading{oldest: oldest, most: most, found: r.found, chat: at.Chat}
		if err := c.readThread(ctx, once, at.Chat, root, oldest, t.see); err != nil && !isThreadGone(err) && !errors.Is(err, errTooMuch) {
			return nil, false, err
		}
	}
	all := slices.SortedFunc(maps.Values(r.found), func(a, b message) int { return cmp.Compare(a.TS, b.TS) })
	if len(all) > most {
		r.more, all = true, all[len(all)-most:]
	}
	said := make([]channels.Utterance, 0, len(all))
	for _, m := range all {
		said = append(said, c.utterance(ctx, &m, me))
	}
	return said, r.more, nil
}

// A reading is the history of a chat or of a thread as it is read.
type reading struct {
	chat   string
	oldest string
	most   int

	found map[string]message
	roots []string // of threads in which something was said since
	seen  int
	more  bool // there is older
}

func (r *reading) see(said slackgo.Message) bool {
	if said.LatestReply > r.oldest && said.ReplyCount > 0 {
		r.roots = append(r.roots, said.Timestamp)
	}
	m := fromHistory(r.chat, said)
	if m.TS <= r.oldest || m.Hidden || m.TS == "" || said.SubType != "" && !slices.Contains([]string{"file_share", "thread_broadcast", "me_message", "bot_message"}, said.SubType) {
		return true
	}
	r.found[m.TS] = m
	if r.seen++; r.seen > 2*r.most {
		r.more = true
		return false
	}
	return true
}

// utterance is a message as people read it.
func (c *Channel) utterance(ctx context.Context, m *message, me Account) channels.Utterance {
	u := channels.Utterance{At: moment(m.TS), Text: strings.TrimSpace(named(m.Files) + " " + markup.WithEmoji(c.plain(ctx, m.Text, me)))}
	if m.isReply() {
		u.Thread = m.ThreadTS
	}
	switch {
	case m.User == me.User || m.User == "" && m.BotID == me.Bot:
		u.From = bus.Person{ID: c.name + ":" + me.User, Name: me.Username}
	case m.User != "":
		u.From = bus.Person{ID: c.name + ":" + m.User, Name: cmp.Or(c.people.name(ctx, m.User), m.User)}
	default:
		u.From = bus.Person{Name: "a bot"}
	}
	return u
}

// IsIn implements channels.Historian.
func (c *Channel) IsIn(ctx context.Context, chat, person string) (bool, error) {
	_, user, _ := strings.Cut(person, ":")
	cursor := ""
	for range membersPages {
		ctx, t, done := begin(ctx)
		users, next, err := c.api.GetUsersInConversationContext(ctx, &slackgo.GetUsersInConversationParameters{ChannelID: chat, Cursor: cursor, Limit: 1000})
		done()
		if err != nil {
			return false, repeatable(sendError(err, t))
		}
		if slices.Contains(users, user) {
			return true, nil
		}
		if cursor = next; cursor == "" {
			return false, nil
		}
	}
	return false, &channels.SendError{Fault: channels.Unknown, Code: "too_much", Err: errTooMuch}
}

// FindChat implements channels.Historian: a channel's id, or its name with or without #.
func (c *Channel) FindChat(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "#")
	cursor := ""
	for range maxPages {
		ctx, t, done := begin(ctx)
		page, next, err := c.api.GetConversationsForUserContext(ctx, &slackgo.GetConversationsForUserParameters{
			Cursor: cursor, Limit: pageSize, ExcludeArchived: true, Types: []string{"public_channel", "private_channel", "mpim", "im"},
		})
		done()
		if err != nil {
			return "", repeatable(sendError(err, t))
		}
		for _, one := range page {
			if one.ID == name || one.Name != "" && strings.EqualFold(one.Name, name) {
				return one.ID, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", nil
		}
	}
	return "", nil
}
