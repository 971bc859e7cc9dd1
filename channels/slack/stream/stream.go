// Package stream shows Slack's users an answer while it is being written, as a message that grows.
//
// Slack accepts growing messages, which it calls streams, only in threads. It ends them by itself after some
// minutes, and lets nobody edit them before that. So a stream is ended once it can't show what comes next, and the
// message is continued by edits.
package stream

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const (
	// retryRefusedAfter is how long no stream is tried in a workspace that has refused one.
	retryRefusedAfter = 6 * time.Hour
	// maxTextBytes is the length of the longest text in a stream, in bytes. It is less than the 12,000 characters
	// that Slack accepts.
	maxTextBytes = 11000
	// maxAge is how long a stream is used: less than the five minutes after which Slack ends it. After forgetAfter,
	// Slack has certainly ended it.
	maxAge      = 4 * time.Minute
	forgetAfter = 15 * time.Minute
	// startInterval and startBurst limit how many streams are started: Slack allows roughly 20 starts a minute in a
	// workspace, and as many ends.
	startInterval = 4 * time.Second
	startBurst    = 4
)

// A Place is a thread and, in a channel, the user and the team for whom the answer is: Slack requires them there.
type Place struct{ Chat, Thread, User, Team string }

// Streams are the growing messages of one app. Its function call makes one call to Slack's API, limited in time,
// and returns errors as *channels.SendError.
type Streams struct {
	api  *slackgo.Client
	call func(ctx context.Context, do func(context.Context) error) error

	mu                sync.Mutex
	openStreams       map[string]*stream // streams that this process has started and not ended, by the message's ts
	refusedSince      time.Time          // since when the workspace refuses streams
	cardsRefusedSince time.Time          // since when the workspace refuses cards in streams
	startsRestAt      time.Time          // when the limit startInterval will have its full burst again
}

// A stream is a growing message that this process has started and not ended.
type stream struct {
	startedAt    time.Time
	withoutCards bool            // whether tools are shown as text, because the workspace refuses cards
	shown        channels.Growth // what the message shows so far
	length       int
	ended        bool // whether nothing more will be appended, so the message must be ended
}

// An addition is appended to a stream in one call.
type addition struct {
	finished *card // the card of the tool that has finished; nil if there is none
	text     string
	started  *card // the card of the tool that has started; nil if there is none
}

// A card shows a tool call in a stream.
type card struct {
	step  int
	title string
}

// New makes a Streams that makes its calls through call.
func New(api *slackgo.Client, call func(ctx context.Context, do func(context.Context) error) error) *Streams {
	return &Streams{api: api, call: call, openStreams: map[string]*stream{}}
}

// Start starts a growing message that shows g and returns its ts; "" if an ordinary message should be sent instead.
// After an error, nobody knows whether the message was started.
func (s *Streams) Start(ctx context.Context, at Place, g channels.Growth) (ts string, err error) {
	one := &stream{withoutCards: s.refusesCards()}
	more, ok := one.nextAddition(g)
	if at.Thread == "" || !ok || more.isEmpty() || !s.mayStart() {
		return "", nil
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionTS(at.Thread), one.option(more)}
	if at.User != "" {
		options = append(options, slackgo.MsgOptionRecipientUserID(at.User), slackgo.MsgOptionRecipientTeamID(at.Team))
	}
	err = s.call(ctx, func(ctx context.Context) (err error) {
		_, ts, err = s.api.StartStreamContext(ctx, at.Chat, options...)
		return err
	})
	switch fault := channels.FaultOf(err); {
	case err == nil && ts == "":
		return "", &channels.SendError{Fault: channels.Unknown, Code: "unreadable", Err: errors.New("the answer is not what Slack gives")}
	case err == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		one.startedAt, one.shown, one.length = time.Now(), g, more.size()
		s.openStreams[ts] = one
		return ts, nil
	case fault.Fault == channels.Unknown:
		return "", err
	case !one.withoutCards && isAboutCards(fault.Code):
		s.mu.Lock()
		s.cardsRefusedSince = time.Now()
		s.mu.Unlock()
		return s.Start(ctx, at, g)
	default:
		s.recordRefusal(fault)
		return "", nil
	}
}

// refusesCards reports whether the workspace has recently refused cards.
func (s *Streams) refusesCards() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.cardsRefusedSince) < retryRefusedAfter
}

// isAboutCards reports whether an error code may mean that Slack refused a request because it does not accept cards
// in the form in which they were sent.
func isAboutCards(code string) bool {
	return strings.Contains(code, "chunk") || code == "invalid_arguments" || code == "invalid_arg_name" || code == "no_text"
}

// mayStart reports whether one more stream may be started now, and counts it if so.
func (s *Streams) mayStart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for ts, one := range s.openStreams {
		if now.Sub(one.startedAt) > forgetAfter {
			delete(s.openStreams, ts)
		}
	}
	if now.Sub(s.refusedSince) < retryRefusedAfter || s.startsRestAt.Sub(now) > (startBurst-1)*startInterval {
		return false
	}
	if s.startsRestAt.Before(now) {
		s.startsRestAt = now
	}
	s.startsRestAt = s.startsRestAt.Add(startInterval)
	return true
}

// recordRefusal records why a stream was not started. A refusal that concerns one place does not stop streams
// elsewhere.
func (s *Streams) recordRefusal(fault *channels.SendError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch fault.Code {
	case "missing_scope", "not_enabled", "feature_not_enabled", "access_denied", "not_allowed", "unknown_method", "method_deprecated", "deprecated_endpoint":
		s.refusedSince = time.Now()
	}
	if fault.RateLimited {
		s.startsRestAt = time.Now().Add(startBurst*startInterval + fault.RetryAfter)
	}
}

// Append lets a message grow until it shows g. It returns false if that is impossible, so that the message must be
// stopped and continued by edits. An error means that the call may be repeated.
func (s *Streams) Append(ctx context.Context, chat, ts string, g channels.Growth) (grown bool, err error) {
	s.mu.Lock()
	one := s.openStreams[ts]
	s.mu.Unlock()
	if one == nil || one.ended { // there are never two calls for one message at the same time
		return false, nil
	}
	more, ok := one.nextAddition(g)
	if !ok {
		return false, nil
	}
	if more.isEmpty() {
		return true, nil
	}
	err = s.call(ctx, func(ctx context.Context) error {
		_, _, err := s.api.AppendStreamContext(ctx, chat, ts, one.option(more))
		return err
	})
	fault := channels.FaultOf(err)
	switch {
	case err == nil:
		one.shown, one.length = g, one.length+more.size()
		return true, nil
	case fault.Fault == channels.Retry, fault.Fault == channels.Stop:
		return true, err
	}
	return false, nil // Slack has refused it, or may have appended it: an edit will show the whole text
}

// Stop ends a message that this process has started, so that it can be edited. An error means that the message may
// not have ended; ending it again does no harm.
func (s *Streams) Stop(ctx context.Context, chat, ts string) error {
	s.mu.Lock()
	one := s.openStreams[ts]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	one.ended = true
	return s.End(ctx, chat, ts)
}

// End ends a message, no matter which process has started it.
func (s *Streams) End(ctx context.Context, chat, ts string) error {
	err := s.call(ctx, func(ctx context.Context) error {
		_, _, err := s.api.StopStreamContext(ctx, chat, ts)
		return err
	})
	fault := channels.FaultOf(err)
	if err != nil && fault.Fault != channels.Rejected { // Rejected: Slack has ended the stream, or does not know it
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.openStreams, ts)
	return nil
}

// nextAddition returns what must be appended for the stream to show g; false if the stream can't show it, because
// the stream is too old or would be too long, or because text that it already shows has changed.
func (s *stream) nextAddition(g channels.Growth) (more addition, ok bool) {
	shown, text := withoutMentions(s.shown.Text), withoutMentions(g.Text)
	switch {
	case g.Answer == s.shown.Answer && strings.HasPrefix(text, shown), s.length == 0:
		more.text = strings.TrimPrefix(text, shown)
	case g.Answer > s.shown.Answer:
		more.text = "\n\n" + text
	default:
		return addition{}, false
	}
	began := g.Doing != "" && (g.Doing != s.shown.Doing || g.Step != s.shown.Step)
	switch {
	case s.withoutCards && began:
		more.text += "\n\n· " + withoutMentions(g.Doing) + "\n"
	case !s.withoutCards:
		if s.shown.Doing != "" && (g.Doing == "" || g.Step != s.shown.Step) {
			more.finished = &card{s.shown.Step, withoutMentions(s.shown.Title)}
		}
		if began {
			more.started = &card{g.Step, withoutMentions(g.Title)}
		}
	}
	if s.length == 0 {
		more.text = strings.TrimLeft(more.text, "\n")
	}
	old := s.length > 0 && time.Since(s.startedAt) > maxAge
	return more, !old && s.length+more.size() <= maxTextBytes
}

// isEmpty reports whether there is nothing to append.
func (a addition) isEmpty() bool { return a.text == "" && a.finished == nil && a.started == nil }

// size returns the length of an addition's text and titles, in bytes.
func (a addition) size() int {
	n := len(a.text)
	for _, c := range []*card{a.finished, a.started} {
		if c != nil {
			n += len(c.title)
		}
	}
	return n
}

// option returns an addition in the form that Slack accepts. Once a stream has cards, its text goes among them:
// Slack accepts no other form from then on.
func (s *stream) option(a addition) slackgo.MsgOption {
	if s.withoutCards {
		return slackgo.MsgOptionMarkdownText(a.text)
	}
	var chunks []slackgo.StreamChunk
	if a.finished != nil {
		chunks = append(chunks, a.finished.chunk(slackgo.TaskCardStatusComplete))
	}
	if a.text != "" {
		chunks = append(chunks, slackgo.NewMarkdownTextChunk(a.text))
	}
	if a.started != nil {
		chunks = append(chunks, a.started.chunk(slackgo.TaskCardStatusInProgress))
	}
	return slackgo.MsgOptionChunks(chunks...)
}

// chunk returns a card with a status in the form that Slack accepts.
func (c *card) chunk(status slackgo.TaskCardStatus) slackgo.StreamChunk {
	chunk := slackgo.NewTaskUpdateChunk("step-"+strconv.Itoa(c.step), c.title)
	chunk.Status = status
	return chunk
}

// withoutMentions breaks up whatever Slack would read as a mention in a Markdown text, so that nobody is notified.
func withoutMentions(text string) string {
	return strings.NewReplacer("<!", "<\u200b!", "<@", "<\u200b@", "<#", "<\u200b#",
		"@channel", "@\u200bchannel", "@here", "@\u200bhere", "@everyone", "@\u200beveryone").Replace(text)
}
