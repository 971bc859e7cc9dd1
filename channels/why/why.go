// Package why says what happened to a message, step by step, from its arrival to the answer that was sent.
//
// It stores nothing of its own: it reads session logs, the book, records of refusals, and dead letters. It
// reports ids, tool names, times, and codes, never what anybody said or wrote.
//
// why.go finds the messages that a question is about; story.go covers one message; course.go reads the turn
// that answers it; texts.go contains the texts for rules and outcomes.
package why

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions"
)

// Config says where to read what became of messages.
type Config struct {
	Sessions Sessions
	Book     Book
	Mail     Mail
	Refusals func(ctx context.Context, q sessions.AuditQuery) ([]sessions.AuditRecord, error)
	Agents   func() []string      // the names of all agents
	KeptFor  func() time.Duration // how long conversations are kept; 0 means forever
}

// Sessions is the part of the session store that is read.
type Sessions interface {
	sessions.Reader
	sessions.Finder
}

// Book is the part of the channels' book that is read.
type Book interface {
	Lookup(ctx context.Context, id string) (channels.Send, error)
	Submission(ctx context.Context, id string) (channels.Submission, error)
	LookupAsk(ctx context.Context, id string) (bus.Ask, error)
	// ChatOfThread returns the chat that contains the thread with that id; "" if none is known.
	ChatOfThread(ctx context.Context, channel, thread string) (chat string, err error)
}

// Mail is the part of the bus that is read.
type Mail interface {
	bus.Inspector
	bus.DeadLetters
}

// A Why says what became of messages.
type Why struct{ cfg Config }

// New makes a Why.
func New(cfg Config) *Why { return &Why{cfg} }

// What a question can be about.
const (
	aboutMessage = "message"
	aboutSession = "session"
	aboutChat    = "chat"
	aboutPerson  = "person"
)

// A Report says what became of a message, or of the newest messages in a session, in a chat or from a person.
type Report struct {
	About    string  `json:"about"` // message, session, chat or person
	ID       string  `json:"id"`
	Messages []Story `json:"messages"` // the newest first
	// Hints say, if nothing is known, what is kept for how long, and what to check.
	Hints []string `json:"hints,omitempty"`
}

// maxReported is how many messages in a session or a chat are reported.
const maxReported = 5

// Tell says what became of the message with that id, or of the newest messages in the session with that key or in
// the chat at that address; if nothing is known about such a chat, of the newest messages from the person with that
// id.
func (y *Why) Tell(ctx context.Context, id string) (Report, error) {
	return (&query{cfg: y.cfg}).tell(ctx, id)
}

// A query is one question, with the dead letters that were read for it: nil if they weren't.
type query struct {
	cfg     Config
	letters []bus.DeadLetter
}

// tell does the work of Tell.
func (q *query) tell(ctx context.Context, id string) (Report, error) {
	told := Report{About: aboutMessage, ID: id, Messages: []Story{}}
	_, err := q.cfg.Sessions.Info(ctx, id)
	switch at, bad := bus.ParseAddress(id); {
	case err == nil:
		told.About = aboutSession
		told.Messages, err = q.ofSession(ctx, id)
	case !errors.Is(err, sessions.ErrNotFound):
		return told, err
	case bad == nil && !strings.Contains(at.Chat, ":") && !strings.Contains(id, "#"):
		told.About = aboutChat
		if told.Messages, err = q.ofChat(ctx, at); err == nil && len(told.Messages) == 0 {
			if told.Messages, err = q.ofPerson(ctx, id); len(told.Messages) > 0 {
				told.About = aboutPerson
			}
		}
	default:
		var one Story
		one, err = q.ofMessage(ctx, id)
		if len(one.Steps) > 0 {
			told.Messages = append(told.Messages, one)
		}
	}
	if err != nil {
		return told, err
	}
	if len(told.Messages) == 0 {
		told.Messages, told.Hints = []Story{}, q.hints(told.About)
	}
	return told, nil
}

// ofPerson reports on the newest messages from a person, in the sessions in which they last spoke, and on those
// that were refused.
func (q *query) ofPerson(ctx context.Context, person string) (all []Story, err error) {
	recent, err := q.cfg.Sessions.Recent(ctx, sessions.SessionQuery{Person: person, Limit: maxReported})
	if err != nil {
		return nil, err
	}
	for _, one := range recent.Sessions {
		said, err := q.messagesIn(ctx, one.Key, person)
		if err != nil {
			return nil, err
		}
		all = append(all, said...)
	}
	refused, err := q.refusals(ctx, sessions.AuditQuery{Person: person})
	return firstPerMessage(append(all, refused...)), err
}

// ofSession reports on the newest messages in a session, on those that were refused, and on its dead letters.
func (q *query) ofSession(ctx context.Context, key string) ([]Story, error) {
	said, err := q.messagesIn(ctx, key, "")
	if err != nil {
		return nil, err
	}
	refused, err := q.refusals(ctx, sessions.AuditQuery{Session: key})
	if err != nil {
		return nil, err
	}
	buried, err := q.buried(ctx, key)
	if err != nil {
		return nil, err
	}
	return firstPerMessage(slices.Concat(said, refused, buried)), nil
}

// ofChat reports on the newest messages at an address, in all sessions there.
func (q *query) ofChat(ctx context.Context, at bus.Address) (all []Story, err error) {
	for _, agent := range q.cfg.Agents() {
		place, err := sessions.Key(agent, at.Channel, at.Chat, at.Thread)
		if err != nil {
			continue // no session can be there
		}
		recent, err := q.cfg.Sessions.RecentIn(ctx, place, maxReported)
		if err != nil {
			return nil, err
		}
		for _, one := range recent {
			said, err := q.ofSession(ctx, one.Key)
			if err != nil {
				return nil, err
			}
			all = append(all, said...)
		}
	}
	refused, err := q.refusals(ctx, sessions.AuditQuery{Place: at.String()})
	return firstPerMessage(append(all, refused...)), err
}

// firstPerMessage returns the newest of some stories, for each message only the first one.
func firstPerMessage(all []Story) (first []Story) {
	for _, s := range all {
		if !slices.ContainsFunc(first, func(known Story) bool { return known.Message == s.Message }) {
			first = append(first, s)
		}
	}
	slices.SortStableFunc(first, func(a, b Story) int { return b.arrivedAt().Compare(a.arrivedAt()) })
	return first[:min(len(first), maxReported)]
}

// entriesSearched is how many entries at the end of a session's log are searched for messages.
const entriesSearched = 300

// messagesIn reports on the newest messages in a session's log, or only those from one person if that is not "".
func (q *query) messagesIn(ctx context.Context, key, person string) (all []Story, err error) {
	info, err := q.cfg.Sessions.Info(ctx, key)
	if err != nil {
		return nil, err
	}
	var said []sessions.Entry
	for e, err := range q.cfg.Sessions.Read(ctx, key, max(1, info.LastEntry-entriesSearched+1)) {
		if err != nil {
			return nil, err
		}
		if e.Cause != "" && (person == "" || e.Person == person) && (e.Kind == sessions.KindUser || e.Kind == sessions.KindCommand) {
			e.Data = nil
			said = append(said, e)
		}
	}
	for _, e := range said[max(0, len(said)-maxReported):] {
		s := Story{Message: e.Cause}
		if err := q.follow(ctx, &s, key); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// hints say what is kept for how long, and what to check if nothing is known.
func (q *query) hints(about string) []string {
	kept := textKeptForever
	if days := int(q.cfg.KeptFor() / (24 * time.Hour)); days > 0 {
		kept = textKeptFor + countInWords(days, "day")
	}
	what := map[string]string{
		aboutMessage: textNoMessage,
		aboutChat:    textNoMessagesThere,
		aboutSession: textNoMessagesHere,
	}
	return []string{
		what[about],
		kept + textRefusalsKept(countInWords(int(sessions.RefusalLifetime/time.Hour), "hour")),
		textNeverDelivered,
	}
}

// chatOfMessageID returns the channel and the chat in the id of a platform's message, CHANNEL:ACCOUNT:CHAT:MESSAGE; false for
// any other id.
func chatOfMessageID(id string) (channel, chat string, ok bool) {
	parts := strings.SplitN(id, ":", 4)
	if len(parts) < 4 {
		return "", "", false
	}
	return parts[0], parts[2], true
}

// find returns the key of the session that knows a message; "" if none does.
func (q *query) find(ctx context.Context, id string, at []bus.Address) (string, error) {
	channel, chat, ok := chatOfMessageID(id)
	if ok {
		at = append(at, bus.Address{Channel: channel, Chat: chat})
	}
	key, err := q.findAt(ctx, id, at)
	if err != nil || key != "" || !ok {
		return key, err
	}
	within, err := q.cfg.Book.ChatOfThread(ctx, channel, chat) // on Discord a thread's id is also its place's id
	if err != nil || within == "" {
		return "", err
	}
	return q.findAt(ctx, id, []bus.Address{{Channel: channel, Chat: within, Thread: chat}})
}

// findAt returns the key of the session at one of these addresses that knows a message; "" if none does.
func (q *query) findAt(ctx context.Context, id string, at []bus.Address) (string, error) {
	for _, a := range at {
		for _, agent := range q.cfg.Agents() {
			key, err := sessions.Key(agent, a.Channel, a.Chat, a.Thread)
			if err != nil {
				continue // no session can be there
			}
			key, err = q.cfg.Sessions.FindIn(ctx, key, id)
			if err == nil || !errors.Is(err, sessions.ErrNotFound) {
				return key, err
			}
		}
	}
	return "", nil
}

// refusals reports on the newest refused messages that match a query.
func (q *query) refusals(ctx context.Context, of sessions.AuditQuery) (all []Story, err error) {
	of.Kind, of.Newest, of.Limit = sessions.AuditRefusal, true, maxReported
	found, err := q.cfg.Refusals(ctx, of)
	for _, r := range found {
		id := cmp.Or(of.Message, r.Turn)
		if id == "" && len(r.Messages) > 0 {
			id = r.Messages[len(r.Messages)-1]
		}
		s := Story{Message: id}
		s.refuse(r)
		all = append(all, s)
	}
	return all, err
}

// maxDeadLetters is how many dead letters are searched for those of a session, and lettersPerPage how many are read at once.
const (
	maxDeadLetters = 2000
	lettersPerPage = 100
)

// deadLetters returns the newest dead letters among the inbound messages, about maxDeadLetters, the newest first,
// without their bodies. They are read once for each question.
func (q *query) deadLetters(ctx context.Context) ([]bus.DeadLetter, error) {
	if q.letters != nil {
		return q.letters, nil
	}
	all := []bus.DeadLetter{}
	for before := ""; len(all) < maxDeadLetters; {
		page, err := q.cfg.Mail.NewestDeadLetters(ctx, bus.InboundTopic, before, lettersPerPage)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			d.Message.Body = nil
			all = append(all, d)
			before = d.Message.ID
		}
		if len(page) < lettersPerPage {
			break
		}
	}
	q.letters = all
	return all, nil
}

// deadLetter returns the dead letter with an id, and whether there is one.
func (q *query) deadLetter(ctx context.Context, topic bus.Topic, id string) (bus.DeadLetter, bool, error) {
	d, err := q.cfg.Mail.DeadLetter(ctx, topic, id)
	if errors.Is(err, bus.ErrNotFound) {
		return d, false, nil
	}
	return d, err == nil, err
}
