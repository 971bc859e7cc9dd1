package discord

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/tools/plainjson"
)

// A slashCommand is a command that Discord offers to people who type a slash.
type slashCommand struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Options     []commandOption `json:"options,omitempty"`
}

// A commandOption is a text that a person may add to a slash command.
type commandOption struct {
	Type        discordgo.ApplicationCommandOptionType `json:"type"`
	Name        string                                 `json:"name"`
	Description string                                 `json:"description"`
	Required    bool                                   `json:"required,omitempty"`
}

// textOption returns an option whose value is a text.
func textOption(name, description string, required bool) commandOption {
	return commandOption{discordgo.ApplicationCommandOptionString, name, description, required}
}

// slashCommands returns the commands that every chat has, and /start, which the owner uses first, sorted by name.
func slashCommands() []slashCommand {
	described := map[string]slashCommand{
		"new":     {Description: "Start a new conversation here, but keep files and memory"},
		"stop":    {Description: "Stop what the bot is doing here"},
		"status":  {Description: "Show what the bot is doing here"},
		"usage":   {Description: "Show what you've used and what it cost"},
		"undo":    {Description: "Undo the bot's last change in this conversation's folder", Options: []commandOption{textOption("what", "the number of a change, or list", false)}},
		"context": {Description: "Show how much room is left in this conversation"},
		"compact": {Description: "Sum up the conversation so far, to make room for more"},
		"recall":  {Description: "Find what was said here; in a private chat, also in your other conversations", Options: []commandOption{textOption("words", "words to look for", true)}},
		"help":    {Description: "List the commands the bot understands"},
		"approve": {Description: "Approve a request from the bot", Options: []commandOption{textOption("id", "the request's id", true)}},
		"deny":    {Description: "Deny a request from the bot", Options: []commandOption{textOption("id", "the request's id", true), textOption("reason", "the reason, for the bot to read", false)}},
		"answer":  {Description: "Answer a question from the bot", Options: []commandOption{textOption("id", "the question's id", true), textOption("answer", "your answer", true)}},
		"start":   {Description: "Become the bot's owner", Options: []commandOption{textOption("code", "the code that the bot printed when it started", false)}},
	}
	var all []slashCommand
	for _, name := range append(channels.Commands(), "start") {
		c, ok := described[name]
		if !ok {
			c = slashCommand{Description: "Send the bot the command " + name, Options: []commandOption{textOption("words", "what to add to it, if anything", false)}}
		}
		c.Name = name
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b slashCommand) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// A commandMenu registers the slash commands with Discord, which offers them to people.
type commandMenu struct{ *api }

// offerCommands registers the slash commands with Discord unless they are already registered, retrying as long as
// that may help.
func (m *commandMenu) offerCommands(ctx context.Context, application string) {
	wait := new(retryWait)
	for {
		err := m.offerCommandsOnce(ctx, application)
		if err == nil || ctx.Err() != nil {
			return
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		again := ok && refusal.Fault == channels.Retry
		if !wait.series.HasWaited() {
			m.log.LogAttrs(ctx, slog.LevelWarn, "Discord does not offer the commands; people may write them all the same",
				slog.Bool("again", again), slog.Any("error", err))
		}
		if !again || !wait.pause(ctx, err) {
			return
		}
	}
}

// offerCommandsOnce makes one attempt of offerCommands. It replaces all commands at once,
// so repeating it does no harm.
func (m *commandMenu) offerCommandsOnce(ctx context.Context, application string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	url := discordgo.EndpointApplicationGlobalCommands(application)
	var there []slashCommand
	if err := m.call(ctx, request{method: http.MethodGet, url: url}, &there); err != nil {
		return err
	}
	slices.SortFunc(there, func(a, b slashCommand) int { return strings.Compare(a.Name, b.Name) })
	want := slashCommands()
	if slices.EqualFunc(there, want, func(a, b slashCommand) bool {
		return a.Name == b.Name && a.Description == b.Description && slices.Equal(a.Options, b.Options)
	}) {
		return nil
	}
	body, err := plainjson.Marshal(want)
	if err != nil {
		return rejectedError("unencodable", err)
	}
	return m.call(ctx, request{method: http.MethodPut, url: url, body: body}, nil)
}
