package main

import (
	"fmt"
	"time"

	"parley/cmd/parley/config/schema"
)

// A since is the time from which something is shown. It is given as a time or as how long ago it was.
type since struct{ time.Time }

// UnmarshalText parses "2h", "1d12h", "2026-01-31" or "2026-01-31T15:04:05Z". A day begins at midnight local time.
func (s *since) UnmarshalText(text []byte) error {
	if ago, ok := schema.ParseDuration(string(text)); ok && ago > 0 {
		s.Time = time.Now().Add(-ago)
		return nil
	}
	at, err := time.ParseInLocation(time.DateOnly, string(text), time.Local)
	if err != nil {
		at, err = time.Parse(time.RFC3339, string(text))
	}
	if err != nil {
		return fmt.Errorf("%q isn't a time: write how long ago, like 2h or 3d, a day like 2026-01-31, or a time like 2026-01-31T15:04:05Z", text)
	}
	s.Time = at
	return nil
}
