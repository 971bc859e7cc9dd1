// Package stream shows Slack's users an answer while it is being made, as a message that
// grows.
//
// Slack takes such a message in threads alone, ends it by itself after some minutes, and
// lets nobody edit it before it has ended. So whatever a stream cannot show ends it, and
// the message goes on by edits.
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
	// askAgain is how long a workspace that refuses streams is spared them.
	askAgain = 6 * time.Hour
	// mostText is less than the 12,000 characters that Slack takes, in bytes.
	mostText = 11000
	// mostAge is less than the five minutes after which Slack ends a stream, and forgotten
	// is when it has certainly done so.
	mostAge   = 4 * time.Minute
	forgotten = 15 * time.Minute
	// Slack allows about 20 starts a minute, and as many ends, in a workspace.
	startEvery = 4 * time.Second
	startBurst = 4
)

// A Place is a thread, and for whom something is said there: in a channel Slack asks who
// that is.
type Place struct{ Chat, Thread, User, Team string }

// Streams are those of one app. Call makes one call of Slack's API, in bounded time, and
// gives its error as a *channels.SendError.
type Streams struct {
	api  *slackgo.Client
	call func(ctx context.Context, do func(context.Context) error) error

	mu      sync.Mutex
	open    map[string]*stream // by the ts of the message
	refused time.Time          // since when the workspace refuses streams
	plain   time.Time          // since when it refuses cards in them
	next    time.Time          // when the pace of starts is at rest
}

// A stream is a message that this process has begun and not ended.
type stream struct {
	began  time.Time
	plain  bool // it has no cards: what tools do is text
	shown  channels.Growth
	length int
	over   bool // nothing is appended any more; it is to be ended
}

// An addition is what a stream grows by.
type addition struct {
	done *card // was in progress
	text string
	now  *card // is
}

// A card shows what a tool does.
type card struct {
	step  int
	title string
}

// New makes them.
func New(api *slackgo.Client, call func(ctx context.Context, do func(context.Context) error) error) *Streams {
	return &Streams{api: api, call: call, open: map[string]*stream{}}
}

// Start begins a message, and returns its ts; "" where there is to be another kind of
// message. Its error is of unknown outcome.
func (s *Streams) Start(ctx context.Context, at Place, g channels.Growth) (ts string, err error) {
	one := &stream{plain: s.isPlain()}
	more, ok := one.grow(g)
	if at.Thread == "" || !ok || more.isEmpty() || !s.mayStart() {
		return "", nil
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionTS(at.Thread), one.write(more)}
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
		one.began, one.shown, one.length = time.Now(), g, more.size()
		s.open[ts] = one
		return ts, nil
	case fault.Fault == channels.Unknown:
		return "", err
	case !one.plain && isAboutCards(fault.Code):
		s.mu.Lock()
		s.plain = time.Now()
		s.mu.Unlock()
		return s.Start(ctx, at, g)
	default:
		s.note(fault)
		return "", nil
	}
}

// isPlain reports whether the workspace was found to refuse cards.
func (s *Streams) isPlain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.plain) < askAgain
}

// isAboutCards tells of the code of a refusal whether it may be for the way in which cards
// are written.
func isAboutCards(code string) bool {
	return strings.Contains(code, "chunk") || code == "invalid_arguments" || code == "invalid_arg_name" || code == "no_text"
}

// mayStart reports whether there is to be one more stream, and counts it.
func (s *Streams) mayStart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for ts, one := range s.open {
		if now.Sub(one.began) > forgotten {
			delete(s.open, ts)
		}
	}
	if now.Sub(s.refused) < askAgain || s.next.Sub(now) > (startBurst-1)*startEvery {
		return false
	}
	if s.next.Before(now) {
		s.next = now
	}
	s.next = s.next.Add(startEvery)
	return true
}

// note takes down why a stream was not begun: what is said of one place says nothing of
// the others.
func (s *Streams) note(fault *channels.SendError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch fault.Code {
	case "missing_scope", "not_enabled", "feature_not_enabled", "access_denied", "not_allowed", "unknown_method", "method_deprecated", "deprecated_endpoint":
		s.refused = time.Now()
	}
	if fault.Limited {
		s.next = time.Now().Add(startBurst*startEvery + fault.RetryAfter)
	}
}

// Append has a message grow; false where it cannot, so that it is to be stopped and goes on
// by edits. Its error is that it may be tried again.
func (s *Streams) Append(ctx context.Context, chat, ts string, g channels.Growth) (grown bool, err error) {
	s.mu.Lock()
	one := s.open[ts]
	s.mu.Unlock()
	if one == nil || one.over { // calls for one message follow one another
		return false, nil
	}
	more, ok := one.grow(g)
	if !ok {
		return false, nil
	}
	if more.isEmpty() {
		return true, nil
	}
	err = s.call(ctx, func(ctx context.Context) error {
		_, _, err := s.api.AppendStreamContext(ctx, chat, ts, one.write(more))
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
	return false, nil // it was refused, or may be there: an edit shows the whole
}

// Stop ends a message that this process has begun, so that it can be edited. Its error
// is that it may not have ended; ending it again does no harm.
func (s *Streams) Stop(ctx context.Context, chat, ts string) error {
	s.mu.Lock()
	one := s.open[ts]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	one.over = true
	return s.End(ctx, chat, ts)
}

// End ends a message, whoever has begun it.
func (s *Streams) End(ctx context.Context, chat, ts string) error {
	err := s.call(ctx, func(ctx context.Context) error {
		_, _, err := s.api.StopStreamContext(ctx, chat, ts)
		return err
	})
	fault := channels.FaultOf(err)
	if err != nil && fault.Fault != channels.Rejected { // Slack has ended it, or knows it not
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, ts)
	return nil
}

// grow is what is to be appended; false where a stream cannot show it.
func (s *stream) grow(g channels.Growth) (more addition, ok bool) {
	shown, text := harmless(s.shown.Text), harmless(g.Text)
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
	case s.plain && began:
		more.text += "\n\n· " + harmless(g.Doing) + "\n"
	case !s.plain:
		if s.shown.Doing != "" && (g.Doing == "" || g.Step != s.shown.Step) {
			more.done = &card{s.shown.Step, harmless(s.shown.Title)}
		}
		if began {
			more.now = &card{g.Step, harmless(g.Title)}
		}
	}
	if s.length == 0 {
		more.text = strings.TrimLeft(more.text, "\n")
	}
	old := s.length > 0 && time.Since(s.began) > mostAge
	return more, !old && s.length+more.size() <= mostText
}

func (a addition) isEmpty() bool { return a.text == "" && a.done == nil && a.now == nil }

// size is how long it is, in bytes of text.
func (a addition) size() int {
	n := len(a.text)
	for _, c := range []*card{a.done, a.now} {
		if c != nil {
			n += len(c.title)
		}
	}
	return n
}

// write is an addition as Slack takes it. A stream with cards has its text among them, and
// Slack takes no other from then on.
func (s *stream) write(a addition) slackgo.MsgOption {
	if s.plain {
		return slackgo.MsgOptionMarkdownText(a.text)
	}
	var chunks []slackgo.StreamChunk
	if a.done != nil {
		chunks = append(chunks, a.done.chunk(slackgo.TaskCardStatusComplete))
	}
	if a.text != "" {
		chunks = append(chunks, slackgo.NewMarkdownTextChunk(a.text))
	}
	if a.now != nil {
		chunks = append(chunks, a.now.chunk(slackgo.TaskCardStatusInProgress))
	}
	return slackgo.MsgOptionChunks(chunks...)
}

func (c *card) chunk(status slackgo.TaskCardStatus) slackgo.StreamChunk {
	chunk := slackgo.NewTaskUpdateChunk("step-"+strconv.Itoa(c.step), c.title)
	chunk.Status = status
	return chunk
}

// harmless is Markdown that calls nobody: what Slack reads as a mention is broken up.
func harmless(text string) string {
	return strings.NewReplacer("<!", "<\u200b!", "<@", "<\u200b@", "<#", "<\u200b#",
		"@channel", "@\u200bchannel", "@here", "@\u200bhere", "@everyone", "@\u200beveryone").Replace(text)
}
