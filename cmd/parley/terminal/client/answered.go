package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"parley/sessions"
)

// recheckEvery is how long AwaitAnswer waits before it checks again whether something was answered.
const recheckEvery = 500 * time.Millisecond

// AwaitAnswer waits until the server has answered a message on a channel. If no server is running yet, it waits for
// one. Its error is ctx's.
func (c *Client) AwaitAnswer(ctx context.Context, channel string) error {
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(recheckEvery):
		}
		if ok, err := c.hasAnswered(ctx, channel, began); err == nil && ok {
			return nil
		}
	}
}

// hasAnswered reports whether one of the conversations that were used last on a channel contains an answer that was sent
// since a time.
func (c *Client) hasAnswered(ctx context.Context, channel string, since time.Time) (bool, error) {
	var list struct {
		Sessions []sessions.Info `json:"sessions"`
	}
	if err := c.Get(ctx, "/v1/sessions?order=desc&channel="+url.QueryEscape(channel), &list); err != nil {
		return false, fmt.Errorf("look for answers: %w", err)
	}
	for _, s := range list.Sessions {
		if s.Updated.Before(since) {
			continue
		}
		entries, err := c.newestEntries(ctx, s.Key)
		if err != nil {
			return false, fmt.Errorf("look for answers: %w", err)
		}
		for _, e := range entries {
			if e.Kind == sessions.KindPublished && !e.At.Before(since) {
				return true, nil
			}
		}
	}
	return false, nil
}

// newestEntries returns the newest entries of a session: a page of them at most.
func (c *Client) newestEntries(ctx context.Context, key string) ([]sessions.Entry, error) {
	const most = 50 // fewer than a page
	var page struct {
		Entries []sessions.Entry `json:"entries"`
		Last    int64            `json:"last"`
		Next    int64            `json:"next"`
	}
	path := "/v1/sessions/" + url.PathEscape(key)
	if err := c.Get(ctx, path, &page); err != nil || page.Next == 0 {
		return page.Entries, err
	}
	path += "?after=" + strconv.FormatInt(max(page.Last-most, 0), 10)
	page.Entries = nil
	err := c.Get(ctx, path, &page)
	return page.Entries, err
}
