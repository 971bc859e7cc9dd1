package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"parley/cmd/parley/client"
	"parley/cmd/parley/mcpservers"
	"parley/cmd/parley/terminal"
)

type mcpLogin struct {
	Name    string `arg:"" help:"The server's."`
	Address string `arg:"" optional:"" help:"The address at which the browser ended, which ends a sign-in that was begun."`
}

// Help shows examples.
func (mcpLogin) Help() string {
	return examples("parley mcp login tracker", "parley mcp login tracker 'http://127.0.0.1:7275/mcp/tracker/callback?code=…&state=…'")
}

// Run signs in to a server: it prints the address to open, and waits until the browser has
// ended at this server, or the address at which it ended is pasted.
func (l mcpLogin) Run(ctx context.Context, c *cli, tty terminal.Terminal) error {
	return useServers(ctx, c, tty, func(ctx context.Context, server *client.Client) error {
		if l.Address != "" {
			return l.bring(ctx, server, tty, l.Address)
		}
		var begun mcpservers.Begun
		if err := server.Do(ctx, http.MethodPost, l.path(), "", struct{}{}, &begun); err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(tty.Out).Encode(begun)
		}
		fmt.Fprintf(tty.Out, "Open this address in a browser, and sign in:\n\n%s\n\n", begun.URL)
		if server.Hosted {
			fmt.Fprintln(tty.Out, "The browser ends at a page that it cannot open. Paste its address here:")
		} else {
			fmt.Fprintf(tty.Out, "The browser ends at %s. If it cannot open that page, paste the page's address here:\n", begun.Ends)
		}
		return l.wait(ctx, server, tty, begun)
	})
}

func (l mcpLogin) path() string { return "/v1/mcp/" + url.PathEscape(l.Name) + "/login" }

// bring ends a sign-in with an address.
func (l mcpLogin) bring(ctx context.Context, server *client.Client, tty terminal.Terminal, address string) error {
	if err := server.Do(ctx, http.MethodPost, l.path(), "", map[string]string{"address": address}, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(tty.Out, "Signed in to %s.\n", l.Name)
	return err
}

// wait waits for what comes first: an address that is pasted, or the browser at the server.
func (l mcpLogin) wait(ctx context.Context, server *client.Client, tty terminal.Terminal, begun mcpservers.Begun) error {
	pasted := make(chan string)
	go func() { // ends with the process, like the terminal
		defer close(pasted)
		for lines := bufio.NewScanner(tty.In); lines.Scan(); {
			if lines.Text() != "" {
				pasted <- lines.Text()
				return
			}
		}
	}()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for time.Now().Before(begun.Until) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case address, ok := <-pasted:
			if ok {
				return l.bring(ctx, server, tty, address)
			}
			if server.Hosted {
				return fmt.Errorf("no address came: parley mcp login %s ADDRESS ends this sign-in until %s", l.Name, begun.Until.Local().Format(time.TimeOnly))
			}
			pasted = nil // nobody types, but the browser may come
		case <-look.C:
			var now struct{ Done bool }
			if err := server.Get(ctx, l.path()+"?id="+url.QueryEscape(begun.ID), &now); err != nil {
				return err
			}
			if now.Done {
				_, err := fmt.Fprintf(tty.Out, "Signed in to %s.\n", l.Name)
				return err
			}
		}
	}
	return errors.New("nobody has signed in within the time that there was: begin again")
}
