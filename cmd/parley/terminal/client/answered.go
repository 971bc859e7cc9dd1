package client

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"parley/sessions"
)

// lookAgain is how long AwaitAnswer waits before it checks again whether something was answered.
const lookAgain = 500 * time.Millisecond

// AwaitAnswer waits until the server has answered a message on a channel. If no server is running yet, it waits for
// one. Its error is ctx's.
func (c *Client) AwaitAnswer(ctx context.Context, channel string) error {
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
		if ok, err := c.hasAnswered(ctx, channel, began); err == nil && ok {
			return nil
		}
	}
}

// hasAnswered reports whether a conversation on a channel contains an answer that was sent since a time.
func (c *Client) hasAnswered(ctx context.Context, channel string, since time.Time) (bool, error) {
	var list struct {
		Sessions []sessions.Info `json:"sessions"`
	}
	if err := c.Get(ctx, "/v1/sessions", &list); err != nil {
		return false, fmt.Errorf("look for answers: %w", err)
	}
	for _, s := range list.Sessions {
		if parts := strings.Split(s.Key, ":"); len(parts) < 3 || parts[1] != channel || s.Updated.Before(since) {
			continue
		}
		var one struct {
			Entries []sessions.Entry `json:"entries"`
		}
		if err := c.Get(ctx, "/v1/sessions/"+url.PathEscape(s.Key), &one); err != nil {
			return false, fmt.Errorf("look for answers: %w", err)
		}
		for _, e := range one.Entries {
			if e.Kind == sessions.KindPublished && !e.At.Before(since) {
				return true, nil
			}
		}
	}
	return false, nil
}
