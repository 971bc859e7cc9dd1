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

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

const (
	// pageSize is the number of messages in a page, and maxPages how many pages of one
	// history are read at most.
	pageSize = 200
	maxPages = 20
)

// errTooMuch says that a history is too long to be read to its end.
var errTooMuch = errors.New("history is too long")

// A retrier makes a call, and may repeat it while it fails.
type retrier func(ctx context.Context, call func(context.Context) error) error

// tryOnce is a retrier that never repeats, for callers who repeat the whole reading.
func tryOnce(ctx context.Context, call func(context.Context) error) error { return call(ctx) }

// A page is one page of a history.
type page struct {
	messages []slackgo.Message
	next     string // Slack's cursor for asking for the next page; "" if this is the last
}

// readPages gets page after page and passes their messages to visit, until the last page or until
// visit returns false. Each page is retried by itself: a reading that began anew after a rate limit
// would meet the limit again at the same page.
func readPages(ctx context.Context, try retrier, get func(ctx context.Context, cursor string) (page, error), visit func(slackgo.Message) bool) error {
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
			if !visit(m) {
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

// readChat passes the messages of a chat since the ts oldest to visit, newest first, without the
// replies in threads.
func (c *Channel) readChat(ctx context.Context, try retrier, chat, oldest string, visit func(slackgo.Message) bool) error {
	return readPages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := startCall(ctx)
		defer done()
		r, err := c.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: chat, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, asRepeatable(sendError(err, t))
		}
		return page{r.Messages, r.ResponseMetaData.NextCursor}, nil
	}, visit)
}

// readThread passes the replies of a thread since the ts oldest to visit, and always the thread's
// first message.
func (c *Channel) readThread(ctx context.Context, try retrier, chat, root, oldest string, visit func(slackgo.Message) bool) error {
	return readPages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := startCall(ctx)
		defer done()
		messages, _, next, err := c.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: chat, Timestamp: root, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, asRepeatable(sendError(err, t))
		}
		return page{messages, next}, nil
	}, visit)
}

// Before implements channels.ThreadReader: it returns what was written in a thread before
// a message, as quotes: the first message and the newest ones.
func (c *Channel) Before(ctx context.Context, in bus.Inbound, most int, always bool) ([]bus.Quote, error) {
	if in.At.Thread == "" || in.At.Thread == in.ReplyTo { // the message begins the thread
		return nil, nil
	}
	if _, joined, err := c.joins.Joined(ctx, in.At); !always && (err != nil || joined) {
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
	err = c.readThread(ctx, tryOnce, in.At.Chat, in.At.Thread, "", func(said slackgo.Message) bool {
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
		quotes = append(quotes, bus.Quote{Kind: bus.Earlier, From: c.authorOf(ctx, m), At: parseTS(m.TS), Text: c.typedText(ctx, m, me, false)})
	}
	return quotes, nil
}

// findSpeaker returns the user who wrote the message with which a turn began, or who wrote
// last in the thread; "" if nobody is known. If another process has received that message,
// Slack is asked.
func (c *Channel) findSpeaker(ctx context.Context, me Account, chat, thread, turn string) string {
	if user, heard := c.lastSpeakers.get(threadKey(chat, thread)); heard {
		return user
	}
	ts, ok := strings.CutPrefix(turn, c.messageID(&message{Channel: chat}, me))
	if !ok || !isTS(ts) {
		return "" // no message began the turn
	}
	user := ""
	err := c.readThread(ctx, tryOnce, chat, thread, formatTS(parseTS(ts).Add(-time.Microsecond)), func(said slackgo.Message) bool {
		if said.Timestamp == ts && said.BotID == "" {
			user = said.User
		}
		return said.Timestamp < ts || said.Timestamp == thread && thread != ts
	})
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "it is not known for whom an answer is to grow", slog.Any("error", err))
	}
	if user != "" {
		c.lastSpeakers.put(threadKey(chat, thread), user)
	}
	return user
}

// maxLookBack is how far back FindSent looks. No send is retried for so long.
const maxLookBack = 7 * 24 * time.Hour

// FindSent looks for a sent part by its key, in the history of the chat to which it was to
// go. It returns the message's ts, and whether the part was found.
func (c *Channel) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	chat, err := c.chatID(ctx, to)
	if err != nil {
		return "", false, err
	}
	me, err := c.identity(ctx)
	if err != nil {
		return "", false, err
	}
	f := &partSearch{part: part, me: me.User, thread: threadFor(to, part)}
	oldest := formatTS(time.Now().Add(-maxLookBack))
	if root := threadFor(to, part); root != "" {
		err := c.readThread(ctx, tryOnce, chat, root, oldest, f.examine)
		if err != nil && !isThreadGone(err) {
			return "", false, err
		}
	}
	// If the message that a part belongs to has no thread, Send posts into the chat itself.
	if f.id == "" && to.Thread == "" {
		if err := c.readChat(ctx, tryOnce, chat, oldest, f.examine); err != nil {
			return "", false, err
		}
	}
	if f.id == "" && f.doubtful {
		return "", false, &channels.SendError{Fault: channels.Unknown, Code: "no_key", Err: errors.New("a file was sent with the same text")}
	}
	f.id = cmp.Or(f.id, f.growing)
	return f.id, f.id != "", nil
}

// A partSearch looks for one part among the messages of a history.
type partSearch struct {
	part   channels.Part
	me     string // the user id of the bot
	thread string

	id string
	// growing is the ts of the bot's own last message without a key, if no later one has a key. It
	// may be the part: Slack accepts no key for a growing message.
	growing string
	// doubtful is true if a file of the bot's has the same text and name: it may be the
	// part, because a file carries no key.
	doubtful bool
}

// examine compares one message with the part, and returns false to end the search.
func (f *partSearch) examine(m slackgo.Message) bool {
	if key, ok := m.Metadata.EventPayload["key"].(string); ok && m.Metadata.EventType == partEvent && key == f.part.Key {
		f.id = m.Timestamp
		return false
	}
	if f.part.Growing != nil && m.User == f.me && f.thread != "" && m.Timestamp != f.thread && len(m.Files) == 0 && m.SubType == "" {
		f.growing = ""
		if m.Metadata.EventType == "" {
			f.growing = m.Timestamp
		}
	}
	hasContent := f.part.Text != "" || f.part.File != "" // who looks for a draft knows neither, and a draft is no file
	if hasContent && len(m.Files) > 0 && m.Metadata.EventType == "" && m.User == f.me {
		said := lettersOnly(m.Text)
		named := f.part.File == "" || slices.ContainsFunc(m.Files, func(file slackgo.File) bool { return file.Title == f.part.File })
		f.doubtful = f.doubtful || named && (said == lettersOnly(f.part.Text) || said == lettersOnly(f.part.Plain))
	}
	return true
}

// History implements channels.Historian: it reads the newest messages of a chat or a thread since a
// moment, and reports whether there are older ones.
func (c *Channel) History(ctx context.Context, at bus.Address, since time.Time, most int) ([]channels.Utterance, bool, error) {
	me, err := c.identity(ctx)
	if err != nil {
		return nil, false, err
	}
	oldest := ""
	if !since.IsZero() {
		oldest = formatTS(since)
	}
	r := historyReader{oldest: oldest, most: most, found: map[string]message{}, chat: at.Chat}
	if at.Thread != "" {
		err = c.readThread(ctx, tryOnce, at.Chat, at.Thread, oldest, r.addMessage)
	} else {
		err = c.readChat(ctx, tryOnce, at.Chat, oldest, r.addMessage)
	}
	if err != nil && !errors.Is(err, errTooMuch) {
		return nil, false, err
	}
	for i, root := range r.roots {
		if i == readThreads {
			r.more = true
			break
		}
		t := historyReader{oldest: oldest, most: most, found: r.found, chat: at.Chat}
		if err := c.readThread(ctx, tryOnce, at.Chat, root, oldest, t.addMessage); err != nil && !isThreadGone(err) && !errors.Is(err, errTooMuch) {
			return nil, false, err
		}
	}
	all := slices.SortedFunc(maps.Values(r.found), func(a, b message) int { return cmp.Compare(a.TS, b.TS) })
	if len(all) > most {
		r.more, all = true, all[len(all)-most:]
	}
	said := make([]channels.Utterance, 0, len(all))
	for _, m := range all {
		said = append(said, c.newUtterance(ctx, &m, me))
	}
	return said, r.more, nil
}

// A historyReader collects the messages of a chat or a thread while its history is read.
type historyReader struct {
	chat   string
	oldest string
	most   int

	found map[string]message
	roots []string // threads in which somebody has written since oldest
	seen  int
	more  bool // there are older messages that were not read
}

// addMessage collects one message, and returns false to end the reading.
func (r *historyReader) addMessage(said slackgo.Message) bool {
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

// newUtterance converts a message into the form in which people read it.
func (c *Channel) newUtterance(ctx context.Context, m *message, me Account) channels.Utterance {
	u := channels.Utterance{At: parseTS(m.TS), Text: strings.TrimSpace(describeFiles(m.Files) + " " + markup.WithEmoji(c.resolveReferences(ctx, m.Text, me)))}
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

// IsIn implements channels.Historian: it reports whether a person is a member of a chat.
func (c *Channel) IsIn(ctx context.Context, chat, person string) (bool, error) {
	_, user, _ := strings.Cut(person, ":")
	cursor := ""
	for range membersPages {
		ctx, t, done := startCall(ctx)
		users, next, err := c.api.GetUsersInConversationContext(ctx, &slackgo.GetUsersInConversationParameters{ChannelID: chat, Cursor: cursor, Limit: 1000})
		done()
		if err != nil {
			return false, asRepeatable(sendError(err, t))
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

// FindChat implements channels.Historian: it returns the id of the channel with that id or
// name, with or without #; "" if there is none.
func (c *Channel) FindChat(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "#")
	cursor := ""
	for range maxPages {
		ctx, t, done := startCall(ctx)
		page, next, err := c.api.GetConversationsForUserContext(ctx, &slackgo.GetConversationsForUserParameters{
			Cursor: cursor, Limit: pageSize, ExcludeArchived: true, Types: []string{"public_channel", "private_channel", "mpim", "im"},
		})
		done()
		if err != nil {
			return "", asRepeatable(sendError(err, t))
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
