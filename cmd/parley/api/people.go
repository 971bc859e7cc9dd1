package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/outbox"
	"parley/cmd/parley/api/exchange"
)

// PeopleStore knows who is admitted to the bot, in which chats they talk to it, and how they rate
// its answers.
type PeopleStore interface {
	channels.Pairings
	channels.Chats
	channels.Ratings
	AllLinks(ctx context.Context) (map[string][]string, error) // see [channels.Links]
}

// A Chat is a chat in which the bot was spoken to, in the API's JSON.
type Chat struct {
	Address string    `json:"address"`
	Session string    `json:"session"`
	Name    string    `json:"name,omitempty"`
	Group   bool      `json:"group"`
	Since   time.Time `json:"since"`
}

// peopleHandler serves the lists of admitted people and of the chats they use, and admits and
// removes people.
type peopleHandler struct {
	book     PeopleStore
	channels func() []string
}

// chats answers with a page of the chats in which the bot was spoken to: those of one channel, or of all.
func (p peopleHandler) chats(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	var after bus.Address
	if text := r.URL.Query().Get("after"); text != "" {
		if after, err = bus.ParseAddress(text); err != nil {
			return exchange.BadRequest("bad_query", `"after" must be the previous page's "next"`)
		}
	}
	found, err := p.book.ChatsAfter(r.Context(), r.URL.Query().Get("channel"), after, limit+1)
	if err != nil {
		return err
	}
	page := struct {
		Chats []Chat `json:"chats"`
		Next  string `json:"next,omitempty"`
	}{Chats: []Chat{}}
	for i, c := range found {
		if i == limit {
			page.Next = page.Chats[i-1].Address
			break
		}
		page.Chats = append(page.Chats, Chat{c.Address.String(), c.Session, c.Name, c.Group, c.Seen})
	}
	return w.JSON(http.StatusOK, page)
}

// A Pairing is a person who is admitted or asks to be, in the API's JSON.
type Pairing struct {
	Person string    `json:"person"`
	Name   string    `json:"name,omitempty"`
	State  string    `json:"state"` // owner, admitted or asks
	Code   string    `json:"code,omitempty"`
	At     time.Time `json:"at"`
	Linked []string  `json:"linked,omitempty"` // other accounts of the same human
}

func pairingOf(p channels.Pairing) Pairing {
	state := "asks"
	switch {
	case p.Owner:
		state = "owner"
	case p.Approved:
		state = "admitted"
	}
	return Pairing{p.Person, p.Name, state, p.Code, p.At, nil}
}

// pairings answers with the people who are admitted to the bot and those who ask to be.
func (p peopleHandler) pairings(w *exchange.Answer, r *http.Request) error {
	found, err := p.book.Pairings(r.Context())
	if err != nil {
		return err
	}
	linked, err := p.book.AllLinks(r.Context())
	if err != nil {
		return err
	}
	list := make([]Pairing, len(found))
	for i, p := range found {
		list[i] = pairingOf(p)
		list[i].Linked = linked[p.Person]
	}
	return w.JSON(http.StatusOK, struct {
		Pairings []Pairing `json:"pairings"`
	}{list})
}

// admit admits the person to whom the bot gave this code when they first wrote to it.
func (p peopleHandler) admit(w *exchange.Answer, r *http.Request) error {
	code, err := w.ReadText(r, "code")
	if err != nil {
		return err
	}
	admitted, err := p.book.Admit(r.Context(), channels.Admission{Code: code})
	if errors.Is(err, channels.ErrNoCode) {
		return exchange.Unprocessable("unknown_code", "no request has this code, or it's older than an hour: ask the person to write to the bot again")
	}
	if err != nil {
		return err
	}
	w.Subject = admitted.Person
	return w.JSON(http.StatusOK, pairingOf(admitted))
}

// revoke withdraws a person's admission to the bot, or their request for one.
func (p peopleHandler) revoke(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("person")
	err := p.book.Revoke(r.Context(), w.ID)
	if errors.Is(err, channels.ErrNoCode) {
		return exchange.NotFound("this person isn't paired")
	}
	if err != nil {
		return err
	}
	w.Subject = w.ID
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// offerOwner creates a code and answers with it. The first person who says it to the bot on that channel becomes its
// owner.
func (p peopleHandler) offerOwner(w *exchange.Answer, r *http.Request) error {
	channel, err := w.ReadText(r, "channel")
	if err != nil {
		return err
	}
	if err := (outbox.Directory{Channels: p.channels()}).CheckChannel(channel); err != nil {
		return err
	}
	code, err := p.book.OfferOwner(r.Context(), channel)
	if err != nil {
		return err
	}
	w.Subject = channel
	return w.JSON(http.StatusOK, struct {
		Code string `json:"code"`
	}{code})
}
