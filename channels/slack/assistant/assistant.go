// Package assistant shows Slack's users what the bot is and does beside its messages.
//
// In the app's home it says what it may do for them. In the pane that people open beside
// what they read it suggests what to ask, and names each conversation by what it is
// about. While it works on an answer, the answer's thread says so.
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
	// What Slack takes: of a section's text, in UTF-16 units; of a view's blocks; and of
	// a title.
	mostSection = 3000
	mostBlocks  = 100
	mostTitle   = 60 // it takes more, and shows less
	// statusFades is after what time Slack takes a status away by itself.
	statusFades = 2 * time.Minute
	// askAgain is how long a workspace that refuses a method is spared it.
	askAgain = 6 * time.Hour
)

// A Desk shows these things. Call makes one call of Slack's API, in bounded time, and
// gives its error as a *channels.SendError.
type Desk struct {
	api  *slackgo.Client
	call func(ctx context.Context, do func(context.Context) error) error

	mu      sync.Mutex
	refused map[string]time.Time // methods that the app may not use, and since when
	working map[place]time.Time  // threads that say that the bot is at work
}

// A place is a thread, or a message that is to begin one.
type place struct{ chat, thread string }

// New makes a desk.
func New(api *slackgo.Client, call func(ctx context.Context, do func(context.Context) error) error) *Desk {
	return &Desk{api: api, call: call, refused: map[string]time.Time{}, working: map[place]time.Time{}}
}

// Home shows a text, which is Markdown, in a user's view of the app's home.
func (d *Desk) Home(ctx context.Context, user, text string) error {
	view := slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab}
	for _, piece := range markup.Render(text, markup.SlackMrkdwn, mostSection) {
		if len(view.Blocks.BlockSet) == mostBlocks {
			break
		}
		section := slackgo.NewTextBlockObject(slackgo.MarkdownType, piece.Text, false, true)
		view.Blocks.BlockSet = append(view.Blocks.BlockSet, slackgo.NewSectionBlock(section, nil, nil))
	}
	return d.do(ctx, "views.publish", func(ctx context.Context) error {
		_, err := d.api.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: user, View: view})
		return err
	})
}

// A Prompt is something that people may ask by pressing it.
type Prompt struct{ Title, Message string }

// Suggest shows in a pane what may be asked.
func (d *Desk) Suggest(ctx context.Context, chat, thread, title string, prompts []Prompt) error {
	params := slackgo.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: chat, ThreadTS: thread, Title: title}
	for _, p := range prompts {
		params.AddPrompt(p.Title, p.Message)
	}
	return d.do(ctx, "assistant.threads.setSuggestedPrompts", func(ctx context.Context) error {
		return d.api.SetAssistantThreadsSuggestedPromptsContext(ctx, params)
	})
}

// Name names the conversation of a pane by the first words of what was said in it.
func (d *Desk) Name(ctx context.Context, chat, thread, said string) error {
	title := markup.OneLine(said, mostTitle)
	if title == "" {
		return nil
	}
	return d.do(ctx, "assistant.threads.setTitle", func(ctx context.Context) error {
		return d.api.SetAssistantThreadsTitleContext(ctx, slackgo.AssistantThreadsSetTitleParameters{ChannelID: chat, ThreadTS: thread, Title: title})
	})
}

// Working has a thread say that the bot is at work, and returns for how long.
func (d *Desk) Working(ctx context.Context, chat, thread string) (fades time.Duration, err error) {
	if err := d.status(ctx, chat, thread, "is thinking…"); err != nil {
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
	d.working[place{chat, thread}] = now.Add(statusFades)
	return statusFades, nil
}

// Spoke notes that the bot has said something in a thread: Slack takes the status away.
func (d *Desk) Spoke(chat, thread string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.working, place{chat, thread})
}

// Rewrote takes the status away where the bot has changed what it said: Slack does not
// do so by itself then.
func (d *Desk) Rewrote(ctx context.Context, chat, thread string) error {
	d.mu.Lock()
	until, shown := d.working[place{chat, thread}]
	delete(d.working, place{chat, thread})
	d.mu.Unlock()
	if !shown || time.Now().After(until) {
		return nil
	}
	return d.status(ctx, chat, thread, "")
}

func (d *Desk) status(ctx context.Context, chat, thread, status string) error {
	return d.do(ctx, "assistant.threads.setStatus", func(ctx context.Context) error {
		return d.api.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: chat, ThreadTS: thread, Status: status})
	})
}

// do makes a call, unless the app was refused that method lately: it was made with an
// older manifest, or has the feature switched off. That a conversation is none of a pane
// says nothing about the method.
func (d *Desk) do(ctx context.Context, method string, do func(context.Context) error) error {
	d.mu.Lock()
	spared := time.Since(d.refused[method]) < askAgain
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
