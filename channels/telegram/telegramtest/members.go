package telegramtest

import (
	"slices"
	"strconv"
)

// AddMembers puts users into a group, with a status such as "member" or "restricted".
func (s *Server) AddMembers(chat int64, status string, users ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, user := range users {
		s.members = append(s.members, member{chat, user, status})
	}
}

// RemoveMember removes a user from a group.
func (s *Server) RemoveMember(chat, user int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.chat == chat && m.user == user })
}

// A member is a user in a group.
type member struct {
	chat, user int64
	status     string
}

// getChatMember answers the method with that name. If a group has no members, the call is refused.
func (s *Server) getChatMember(p params) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chat, user := p.intParam("chat_id"), p.intParam("user_id")
	if !slices.ContainsFunc(s.members, func(m member) bool { return m.chat == chat }) {
		return nil, badRequest("chat not found")
	}
	status := "left"
	for _, m := range s.members {
		if m.chat == chat && m.user == user {
			status = m.status
		}
	}
	return []byte(`{"ok":true,"result":{"status":"` + status + `","is_member":true,"user":{"id":` + strconv.FormatInt(user, 10) + `}}}`), nil
}
