package sqlitebus

// Keys lists what is kept for single keys, in memory and on disk.
func (b *Bus) Keys() (keys []string, err error) {
	b.sched.mu.Lock()
	for _, t := range b.sched.topics {
		for key := range t.boxes {
			keys = append(keys, "memory: "+string(t.name)+" "+key)
		}
	}
	b.sched.mu.Unlock()
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

// Alarms counts what waits for a time.
func (b *Bus) Alarms() int {
	b.sched.mu.Lock()
	defer b.sched.mu.Unlock()
	return len(b.sched.alarms)
}

// Reserved is the number below which every fence is, as a crash would leave it.
func (b *Bus) Reserved() (n int64, err error) {
	err = b.db.Read.QueryRow(getMeta, metaClock).Scan(&n)
	return n, err
}
