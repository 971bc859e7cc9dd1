package discordtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// mostUnits is how long a text may be, in UTF-16 units.
const mostUnits = 2000

// answer does what a call asks.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, parts []string, channel string) {
	call := r.Method + " " + parts[len(parts)-1]
	switch {
	case r.URL.Path == "/api/v9/users/@me" && r.Method == http.MethodGet:
		answer(w, http.StatusOK, bot())
	case r.URL.Path == "/api/v9/applications/@me" && r.Method == http.MethodGet:
		answer(w, http.StatusOK, map[string]any{"id": Bot, "name": "Parley", "flags": s.gateway.flags()})
	case r.URL.Path == "/api/v9/users/@me/guilds" && r.Method == http.MethodGet:
		answer(w, http.StatusOK, s.guilds())
	case r.URL.Path == "/api/v9/gateway/bot" && r.Method == http.MethodGet:
		answer(w, http.StatusOK, s.gateway.entry(r.Host))
	case parts[0] == "guilds" && len(parts) > 1 && r.Method == http.MethodGet:
		s.tellGuild(w, parts)
	case parts[0] == "channels" && len(parts) == 2 && r.Method == http.MethodGet:
		s.tellPlace(w, parts[1])
	case parts[0] == "interactions" && len(parts) == 4 && r.Method == http.MethodPost:
		s.answerInteraction(w, r, parts[1], parts[2])
	case parts[0] == "webhooks" && len(parts) == 5 && r.Method == http.MethodPatch:
		s.editInteractionAnswer(w, r, parts[2])
	case parts[0] == "applications" && parts[len(parts)-1] == "commands":
		s.commands(w, r)
	case channel == "":
		refuse(w, http.StatusNotFound, 0, "404: Not Found")
	case call == "POST messages":
		s.create(w, r, channel)
	case call == "POST typing":
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut && len(parts) == 7 && parts[4] == "reactions":
		s.react(w, channel, parts[3], parts[5])
	case r.Method == http.MethodGet && len(parts) == 4 && parts[2] == "messages":
		s.tell(w, channel, parts[3])
	case call == "GET messages":
		s.list(w, r, channel)
	case r.Method == http.MethodPatch && len(parts) == 4:
		s.edit(w, r, channel, parts[3])
	default:
		refuse(w, http.StatusMethodNotAllowed, 0, "405: Method Not Allowed")
	}
}

// A called says whom a text may call, of all whom it names.
type called struct {
	Allowed *struct {
		Parse   []string `json:"parse"`
		Users   []string `json:"users"`
		Roles   []string `json:"roles"`
		Replied bool     `json:"replied_user"`
	} `json:"allowed_mentions"`
}

// call tells whether anybody may be called. A list that is null or missing calls
// everybody.
func (m called) call() bool {
	a := m.Allowed
	return a == nil || a.Parse == nil || len(a.Parse)+len(a.Users)+len(a.Roles) > 0 || a.Replied
}

// A request is what a message may be made of.
type request struct {
	Content string `json:"content"`
	Nonce   string `json:"nonce"`
	Enforce bool   `json:"enforce_nonce"`
	called
	Flags     int    `json:"flags"`
	Rows      *[]row `json:"components"`
	Reference *struct {
		ID       string `json:"message_id"`
		OrRefuse *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// read reads a message, as JSON or as a form with a file.
func read(r *http.Request) (m Message, req request, err error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return m, req, fmt.Errorf("type of the body: %w", err)
	}
	if kind == "application/json" {
		err = json.NewDecoder(r.Body).Decode(&req)
	} else {
		form := multipart.NewReader(r.Body, params["boundary"])
		for part, nextErr := form.NextPart(); ; part, nextErr = form.NextPart() {
			if nextErr == io.EOF {
				break
			}
			if nextErr != nil {
				return m, req, fmt.Errorf("form: %w", nextErr)
			}
			if part.FormName() == "payload_json" {
				err = json.NewDecoder(part).Decode(&req)
			} else {
				m.File = part.FileName()
				m.Data, err = io.ReadAll(part)
			}
			if err != nil {
				break
			}
		}
	}
	m.Text, m.Nonce, m.enforced, m.Flags = req.Content, req.Nonce, req.Enforce, req.Flags
	if req.Rows != nil {
		var formed bool
		if m.Buttons, formed = buttons(*req.Rows); !formed && err == nil {
			err = errors.New("ill-formed components")
		}
	}
	m.Calls = req.call()
	return m, req, err
}

// bad is the code of what Discord refuses a message for; 0 is nothing.
func (m Message) bad() int {
	units := 0
	for _, r := range m.Text {
		units += utf16.RuneLen(r)
	}
	switch {
	case units > mostUnits, len(m.Nonce) > 25:
		return 50035
	case strings.TrimSpace(m.Text) == "" && m.File == "":
		return 50006
	}
	return 0
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, channel string) {
	m, req, err := read(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
		return
	}
	if code := m.bad(); code != 0 {
		refuse(w, http.StatusBadRequest, code, "Invalid Form Body")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.messages[channel]
	if m.enforced {
		if i := slices.IndexFunc(all, func(old *Message) bool { return old.Author == Bot && old.Nonce == m.Nonce }); i >= 0 {
			answer(w, http.StatusOK, s.wire(all[i]))
			return
		}
	}
	if ref := req.Reference; ref != nil {
		known := slices.ContainsFunc(all, func(old *Message) bool { return old.ID == ref.ID })
		if !known && (ref.OrRefuse == nil || *ref.OrRefuse) {
			refuse(w, http.StatusBadRequest, 50035, "Unknown message")
			return
		}
		m.ReplyTo = ref.ID
	}
	m.Channel, m.Author = channel, Bot
	s.put(&m)
	s.sends++
	answer(w, http.StatusOK, s.wire(&m))
	s.gateway.announce("MESSAGE_CREATE", s.event(&m))
}

// put gives a message its id and keeps it. s.mu is held.
func (s *Server) put(m *Message) {
	m.ID, m.At = s.newID(), time.Now()
	m.Changed = m.At
	s.messages[m.Channel] = append(s.messages[m.Channel], m)
	if p, ok := s.places[m.Channel]; ok {
		p.Last = m.ID
		s.places[m.Channel] = p
	}
	close(s.wake)
	s.wake = make(chan struct{})
}

// newID is the id of what is made now. s.mu is held.
func (s *Server) newID() string {
	s.lastID = max(s.lastID+1, uint64(time.Now().UnixMilli()-discordEpoch)<<22)
	return strconv.FormatUint(s.lastID, 10)
}

// discordEpoch is where Discord's time begins, in milliseconds since 1970.
const discordEpoch = 1420070400000

func (s *Server) list(w http.ResponseWriter, r *http.Request, channel string) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		limit = 50
	}
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64) // 0 is as good as left out
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hidden[channel] {
		refuse(w, http.StatusForbidden, 50001, "Missing Access")
		return
	}
	all := slices.Clone(s.messages[channel])
	if after > 0 {
		all = slices.DeleteFunc(all, func(m *Message) bool {
			id, _ := strconv.ParseUint(m.ID, 10, 64)
			return id <= after
		})
		all = all[:min(limit, len(all))]
	}
	if before, err := strconv.ParseUint(r.URL.Query().Get("before"), 10, 64); err == nil {
		all = slices.DeleteFunc(all, func(m *Message) bool {
			id, _ := strconv.ParseUint(m.ID, 10, 64)
			return id >= before
		})
	}
	slices.Reverse(all) // the newest first, as always
	list := []map[string]any{}
	for _, m := range all[:min(limit, len(all))] {
		one := s.wire(m)
		if !s.ShowNonces {
			delete(one, "nonce")
		}
		list = append(list, one)
	}
	answer(w, http.StatusOK, list)
}

func (s *Server) edit(w http.ResponseWriter, r *http.Request, channel, id string) {
	now, req, err := read(r)
	if code := now.bad(); err != nil || code != 0 {
		refuse(w, http.StatusBadRequest, code, "Invalid Form Body")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	if m == nil {
		refuse(w, http.StatusNotFound, 10008, "Unknown Message")
		return
	}
	m.Text, m.Flags, m.Calls = now.Text, now.Flags, now.Calls
	if req.Rows != nil { // else it keeps those that it has
		m.Buttons = now.Buttons
	}
	m.Edits++
	m.Changed = time.Now()
	answer(w, http.StatusOK, s.wire(m))
}

// find is the message with that id; nil if there is none. s.mu is held.
func (s *Server) find(channel, id string) *Message {
	i := slices.IndexFunc(s.messages[channel], func(m *Message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return s.messages[channel][i]
}

func answer(w http.ResponseWriter, status int, result any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result) // the caller may be gone
}

func refuse(w http.ResponseWriter, status, code int, text string) {
	answer(w, status, map[string]any{"message": text, "code": code})
}
