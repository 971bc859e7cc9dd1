package sqlitebus

// Keys returns the keys that have state in memory or on disk.
func (b *Bus) Keys() (keys []string, err error) {
	b.sched.mu.Lock()
	for _, t := range b.sched.topics {
		for key := range t.boxes {
			keys = append(keys, "memory: "+string(t.name)+" "+key)
		}
	}
	b.sched.mu.Unlock()
	b.db.Flush()
	rows, err := b.db.Read.Query("SELECT topic || ' ' || key FROM message")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, "disk: "+key)
	}
	return keys, rows.Err()
}

// Flush waits until settled messages are deleted from the disk.
func (b *Bus) Flush() { b.db.Flush() }

// Deadlines returns how many mailboxes have a deadline.
func (b *Bus) Deadlines() int {
	b.sched.mu.Lock()
	defer b.sched.mu.Unlock()
	return len(b.sched.deadlines)
}

// Reserved returns the number on disk that is greater than every fence.
func (b *Bus) Reserved() (n int64, err error) {
	err = b.db.Read.QueryRow(`SELECT coalesce((SELECT value FROM meta WHERE name = ?), 0)`, metaClock).Scan(&n)
	return n, err
}
