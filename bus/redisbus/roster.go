package redisbus

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A roster lists the processes that have the bus open.
type roster struct{ *connection }

// Processes implements bus.Roster: every process listens on a channel of its own, and Processes asks the
// server for these channels.
func (r *roster) Processes(ctx context.Context) ([]string, error) {
	listening, err := r.client.PubSubChannels(ctx, prefixPattern(r.keys.notes(""))).Result()
	if err != nil {
		return nil, fmt.Errorf("look for other processes: %w", err)
	}
	names := []string{r.self}
	for _, channel := range listening {
		if name := strings.TrimPrefix(channel, r.keys.notes("")); name != r.self {
			names = append(names, name)
		}
	}
	return names, nil
}

// countOtherProcesses returns how many other processes have the bus open.
func (r *roster) countOtherProcesses(ctx context.Context) (int, error) {
	all, err := r.Processes(ctx)
	return len(all) - 1, err
}

// goneWithin is how long Redis may take to notice that a process has closed its connection.
const goneWithin = 2 * time.Second

// AwaitOthersGone returns how many other processes have the bus open, as soon as there are
// none or Redis must have noticed those that have just ended.
func (r *roster) AwaitOthersGone(ctx context.Context) (others int, err error) {
	for begun := time.Now(); ; {
		others, err = r.countOtherProcesses(ctx)
		if err != nil || others == 0 || time.Since(begun) > goneWithin {
			return others, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// prefixPattern returns the Redis pattern of names that begin with a prefix.
func prefixPattern(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
}
