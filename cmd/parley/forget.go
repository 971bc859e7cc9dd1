package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"parley/cmd/parley/client"
	"parley/cmd/parley/erase"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
)

type forgetCmd struct {
	User    string `help:"Whose words are forgotten, CHANNEL:USER." placeholder:"WHO" xor:"what"`
	Session string `help:"Or which conversation." placeholder:"KEY" xor:"what"`
	Yes     bool   `help:"Do not ask."`
}

// Help says that one of the two is given, and shows examples.
func (forgetCmd) Help() string {
	return "Give --user or --session, one of the two.\n\n" +
		examples("parley forget --user telegram:42", "parley forget --session main:slack:C0TEAM", "parley forget --yes --user telegram:42")
}

// Run erases and prints the receipt.
func (c forgetCmd) Run(ctx context.Context, flags *cli, tty terminal.Terminal) error {
	if c.User == "" && c.Session == "" {
		return &usageError{"forget what? Give --user WHO or --session KEY"}
	}
	if err := confirm(tty, c.Yes, fmt.Sprintf("Erase everything of %s, for good?", c.User+c.Session)); err != nil {
		return err
	}
	body := map[string]string{"user": c.User}
	if c.Session != "" {
		body = map[string]string{"session": c.Session}
	}
	return use(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var receipt erase.Receipt
		if err := server.Do(ctx, http.MethodPost, "/v1/forget", "", body, &receipt); err != nil {
			return err
		}
		if flags.JSON {
			return json.NewEncoder(tty.Out).Encode(receipt)
		}
		_, err := fmt.Fprint(tty.Out, receipt.String())
		return err
	})
}
