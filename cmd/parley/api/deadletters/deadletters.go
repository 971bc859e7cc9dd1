// Package deadletters serves the messages that the bot gave up on: it lists, shows, replays and drops them.
package deadletters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// Mail stores the dead letters, and knows their topics; see [bus.Inspector].
type Mail interface {
	Topics(ctx context.Context) ([]bus.Topic, error)
	bus.DeadLetters
}

// A deadLetter describes a dead letter in the API's JSON. It includes the message itself only if a single dead letter
// is requested.
type deadLetter struct {
	Topic    bus.Topic       `json:"topic"`
	ID       string          `json:"id"`
	Key      string          `json:"key"` // its mailbox: an address or a session
	Reason   string          `json:"reason"`
	Attempts int             `json:"attempts"`
	BuriedAt time.Time       `json:"buried_at"`
	Bytes    int             `json:"bytes"`
	Message  json.RawMessage `json:"message,omitempty"`
}

func deadLetterOf(d bus.DeadLetter) deadLetter {
	return deadLetter{d.Topic, d.Message.ID, d.Message.Key, d.Reason, d.Attempts, d.BuriedAt, len(d.Message.Body), nil}
}

// Routes returns the routes for dead letters. Only admins may use them.
func Routes(mail Mail) []exchange.Route {
	l, admin := letters{mail}, exchange.Caller.IsAdmin
	return []exchange.Route{
		{Pattern: "GET /v1/dead-letters", May: admin, Serve: l.list},
		{Pattern: "GET /v1/dead-letters/{topic}/{id}", May: admin, Serve: l.show},
		{Pattern: "DELETE /v1/dead-letters/{topic}/{id}", May: admin, Serve: l.drop, Audit: sessions.AuditReplay, Result: "dropped"},
		{Pattern: "POST /v1/dead-letters/{topic}/{id}/replay", May: admin, Serve: l.replay, Audit: sessions.AuditReplay, Result: "replayed"},
	}
}

// letters serves the dead letters.
type letters struct{ mail Mail }

// maxLettersRead limits how many dead letters of a topic one request reads, for example to find those of one mailbox.
const maxLettersRead = 5000

// A query says which dead letters to list.
type query struct {
	topics   []bus.Topic
	oneTopic bool // whether a single topic was asked for
	after    string
	mailbox  string // a session or an address; "" matches all
	newest   bool
	limit    int
}

// queryOf reads which dead letters a request asks for.
func (l letters) queryOf(r *http.Request) (q query, err error) {
	asked := r.URL.Query()
	q = query{topics: []bus.Topic{bus.Topic(asked.Get("topic"))}, oneTopic: asked.Get("topic") != "", after: asked.Get("after"), mailbox: asked.Get("mailbox")}
	if q.limit, err = exchange.Limit(r); err != nil {
		return q, err
	}
	if q.newest, err = exchange.Newest(r); err != nil || q.oneTopic {
		return q, err
	}
	if q.after != "" {
		return q, exchange.BadRequest("bad_query", `"after" only works with "topic"`)
	}
	q.topics, err = l.mail.Topics(r.Context())
	return q, err
}

// list answers with a page of the dead letters of one topic, or of all topics if none is named. If a mailbox is named,
// it lists only that mailbox's. The oldest come first, topic by topic, unless the newest are asked for.
func (l letters) list(w *exchange.Answer, r *http.Request) error {
	q, err := l.queryOf(r)
	if err != nil {
		return err
	}
	page := struct {
		Letters []deadLetter `json:"letters"`
		Next    string       `json:"next,omitempty"` // the value of after for the next page, with a topic
		More    bool         `json:"more"`
	}{Letters: []deadLetter{}}
	next := ""
	for _, t := range q.topics {
		found, last, err := l.ofTopic(r.Context(), t, q)
		if err != nil {
			return err
		}
		for _, d := range found {
			page.Letters = append(page.Letters, deadLetterOf(d))
		}
		next = last
		page.More = page.More || last != ""
		if !q.newest && len(page.Letters) > q.limit {
			break // the other topics' letters come after these
		}
	}
	if q.newest {
		slices.SortStableFunc(page.Letters, func(a, b deadLetter) int { return b.BuriedAt.Compare(a.BuriedAt) })
	}
	if len(page.Letters) > q.limit { // several topics together have more
		page.Letters, page.More = page.Letters[:q.limit], true
	}
	if q.oneTopic {
		page.Next = next
	}
	return w.JSON(http.StatusOK, page)
}

// ofTopic returns a page of a topic's dead letters. last is the id after which there may be more; "" if there are
// none.
func (l letters) ofTopic(ctx context.Context, t bus.Topic, q query) (found []bus.DeadLetter, last string, err error) {
	read := l.mail.DeadLetters
	if q.newest {
		read = l.mail.NewestDeadLetters
	}
	after, batch := q.after, q.limit+1
	if q.mailbox != "" {
		batch = exchange.MaxPage
	}
	for looked := 0; looked < maxLettersRead; looked += batch {
		some, err := read(ctx, t, after, batch)
		if err != nil {
			return nil, "", err
		}
		for _, d := range some {
			if q.mailbox != "" && d.Message.Key != q.mailbox {
				after = d.Message.ID
				continue
			}
			if len(found) == q.limit {
				return found, after, nil
			}
			found, after = append(found, d), d.Message.ID
		}
		if len(some) < batch {
			return found, "", nil
		}
	}
	return found, after, nil
}

// deadLetterPath returns the topic and the id of the dead letter in a request's path.
func deadLetterPath(w *exchange.Answer, r *http.Request) (topic bus.Topic, id string) {
	w.ID = r.PathValue("id")
	w.Subject = w.ID
	return bus.Topic(r.PathValue("topic")), w.ID
}

// asNotFound returns a "not found" refusal if err says that a dead letter does not exist; it returns any other
// error unchanged.
func asNotFound(err error) error {
	if errors.Is(err, bus.ErrNotFound) {
		return exchange.NotFound("there's no such dead letter; in a path, percent-encode its topic and its id")
	}
	return err
}

// show answers with one dead letter and its message; it leaves out a message that isn't JSON.
func (l letters) show(w *exchange.Answer, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	d, err := l.mail.DeadLetter(r.Context(), topic, id)
	if err != nil {
		return asNotFound(err)
	}
	one := deadLetterOf(d)
	if one.Message = d.Message.Body; !json.Valid(one.Message) {
		one.Message = nil
	}
	return w.JSON(http.StatusOK, one)
}

// drop deletes a dead letter.
func (l letters) drop(w *exchange.Answer, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	if err := l.mail.Drop(r.Context(), topic, id); err != nil {
		return asNotFound(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// replay publishes a dead letter again, so that it is answered or sent after all.
func (l letters) replay(w *exchange.Answer, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	again, err := l.mail.Replay(r.Context(), topic, id)
	if err != nil {
		return asNotFound(err)
	}
	return w.JSON(http.StatusAccepted, struct {
		ID string `json:"id"`
	}{again})
}
