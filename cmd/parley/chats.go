package main

import (
	"context"
	"net/url"

	"parley/cmd/parley/api"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type chatsCmd struct{}

// Help shows examples.
func (chatsCmd) Help() string { return examples("parley chats", "parley --json chats") }

// Run lists where people have spoken to the bot.
func (chatsCmd) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		all, err := fetchChats(ctx, server)
		if err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(all)
		}
		return report.Chats(tty.Out, all)
	})
}

// fetchChats returns all chats, which the server lists page by page.
func fetchChats(ctx context.Context, server *client.Client) ([]api.Chat, error) {
	all := []api.Chat{}
	for after, more := "", true; more; more = after != "" {
		var page struct {
			Chats []api.Chat
			Next  string
		}
		if err := server.Get(ctx, "/v1/chats?"+url.Values{"limit": {"1000"}, "after": {after}}.Encode(), &page); err != nil {
			return nil, err
		}
		all, after = append(all, page.Chats...), page.Next
	}
	return all, nil
}
