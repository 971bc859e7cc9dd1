package redisbus

import (
	"encoding/json"

	"parley/bus"
)

// wireEvent is the form in which an event is stored in Redis, as JSON. An empty text takes the place of
// dropped events and tells subscribers that they have missed some.
type wireEvent struct {
	Type    string      `json:"type"`
	Session string      `json:"session,omitempty"`
	Route   bus.Address `json:"route,omitzero"`
	bus.Event
}

func decodeEvent(id uint64, text string) (bus.Event, error) {
	var w wireEvent
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return bus.Event{}, err
	}
	e := w.Event
	e.ID, e.Type, e.Session, e.Route = id, w.Type, w.Session, w.Route
	return e, nil
}
