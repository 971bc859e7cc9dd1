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

// maxUnits is the maximum length of a message's text, in UTF-16 units.
const maxUnits = 2000

// route passes a call to the handler for its path and method. parts are the path's segments, and channel is the
// channel that it names ("" if none).
func (s *Server) route(w http.ResponseWriter, r *http.Request, parts []string, channel string) {
	call := r.Method + " " + parts[len(parts)-1]
	switch {
	case r.URL.Path == "/api/v9/users/@me" && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, bot())
	case r.URL.Path == "/api/v9/applications/@me" && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, map[string]any{"id": Bot, "name": "Parley", "flags": s.gateway.applicationFlags()})
	case r.URL.Path == "/api/v9/users/@me/guilds" && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, s.listGuilds())
	case r.URL.Path == "/api/v9/gateway/bot" && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, s.gateway.describe(r.Host))
	case parts[0] == "guilds" && len(parts) > 1 && r.Method == http.MethodGet:
		s.getGuild(w, parts)
	case parts[0] == "channels" && len(parts) == 2 && r.Method == http.MethodGet:
		s.getPlace(w, parts[1])
	case parts[0] == "interactions" && len(parts) == 4 && r.Method == http.MethodPost:
		s.answerInteraction(w, r, parts[1], parts[2])
	case parts[0] == "webhooks" && len(parts) == 5 && r.Method == http.MethodPatch:
		s.editInteractionAnswer(w, r, parts[2])
	case parts[0] == "applications" && parts[len(parts)-1] == "commands":
		s.commands(w, r)
	case channel == "":
		writeError(w, http.StatusNotFound, 0, "404: Not Found")
	case call == "POST messages":
		s.create(w, r, channel)
	case call == "POST typing":
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut && len(parts) == 7 && parts[4] == "reactions":
		s.react(w, channel, parts[3], parts[5])
	case r.Method == http.MethodGet && len(parts) == 4 && parts[2] == "messages":
		s.getMessage(w, channel, parts[3])
	case call == "GET messages":
		s.list(w, r, channel)
	case r.Method == http.MethodPatch && len(parts) == 4:
		s.edit(w, r, channel, parts[3])
	default:
		writeError(w, http.StatusMethodNotAllowed, 0, "405: Method Not Allowed")
	}
}

// A mentionPolicy says which of the users and roles that a text names are notified.
type mentionPolicy struct {
	Allowed *struct {
		Parse   []string `json:"parse"`
		Users   []string `json:"users"`
		Roles   []string `json:"roles"`
		Replied bool     `json:"replied_user"`
	} `json:"allowed_mentions"`
}

// allowsMentions reports whether anybody may be notified. If the list is null or missing, everybody is.
func (m mentionPolicy) allowsMentions() bool {
	a := m.Allowed
	return a == nil || a.Parse == nil || len(a.Parse)+len(a.Users)+len(a.Roles) > 0 || a.Replied
}

// A messageRequest is the JSON that a message is made from.
type messageRequest struct {
	Content string `json:"content"`
	Nonce   string `json:"nonce"`
	Enforce bool   `json:"enforce_nonce"`
	mentionPolicy
	Flags     int    `json:"flags"`
	Rows      *[]row `json:"components"`
	Reference *struct {
		ID       string `json:"message_id"`
		OrRefuse *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// readMessage reads a message from a request, as JSON or as a form with a file.
func readMessage(r *http.Request) (m Message, req messageRequest, err error) {
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
	m.Text, m.Nonce, m.nonceEnforced, m.Flags = req.Content, req.Nonce, req.Enforce, req.Flags
	if req.Rows != nil {
		var formed bool
		if m.Buttons, formed = buttons(*req.Rows); !formed && err == nil {
			err = errors.New("ill-formed components")
		}
	}
	m.NotifiesPeople = req.allowsMentions()
	return m, req, err
}

// refusalCode returns the code with which Discord refuses a message; 0 if it accepts the message.
func (m Message) refusalCode() int {
	units := 0
	for _, r := range m.Text {
		units += utf16.RuneLen(r)
	}
	switch {
	case units > maxUnits, len(m.Nonce) > 25:
		return 50035
	case strings.TrimSpace(m.Text) == "" && m.File == "":
		return 50006
	}
	return 0
}

// create answers POST messages: it stores one of the bot's messages, or returns the older one with the same
// enforced nonce.
func (s *Server) create(w http.ResponseWriter, r *http.Request, channel string) {
	m, req, err := readMessage(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
		return
	}
	if code := m.refusalCode(); code != 0 {
		writeError(w, http.StatusBadRequest, code, "Invalid Form Body")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.messages[channel]
	if m.nonceEnforced {
		if i := slices.IndexFunc(all, func(old *Message) bool { return old.Author == Bot && old.Nonce == m.Nonce }); i >= 0 {
			writeJSON(w, http.StatusOK, s.messageJSON(all[i]))
			return
		}
	}
	if ref := req.Reference; ref != nil {
		known := slices.ContainsFunc(all, func(old *Message) bool { return old.ID == ref.ID })
		if !known && (ref.OrRefuse == nil || *ref.OrRefuse) {
			writeError(w, http.StatusBadRequest, 50035, "Unknown message")
			return
		}
		m.ReplyTo = ref.ID
	}
	m.Channel, m.Author = channel, Bot
	s.store(&m)
	s.sends++
	writeJSON(w, http.StatusOK, s.messageJSON(&m))
	s.gateway.announce("MESSAGE_CREATE", s.eventJSON(&m))
}

// store gives a message its id and keeps it. The caller holds s.mu.
func (s *Server) store(m *Message) {
	m.ID, m.At = s.newID(), time.Now()
	m.Changed = m.At
	s.messages[m.Channel] = append(s.messages[m.Channel], m)
	if p, ok := s.places[m.Channel]; ok {
		p.NewestMessage = m.ID
		s.places[m.Channel] = p
	}
	close(s.wake)
	s.wake = make(chan struct{})
}

// newID returns an id for an object that is created now, higher than all earlier ones. The caller holds s.mu.
func (s *Server) newID() string {
	s.lastID = max(s.lastID+1, uint64(time.Now().UnixMilli()-discordEpoch)<<22)
	return strconv.FormatUint(s.lastID, 10)
}

// discordEpoch is the time from which Discord's ids count, in milliseconds since 1970.
const discordEpoch = 1420070400000

// list answers GET messages with a page of a channel's history, newest message first.
func (s *Server) list(w http.ResponseWriter, r *http.Request, channel string) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		limit = 50
	}
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64) // 0 means the same as none
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hidden[channel] {
		writeError(w, http.StatusForbidden, 50001, "Missing Access")
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
	slices.Reverse(all) // newest first, as always
	list := []map[string]any{}
	for _, m := range all[:min(limit, len(all))] {
		one := s.messageJSON(m)
		if !s.ShowNonces {
			delete(one, "nonce")
		}
		list = append(list, one)
	}
	writeJSON(w, http.StatusOK, list)
}

// edit answers PATCH of a message: it replaces the text, and the buttons if any are given.
func (s *Server) edit(w http.ResponseWriter, r *http.Request, channel, id string) {
	now, req, err := readMessage(r)
	if code := now.refusalCode(); err != nil || code != 0 {
		writeError(w, http.StatusBadRequest, code, "Invalid Form Body")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	if m == nil {
		writeError(w, http.StatusNotFound, 10008, "Unknown Message")
		return
	}
	m.Text, m.Flags, m.NotifiesPeople = now.Text, now.Flags, now.NotifiesPeople
	if req.Rows != nil { // otherwise it keeps those that it has
		m.Buttons = now.Buttons
	}
	m.Edits++
	m.Changed = time.Now()
	writeJSON(w, http.StatusOK, s.messageJSON(m))
}

// find returns the message with that id; nil if there is none. The caller holds s.mu.
func (s *Server) find(channel, id string) *Message {
	i := slices.IndexFunc(s.messages[channel], func(m *Message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return s.messages[channel][i]
}

// writeJSON answers a call with a status and a result.
func writeJSON(w http.ResponseWriter, status int, result any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result) // the caller may be gone
}

// writeError answers a call with a status and Discord's JSON error.
func writeError(w http.ResponseWriter, status, code int, text string) {
	writeJSON(w, status, map[string]any{"message": text, "code": code})
}
