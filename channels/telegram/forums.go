package telegram

import "sync"

// forums are the groups with topics from which this process has received messages.
type forums struct {
	mu    sync.Mutex
	known map[int64]bool
}

// maxForums is the maximum number of groups that are remembered.
const maxForums = 4096

// add remembers a group with topics. If it already knows maxForums, it forgets them first.
func (f *forums) add(chat int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxForums {
		f.known = map[int64]bool{}
	}
	f.known[chat] = true
}

// has reports whether a group is known to have topics.
func (f *forums) has(chat int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[chat]
}
