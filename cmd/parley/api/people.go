package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley/channels"
	"parley/cmd/parley/outbox"
	"parley/sessions/schedules"
)

// A Chat is a chat in which the bot was spoken to, in the API's JSON.
type Chat struct {
	Address string    `json:"address"`
	Session string    `json:"session"`
	Name    string    `json:"name,omitempty"`
	Group   bool      `json:"group"`
	Since   time.Time `json:"since"`
}

// listChats lists the chats in which the bot was spoken to.
func (a *API) listChats(w *response, r *http.Request) error {
	found, err := a.cfg.People.Chats(r.Context())
	if err != nil {
		return err
	}
	list := make([]Chat, len(found))
	for i, c := range found {
		list[i] = Chat{c.Address.String(), c.Session, c.Name, c.Group, c.Seen}
	}
	return w.json(http.StatusOK, struct {
		Chats []Chat `json:"chats"`
	}{list})
}

// Schedules holds what people have told the agent to do at a later time.
type Schedules interface {
	// List returns the schedules of a session, or all if session is "".
	List(ctx context.Context, session string) ([]schedules.Schedule, error)
	// Remove removes a schedule; its error is its error is schedules.ErrNone if there is none of
	// that id.
	Remove(ctx context.Context, id string) error
}

// A Schedule is a schedules.Schedule in the API's JSON.
type Schedule struct {
	ID      string    `json:"id"`
	When    string    `json:"when"`
	Text    string    `json:"text"`
	Next    time.Time `json:"next"`
	Zone    string    `json:"time_zone"`
	Session string    `json:"session"`
	Person  string    `json:"person"`
	Made    time.Time `json:"made"`
}

// listSchedules answers with what people have told the agent to do at later times.
func (a *API) listSchedules(w *response, r *http.Request) error {
	found, err := a.cfg.Schedules.List(r.Context(), r.URL.Query().Get("session"))
	if err != nil {
		return err
	}
	list := []Schedule{}
	for _, s := range found {
		list = append(list, Schedule{s.ID, s.When, s.Text, s.DueSince().UTC(), s.Zone, s.Session, s.Person, s.Made.UTC()})
	}
	return w.json(http.StatusOK, struct {
		Schedules []Schedule `json:"schedules"`
	}{list})
}

// cancelSchedule removes a schedule.
func (a *API) cancelSchedule(w *response, r *http.Request) error {
	w.id = r.PathValue("id")
	err := a.cfg.Schedules.Remove(r.Context(), w.id)
	if errors.Is(err, schedules.ErrNone) {
		return notFound("there is no such schedule: parley schedule list, or GET /v1/schedules, lists those that there are")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A Pairing is a person who is admitted or asks to be, in the API's JSON.
type Pairing struct {
	Person string    `json:"person"`
	Name   string    `json:"name,omitempty"`
	State  string    `json:"state"` // owner, admitted or asks
	Code   string    `json:"code,omitempty"`
	At     time.Time `json:"at"`
}

func pairingOf(p channels.Pairing) Pairing {
	state := "asks"
	switch {
	case p.Owner:
		state = "owner"
	case p.Approved:
		state = "admitted"
	}
	return Pairing{p.Person, p.Name, state, p.Code, p.At}
}

// listPairings answers with the people who are admitted to the bot and those who ask to be.
func (a *API) listPairings(w *response, r *http.Request) error {
	found, err := a.cfg.People.Pairings(r.Context())
	if err != nil {
		return err
	}
	list := make([]Pairing, len(found))
	for i, p := range found {
		list[i] = pairingOf(p)
	}
	return w.json(http.StatusOK, struct {
		Pairings []Pairing `json:"pairings"`
	}{list})
}

// readTextField reads a request's body, a JSON object with one text in the field of this name,
// and returns the text.
func (a *API) readTextField(w *response, r *http.Request, name string) (text string, err error) {
	raw, err := a.readJSONBody(w, r, 64<<10)
	if err != nil {
		return "", err
	}
	_, err = decode(raw, field{name, &text, "a text"})
	if err == nil && text == "" {
		err = unprocessable("missing_field", "field %q is missing", name)
	}
	return text, err
}

// approvePairing admits the person to whom the bot gave this code when they first wrote to it.
func (a *API) approvePairing(w *response, r *http.Request) error {
	code, err := a.readTextField(w, r, "code")
	if err != nil {
		return err
	}
	p, err := a.cfg.People.Admit(r.Context(), channels.Admission{Code: code})
	if errors.Is(err, channels.ErrNoCode) {
		return unprocessable("unknown_code", "no request has this code, or it is older than an hour: ask the person to write to the bot again")
	}
	if err != nil {
		return err
	}
	w.auditSubject = p.Person
	return w.json(http.StatusOK, pairingOf(p))
}

// revokePairing takes back a person's admission to the bot, or their request for one.
func (a *API) revokePairing(w *response, r *http.Request) error {
	w.id = r.PathValue("person")
	err := a.cfg.People.Revoke(r.Context(), w.id)
	if errors.Is(err, channels.ErrNoCode) {
		return notFound("this person is not paired")
	}
	if err != nil {
		return err
	}
	w.auditSubject = w.id
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// offerOwner makes a code and answers with it: the first person who says it to the bot on that
// channel becomes its owner.
func (a *API) offerOwner(w *response, r *http.Request) error {
	channel, err := a.readTextField(w, r, "channel")
	if err != nil {
		return err
	}
	if err := (outbox.Directory{Channels: a.cfg.Channels()}).CheckChannel(channel); err != nil {
		return err
	}
	code, err := a.cfg.People.OfferOwner(r.Context(), channel)
	if err != nil {
		return err
	}
	w.auditSubject = channel
	return w.json(http.StatusOK, struct {
		Code string `json:"code"`
	}{code})
}
