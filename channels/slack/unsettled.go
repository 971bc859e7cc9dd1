package slack

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	slackgo "github.com/slack-go/slack"
)

// What Slack has given to a socket that is lost it sends again through another,
// seconds later, while what was said after it comes at once. While that may be,
// what is said waits until what was said before it is read from history.

const (
	// redelivery is how long after a socket's end that may be.
	redelivery = 10 * time.Second
	// handover is how long after this process has begun: the one that had the
	// channel before may be gone without Slack having noticed.
	handover = 30 * time.Second
	// lookTimeout bounds how long a message waits for that.
	lookTimeout = 2 * time.Second
)

// unsettle notes that from now on, for so long, messages may come in another
// order than they were said. g.mu is held.
func (g *gaps) unsettle(now time.Time, d time.Duration) {
	if now.After(g.settled) {
		g.doubtful = now.Add(-overlap)
	}
	if until := now.Add(d); until.After(g.settled) {
		g.settled = until
	}
}

// unsettled is since when messages may have been held up; false if none is now.
func (g *gaps) unsettled() (since time.Time, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.doubtful, wallClock().Before(g.settled)
}

// earlier are the messages before one, in its chat or thread, that may have been
// held up and were not handed on. It is a help and no more: what cannot be read
// now comes by itself.
func (r *receiver) earlier(ctx context.Context, m *message) (found []*message) {
	since, ok := r.gaps.unsettled()
	if !ok || !r.gaps.limiter.Allow() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	oldest := stamp(since)
	see := func(said slackgo.Message) bool {
		one := past(m.Channel, said)
		if one.TS <= oldest || one.TS >= m.TS || !one.mayConcern(r.me) {
			return true
		}
		if _, handed := r.handed.get(r.channel.id(&one, r.me)); !handed {
			found = append(found, &one)
		}
		return true
	}
	var err error
	if m.ThreadTS != "" && m.ThreadTS != m.TS {
		err = r.channel.readThread(ctx, once, m.Channel, m.ThreadTS, oldest, see)
	} else {
		err = r.channel.readChat(ctx, once, m.Channel, oldest, see)
	}
	if err != nil && ctx.Err() == nil {
		r.channel.log.LogAttrs(ctx, slog.LevelDebug, "what was said before a message cannot be read", slog.String("chat", m.Channel), slog.Any("error", err))
	}
	slices.SortFunc(found, func(a, b *message) int { return cmp.Compare(a.TS, b.TS) })
	return found
}
