package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/sessions/schedules"
)

// Schedules holds what people have told the agent to do at a later time.
type Schedules interface {
	// List returns the schedules of a session, or all if session is "".
	List(ctx context.Context, session string) ([]schedules.Schedule, error)
	// Remove removes a schedule; its error is schedules.ErrNone if there is none of
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

// planned serves what people have told the agent to do at later times.
type planned struct{ Schedules }

// list answers with what people have told the agent to do at later times.
func (p planned) list(w *exchange.Answer, r *http.Request) error {
	found, err := p.List(r.Context(), r.URL.Query().Get("session"))
	if err != nil {
		return err
	}
	list := []Schedule{}
	for _, s := range found {
		list = append(list, Schedule{s.ID, s.When, s.Text, s.DueSince().UTC(), s.Zone, s.Session, s.Person, s.Made.UTC()})
	}
	return w.JSON(http.StatusOK, struct {
		Schedules []Schedule `json:"schedules"`
	}{list})
}

// cancel removes a schedule.
func (p planned) cancel(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	err := p.Remove(r.Context(), w.ID)
	if errors.Is(err, schedules.ErrNone) {
		return exchange.NotFound("there is no such schedule: parley schedule list, or GET /v1/schedules, lists those that there are")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
