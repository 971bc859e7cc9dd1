// Package assistant shows Slack's users, outside of messages, what the bot can do and what it is doing.
//
// The app's home says what the bot can do for a user. The pane that users open beside a channel suggests questions,
// and titles each conversation with its first words. While the bot works on an answer, the answer's thread says so.
package assistant

import (
	"context"
	"errors"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/channels/markup"
)

const (
	// maxSectionUnits is the length of the longest text that Slack accepts in a section, in UTF-16 units; maxBlocks
	// is the number of blocks that a view may have, and maxTitle the number of a title's characters that are sent.
	maxSectionUnits = 3000
	maxBlocks       = 100
	maxTitle        = 60 // Slack accepts more, and shows less
	// statusDuration is the time after which Slack removes a status by itself.
	statusDuration = 2 * time.Minute
	// retryRefusedAfter is how long a method is not called again after a workspace has refused it.
	retryRefusedAfter = 6 * time.Hour
)

// Surfaces shows the app's home, the assistant panes and the status of threads. Its function call makes one call to
// Slack's API, limited in time, and returns errors as *channels.SendError.
type Surfaces struct {
	api  *slackgo.Client
	call func(ctx context.Context, do func(context.Context) error) error

	mu      sync.Mutex
	refused map[string]time.Time // by method: since when the workspace refuses it
	working map[place]time.Time  // threads whose status says that the bot is at work, and until when
}

// A place is a thread, or a message that is about to begin one.
type place struct{ chat, thread string }

// New makes Surfaces that makes its calls through call.
func New(api *slackgo.Client, call func(ctx context.Context, do func(context.Context) error) error) *Surfaces {
	return &Surfaces{api: api, call: call, refused: map[string]time.Time{}, working: map[place]time.Time{}}
}

// ShowHome shows a Markdown text, as much as fits, in a user's view of the app's home.
func (d *Surfaces) ShowHome(ctx context.Context, user, text string) error {
	view := slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab}
	for _, piece := range markup.Render(text, markup.SlackMrkdwn, maxSectionUnits) {
		if len(view.Blocks.BlockSet) == maxBlocks {
			break
		}
		section := slackgo.NewTextBlockObject(slackgo.MarkdownType, piece.Text, false, true)
		view.Blocks.BlockSet = append(view.Blocks.BlockSet, slackgo.NewSectionBlock(section, nil, nil))
	}
	return d.callUnlessRefused(ctx, "views.publish", func(ctx context.Context) error {
		_, err := d.api.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: user, View: view})
		return err
	})
}

// A Prompt is a question that users can ask by pressing it.
type Prompt struct{ Title, Message string }

// SuggestPrompts shows questions in a pane, under a title.
func (d *Surfaces) SuggestPrompts(ctx context.Context, chat, thread, title string, prompts []Prompt) error {
	params := slackgo.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: chat, ThreadTS: thread, Title: title}
	for _, p := range prompts {
		params.AddPrompt(p.Title, p.Message)
	}
	return d.callUnlessRefused(ctx, "assistant.threads.setSuggestedPrompts", func(ctx context.Context) error {
		return d.api.SetAssistantThreadsSuggestedPromptsContext(ctx, params)
	})
}

// SetTitle gives the conversation in a pane a title: the first words of said, the message that began it.
func (d *Surfaces) SetTitle(ctx context.Context, chat, thread, said string) error {
	title := markup.OneLine(said, maxTitle)
	if title == "" {
		return nil
	}
	return d.callUnlessRefused(ctx, "assistant.threads.setTitle", func(ctx context.Context) error {
		return d.api.SetAssistantThreadsTitleContext(ctx, slackgo.AssistantThreadsSetTitleParameters{ChannelID: chat, ThreadTS: thread, Title: title})
	})
}

// ShowWorking makes a thread say that the bot is at work, and returns how long Slack shows it.
func (d *Surfaces) ShowWorking(ctx context.Context, chat, thread string) (fades time.Duration, err error) {
	if err := d.setStatus(ctx, chat, thread, "is thinking…"); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for at, until := range d.working {
		if now.After(until) {
			delete(d.working, at)
		}
	}
	d.working[place{chat, thread}] = now.Add(statusDuration)
	return statusDuration, nil
}

// NoteSent records that the bot has written in a thread, because Slack removes the status when that happens.
func (d *Surfaces) NoteSent(chat, thread string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.working, place{chat, thread})
}

// ClearStatus removes the status from a thread in which the bot has edited a message: Slack removes it by itself only
// when the bot posts one. If this process has set no status there that Slack still shows, it does nothing.
func (d *Surfaces) ClearStatus(ctx context.Context, chat, thread string) error {
	d.mu.Lock()
	until, shown := d.working[place{chat, thread}]
	delete(d.working, place{chat, thread})
	d.mu.Unlock()
	if !shown || time.Now().After(until) {
		return nil
	}
	return d.setStatus(ctx, chat, thread, "")
}

// setStatus sets the status that a thread shows; "" removes it.
func (d *Surfaces) setStatus(ctx context.Context, chat, thread, status string) error {
	return d.callUnlessRefused(ctx, "assistant.threads.setStatus", func(ctx context.Context) error {
		return d.api.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: chat, ThreadTS: thread, Status: status})
	})
}

// callUnlessRefused makes a call of that method. If Slack has recently refused the method to the app, because the
// app was made with an older manifest or has the feature switched off, it does nothing and returns nil. It doesn't
// count as a refusal if Slack only says that the thread does not belong to a pane.
func (d *Surfaces) callUnlessRefused(ctx context.Context, method string, do func(context.Context) error) error {
	d.mu.Lock()
	spared := time.Since(d.refused[method]) < retryRefusedAfter
	d.mu.Unlock()
	if spared {
		return nil
	}
	err := d.call(ctx, do)
	refusal, ok := errors.AsType[*channels.SendError](err)
	if !ok || refusal.Fault != channels.Rejected {
		return err
	}
	switch refusal.Code {
	case "missing_scope", "not_enabled", "feature_not_enabled", "access_denied", "not_allowed", "unknown_method", "method_deprecated", "deprecated_endpoint":
		d.mu.Lock()
		d.refused[method] = time.Now()
		d.mu.Unlock()
	}
	return err
}
