package main

import (
	"context"
	"net/url"

	"parley/channels/why"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
)

type whyCmd struct {
	Message string `arg:"" name:"message" help:"The id of a message, the key of a conversation, a chat as CHANNEL:CHAT, or a person as CHANNEL:USER."`
}

// Help shows examples.
func (whyCmd) Help() string {
	return examples("parley why telegram:42", "parley why main:telegram:42", "parley why telegram:4242:42:7", "parley --json why slack:C0123456789")
}

// Run prints what became of a message, or of the newest messages in a conversation or a chat.
func (c whyCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		path := "/v1/why/" + url.PathEscape(c.Message)
		if flags.JSON {
			return server.Get(ctx, path, tty.Out)
		}
		var told why.Report
		if err := server.Get(ctx, path, &told); err != nil {
			return err
		}
		return report.Why(tty.Out, told)
	})
}
