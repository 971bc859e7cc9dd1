package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
)

// Mail shows the messages that wait and the dead letters.
type Mail interface {
	bus.Inspector
	bus.DeadLetters
}

// A deadLetter describes, in the API's JSON, a message that was given up. It has the message
// itself only if a single one is asked for.
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

// deadLetters serves the messages that were given up.
type deadLetters struct{ mail Mail }

// list lists the dead letters of one topic or of all.
func (l deadLetters) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	topics := []bus.Topic{bus.Topic(q.Get("topic"))}
	if topics[0] == "" {
		if q.Get("after") != "" {
			return exchange.BadRequest("bad_query", "after needs a topic")
		}
		if topics, err = l.mail.Topics(r.Context()); err != nil {
			return err
		}
	}
	page := struct {
		Letters []deadLetter `json:"letters"`
		Next    string       `json:"next,omitempty"` // after, with a topic
		More    bool         `json:"more"`
	}{Letters: []deadLetter{}}
	for _, t := range topics {
		found, err := l.mail.DeadLetters(r.Context(), t, q.Get("after"), limit+1-len(page.Letters))
		if err != nil {
			return err
		}
		for _, d := range found {
			page.Letters = append(page.Letters, deadLetterOf(d))
		}
		if n := limit; len(page.Letters) > n {
			page.Letters, page.More = page.Letters[:n], true
			if q.Get("topic") != "" {
				page.Next = page.Letters[n-1].ID
			}
			break
		}
	}
	return w.JSON(http.StatusOK, page)
}

var errNoLetter = errors.New("no such dead letter")

// deadLetterPath returns the topic and the id of the dead letter in a request's path.
func deadLetterPath(w *exchange.Answer, r *http.Request) (topic bus.Topic, id string) {
	w.ID = r.PathValue("id")
	w.Subject = w.ID
	return bus.Topic(r.PathValue("topic")), w.ID
}

// asNotFound returns a "not found" for the caller if err says that a dead letter does not exist;
// any other error it returns as it is.
func asNotFound(err error) error {
	if errors.Is(err, bus.ErrNotFound) || errors.Is(err, errNoLetter) {
		return exchange.NotFound("there is no such dead letter; mind that topic and id are percent-encoded in a path")
	}
	return err
}

// show answers with one dead letter and its message.
func (l deadLetters) show(w *exchange.Answer, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	after := ""
	for {
		found, err := l.mail.DeadLetters(r.Context(), topic, after, exchange.PageDefault)
		if err != nil {
			return err
		}
		for _, d := range found {
			if d.Message.ID == id {
				one := deadLetterOf(d)
				if one.Message = d.Message.Body; !json.Valid(one.Message) {
					one.Message = nil
				}
				return w.JSON(http.StatusOK, one)
			}
			after = d.Message.ID
		}
		if len(found) < exchange.PageDefault {
			return asNotFound(errNoLetter)
		}
	}
}

// drop deletes a dead letter.
func (l deadLetters) drop(w *exchange.Answer, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	if err := l.mail.Drop(r.Context(), topic, id); err != nil {
		return asNotFound(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// replay publishes a dead letter again, so that it is answered or sent after all.
func (l deadLetters) replay(w *exchange.Answer, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	again, err := l.mail.Replay(r.Context(), topic, id)
	if err != nil {
		return asNotFound(err)
	}
	return w.JSON(http.StatusAccepted, struct {
		ID string `json:"id"`
	}{again})
}
