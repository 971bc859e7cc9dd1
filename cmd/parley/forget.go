package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"parley/cmd/parley/client"
	"parley/cmd/parley/erase"
)

type forgetCmd struct {
	User    string `help:"Whose words are forgotten, CHANNEL:USER." placeholder:"WHO" xor:"what"`
	Session string `help:"Or which conversation." placeholder:"KEY" xor:"what"`
	Yes     bool   `help:"Do not ask."`
}

// Run erases and prints the receipt.
func (c forgetCmd) Run(ctx context.Context, flags *cli, tty terminal) error {
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
	return use(ctx, flags, tty, need{}, func(ctx context.Context, server *client.Client) error {
		var receipt erase.Receipt
		if err := server.Do(ctx, http.MethodPost, "/v1/forget", "", body, &receipt); err != nil {
			return err
		}
		if flags.JSON {
			return json.NewEncoder(tty.out).Encode(receipt)
		}
		_, err := fmt.Fprint(tty.out, receipt.String())
		return err
	})
}
