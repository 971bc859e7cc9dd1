package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"parley/cmd/parley/server/mcpservers"
)

// A SignIn leads somebody at a terminal through signing in to an MCP server.
type SignIn struct {
	Client *Client
	Server string // the MCP server's name
	In     io.Reader
	Out    io.Writer
}

func (s SignIn) path() string { return "/v1/mcp/" + url.PathEscape(s.Server) + "/login" }

// Begin begins a sign-in, and returns the address to open in a browser, with the other data of the
// sign-in. An issuer that is not "" is the authorization server that the person accepts.
func (s SignIn) Begin(ctx context.Context, issuer string) (begun mcpservers.BegunSignIn, err error) {
	asked := map[string]string{}
	if issuer != "" {
		asked["issuer"] = issuer
	}
	return begun, s.Client.Do(ctx, http.MethodPost, s.path(), "", asked, &begun)
}

// Finish completes a sign-in, given the address to which the browser was sent at its end, and says so on Out.
func (s SignIn) Finish(ctx context.Context, address string) error {
	if err := s.Client.Do(ctx, http.MethodPost, s.path(), "", map[string]string{"address": address}, nil); err != nil {
		return err
	}
	return s.sayDone()
}

func (s SignIn) sayDone() error {
	_, err := fmt.Fprintf(s.Out, textSignedIn, s.Server)
	return err
}

// Await prints the address to open, and waits for whichever comes first: the browser at Parley's
// server, or somebody who pastes the address at which the browser ended.
func (s SignIn) Await(ctx context.Context, begun mcpservers.BegunSignIn) error {
	fmt.Fprintf(s.Out, textOpenAddress, begun.URL)
	if s.Client.Hosted {
		fmt.Fprintln(s.Out, textPasteAddress)
	} else {
		fmt.Fprintf(s.Out, textPasteIfStuck, begun.EndURL)
	}
	pasted := make(chan string)
	go func() { // this goroutine ends with the process, like the terminal
		defer close(pasted)
		for lines := bufio.NewScanner(s.In); lines.Scan(); {
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
				return s.Finish(ctx, address)
			}
			if s.Client.Hosted {
				return fmt.Errorf("no address was entered: until %[2]s, you can finish signing in with parley mcp login %[1]s ADDRESS", s.Server, begun.Until.Local().Format(time.TimeOnly))
			}
			pasted = nil // the input has ended, but the browser may still come back
		case <-look.C:
			var now struct{ Done bool }
			if err := s.Client.Get(ctx, s.path()+"?id="+url.QueryEscape(begun.ID), &now); err != nil {
				return err
			}
			if now.Done {
				return s.sayDone()
			}
		}
	}
	return errors.New("nobody signed in within 10 minutes: start again")
}
