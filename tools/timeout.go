package tools

import (
	"encoding/json"
	"time"
)

// The usual bounds of a call: see Spec.
const (
	defaultTimeout    = 10 * time.Second
	defaultMaxTimeout = time.Minute
)

// bounds returns how long a call may take, and the longest time that the model may ask for; 0 if it may not ask.
func (s Spec) bounds() (limit, most time.Duration) {
	limit, most = s.Timeout, s.MaxTimeout
	if limit <= 0 {
		limit = defaultTimeout
	}
	if most == 0 {
		most = max(limit, defaultMaxTimeout)
	}
	return limit, max(most, 0)
}

// TimeoutFor returns how long a call with these arguments may take: the timeout in them, in seconds and within the tool's
// bounds, or else the tool's default.
func (s Spec) TimeoutFor(args json.RawMessage) time.Duration {
	limit, most := s.bounds()
	if most == 0 {
		return limit
	}
	var asked struct {
		Timeout float64 `json:"timeout"`
	}
	if err := json.Unmarshal(args, &asked); err == nil && asked.Timeout > 0 {
		limit = time.Duration(min(asked.Timeout, most.Seconds()) * float64(time.Second))
	}
	return min(limit, most)
}

// LongestTimeout returns how long a call may take, whatever its arguments are.
func (s Spec) LongestTimeout() time.Duration {
	limit, most := s.bounds()
	if most == 0 {
		return limit
	}
	return most
}
