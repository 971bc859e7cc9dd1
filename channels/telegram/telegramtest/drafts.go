package telegramtest

import (
	"slices"
	"strconv"
)

// sendMessageDraft shows a person the draft of an answer, until a message is sent to them.
func (s *Server) sendMessageDraft(p params) ([]byte, error) {
	m, err := p.newMessage(p["text"])
	if err != nil {
		return nil, err
	}
	switch id, err := strconv.ParseInt(p["draft_id"], 10, 32); {
	case err != nil || id == 0:
		return nil, badRequest("DRAFT_ID_INVALID")
	case m.Chat < 0:
		return nil, badRequest("PEER_ID_INVALID")
	case m.Text == "":
		return nil, badRequest("message text is empty")
	case utf16Length(m.Text) > maxTextUnits:
		return nil, badRequest("message is too long")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.findChat(m.Chat)
	c.drafts = append(c.drafts, m.Text)
	return []byte(`{"ok":true,"result":true}`), nil
}

// Drafts returns the texts that have been shown as drafts in a chat since the last message, in order.
func (s *Server) Drafts(chat int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.findChat(chat).drafts)
}
