package slack

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack/interaction"
)

const (
	// pageSize is the number of messages in a page, and maxPages the maximum number of pages that are read of one
	// history.
	pageSize = 200
	maxPages = 20
)

// errHistoryTooLong says that a history is too long to be read to the end.
var errHistoryTooLong = errors.New("history is too long")

// histories reads what was written in chats and threads.
type histories struct{ api *slackgo.Client }

// A retrier makes a call, and may repeat it if it fails.
type retrier func(ctx context.Context, call func(context.Context) error) error

// tryOnce is a retrier that never repeats a call, for callers that repeat the whole read.
func tryOnce(ctx context.Context, call func(context.Context) error) error { return call(ctx) }

// A page is one page of a history.
type page struct {
	messages []slackgo.Message
	next     string // Slack's cursor for requesting the next page; "" if this is the last
}

// readPages gets page after page and passes their messages to visit, until the last page or until visit returns
// false. After maxPages pages, it fails with errHistoryTooLong. Each page is retried separately: if the reading started over
// after a rate limit, it would hit the limit again at the same page.
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
	return &channels.SendError{Fault: channels.Unknown, Code: "too_much", Err: errHistoryTooLong}
}

// readChat passes a chat's messages since the ts oldest to visit, newest first, without the replies in threads.
func (h *histories) readChat(ctx context.Context, try retrier, chat, oldest string, visit func(slackgo.Message) bool) error {
	return readPages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := startCall(ctx)
		defer done()
		r, err := h.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: chat, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, asRepeatable(sendError(err, t))
		}
		return page{r.Messages, r.ResponseMetaData.NextCursor}, nil
	}, visit)
}

// readThread passes a thread's replies since the ts oldest to visit, and always the thread's first message too.
func (h *histories) readThread(ctx context.Context, try retrier, chat, root, oldest string, visit func(slackgo.Message) bool) error {
	return readPages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := startCall(ctx)
		defer done()
		messages, _, next, err := h.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: chat, Timestamp: root, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, asRepeatable(sendError(err, t))
		}
		return page{messages, next}, nil
	}, visit)
}

// A historian reads earlier messages, for people and for the model.
type historian struct {
	identity      *identity
	histories     *histories
	translator    *translator
	joinedThreads JoinedThreads
}

// Link implements channels.Linker. Slack's web addresses begin with the workspace's, and those of replies name the
// thread.
func (h *historian) Link(ctx context.Context, at bus.Address, message string) (string, error) {
	parts := strings.Split(message, ":") // in the form that messageID makes
	if len(parts) != 4 || parts[0] != h.translator.name || !isTS(parts[3]) {
		return "", nil
	}
	team, chat, ts := parts[1], parts[2], parts[3]
	me, err := h.identity.current(ctx)
	if err != nil || me.Team != team { // it was said in another workspace, with another token
		return "", err
	}
	link, err := url.Parse(me.URL)
	if err != nil || link.Scheme != "https" || link.Host == "" {
		return "", nil //nolint:nilerr // Slack did not give the workspace's web address
	}
	link = link.JoinPath("archives", chat, "p"+strings.ReplaceAll(ts, ".", ""))
	if isTS(at.Thread) && at.Thread != ts {
		link.RawQuery = url.Values{"thread_ts": {at.Thread}, "cid": {chat}}.Encode()
	}
	return link.String(), nil
}

// MessagesBefore implements channels.ThreadReader: it returns messages that were written in a thread before a given
// message, as quotes: the first one and the newest ones.
func (h *historian) MessagesBefore(ctx context.Context, in bus.Inbound, most int, always bool) ([]bus.Quote, error) {
	if in.At.Thread == "" || in.At.Thread == in.ReplyTo { // the message begins the thread
		return nil, nil
	}
	if _, joined, err := h.joinedThreads.TalkedSince(ctx, in.At); !always && (err != nil || joined) {
		if err != nil {
			return nil, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
		}
		return nil, nil
	}
	me, err := h.identity.current(ctx)
	if err != nil {
		return nil, err
	}
	var all []*message
	err = h.histories.readThread(ctx, tryOnce, in.At.Chat, in.At.Thread, "", func(said slackgo.Message) bool {
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
		quotes = append(quotes, bus.Quote{Kind: bus.Earlier, From: h.translator.authorOf(ctx, m), At: interaction.ParseTS(m.TS), Text: h.translator.typedText(ctx, m, me, false)})
	}
	return quotes, nil
}

// maxThreadsRead is the maximum number of a chat's threads that are read: those that began last.
const maxThreadsRead = 20

// History implements channels.Historian: it reads the newest messages in a chat or a thread since a time, and
// reports whether there are older ones.
func (h *historian) History(ctx context.Context, at bus.Address, since time.Time, most int) ([]channels.Utterance, bool, error) {
	me, err := h.identity.current(ctx)
	if err != nil {
		return nil, false, err
	}
	oldest := ""
	if !since.IsZero() {
		oldest = formatTS(since)
	}
	r := messageCollector{oldest: oldest, limit: most, found: map[string]message{}, chat: at.Chat}
	if at.Thread != "" {
		err = h.histories.readThread(ctx, tryOnce, at.Chat, at.Thread, oldest, r.addMessage)
	} else {
		err = h.histories.readChat(ctx, tryOnce, at.Chat, oldest, r.addMessage)
	}
	if err != nil && !errors.Is(err, errHistoryTooLong) {
		return nil, false, err
	}
	for i, root := range r.activeThreads {
		if i == maxThreadsRead {
			r.hasMore = true
			break
		}
		t := messageCollector{oldest: oldest, limit: most, found: r.found, chat: at.Chat}
		if err := h.histories.readThread(ctx, tryOnce, at.Chat, root, oldest, t.addMessage); err != nil && !isThreadGone(err) && !errors.Is(err, errHistoryTooLong) {
			return nil, false, err
		}
	}
	all := slices.SortedFunc(maps.Values(r.found), func(a, b message) int { return cmp.Compare(a.TS, b.TS) })
	if len(all) > most {
		r.hasMore, all = true, all[len(all)-most:]
	}
	said := make([]channels.Utterance, 0, len(all))
	for _, m := range all {
		said = append(said, h.newUtterance(ctx, &m, me))
	}
	return said, r.hasMore, nil
}

// A messageCollector collects messages while the history of a chat or a thread is read.
type messageCollector struct {
	chat   string
	oldest string
	limit  int

	found         map[string]message
	activeThreads []string // threads in which somebody has written since oldest
	seenCount     int
	hasMore       bool // there are older messages that were not read
}

// addMessage collects one message, and returns false to end the reading.
func (r *messageCollector) addMessage(said slackgo.Message) bool {
	if said.LatestReply > r.oldest && said.ReplyCount > 0 {
		r.activeThreads = append(r.activeThreads, said.Timestamp)
	}
	m := fromHistory(r.chat, said)
	if m.TS <= r.oldest || m.Hidden || m.TS == "" || said.SubType != "" && !slices.Contains([]string{"file_share", "thread_broadcast", "me_message", "bot_message"}, said.SubType) {
		return true
	}
	r.found[m.TS] = m
	if r.seenCount++; r.seenCount > 2*r.limit {
		r.hasMore = true
		return false
	}
	return true
}

// newUtterance converts a message into the form that people read.
func (h *historian) newUtterance(ctx context.Context, m *message, me Account) channels.Utterance {
	u := channels.Utterance{At: interaction.ParseTS(m.TS), Text: strings.TrimSpace(describeFiles(m.Files) + " " + markup.WithEmoji(h.translator.resolveReferences(ctx, m.Text, me)))}
	if m.isReply() {
		u.Thread = m.ThreadTS
	}
	switch {
	case m.User == me.User || m.User == "" && m.BotID == me.Bot:
		u.From = bus.Person{ID: h.translator.name + ":" + me.User, Name: me.Username}
	case m.User != "":
		u.From = bus.Person{ID: h.translator.name + ":" + m.User, Name: cmp.Or(h.translator.people.name(ctx, m.User), m.User)}
	default:
		u.From = bus.Person{Name: "a bot"}
	}
	return u
}
