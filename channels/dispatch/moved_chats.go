package dispatch

import "sync"

// movedChats remembers the new ids of chats that moved, so that each move costs only one refused send. When it is
// full, it forgets a random entry.
type movedChats struct {
	mu     sync.Mutex
	newIDs map[string]string
}

func newMovedChats() *movedChats { return &movedChats{newIDs: map[string]string{}} }

// current returns the chat's new id if it is known to have moved, and chat itself otherwise.
func (m *movedChats) current(chat string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to, ok := m.newIDs[chat]; ok {
		return to
	}
	return chat
}

func (m *movedChats) set(chat, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.newIDs) >= maxRemembered {
		forgetOne(m.newIDs)
	}
	m.newIDs[chat] = to
}
