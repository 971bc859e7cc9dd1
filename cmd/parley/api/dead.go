package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"parley/bus"
)

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

// listDead lists the dead letters of one topic or of all.
func (a *API) listDead(w *response, r *http.Request) error {
	limit, err := queryNumber(r, "limit", pageDefault, pageMost)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	topics := []bus.Topic{bus.Topic(q.Get("topic"))}
	if topics[0] == "" {
		if q.Get("after") != "" {
			return badRequest("bad_query", "after needs a topic")
		}
		if topics, err = a.cfg.Mail.Topics(r.Context()); err != nil {
			return err
		}
	}
	page := struct {
		Letters []deadLetter `json:"letters"`
		Next    string       `json:"next,omitempty"` // after, with a topic
		More    bool         `json:"more"`
	}{Letters: []deadLetter{}}
	for _, t := range topics {
		found, err := a.cfg.Mail.DeadLetters(r.Context(), t, q.Get("after"), int(limit)+1-len(page.Letters))
		if err != nil {
			return err
		}
		for _, d := range found {
			page.Letters = append(page.Letters, deadLetterOf(d))
		}
		if n := int(limit); len(page.Letters) > n {
			page.Letters, page.More = page.Letters[:n], true
			if q.Get("topic") != "" {
				page.Next = page.Letters[n-1].ID
			}
			break
		}
	}
	return w.json(http.StatusOK, page)
}

var errNoLetter = errors.New("no such dead letter")

// deadLetterPath returns the topic and the id of the dead letter in a request's path.
func deadLetterPath(w *response, r *http.Request) (topic bus.Topic, id string) {
	w.id = r.PathValue("id")
	w.auditSubject = w.id
	return bus.Topic(r.PathValue("topic")), w.id
}

// asNotFound returns a "not found" for the caller if err says that a dead letter does not exist;
// any other error it returns as it is.
func asNotFound(err error) error {
	if errors.Is(err, bus.ErrNotFound) || errors.Is(err, errNoLetter) {
		return notFound("there is no such dead letter; mind that topic and id are percent-encoded in a path")
	}
	return err
}

// showDead answers with one dead letter and its message.
func (a *API) showDead(w *response, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	after := ""
	for {
		found, err := a.cfg.Mail.DeadLetters(r.Context(), topic, after, pageDefault)
		if err != nil {
			return err
		}
		for _, d := range found {
			if d.Message.ID == id {
				l := deadLetterOf(d)
				if l.Message = d.Message.Body; !json.Valid(l.Message) {
					l.Message = nil
				}
				return w.json(http.StatusOK, l)
			}
			after = d.Message.ID
		}
		if len(found) < pageDefault {
			return asNotFound(errNoLetter)
		}
	}
}

// dropDead deletes a dead letter.
func (a *API) dropDead(w *response, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	if err := a.cfg.Mail.Drop(r.Context(), topic, id); err != nil {
		return asNotFound(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// replayDead publishes a dead letter again, so that it is answered or sent after all.
func (a *API) replayDead(w *response, r *http.Request) error {
	topic, id := deadLetterPath(w, r)
	again, err := a.cfg.Mail.Replay(r.Context(), topic, id)
	if err != nil {
		return asNotFound(err)
	}
	return w.json(http.StatusAccepted, struct {
		ID string `json:"id"`
	}{again})
}
