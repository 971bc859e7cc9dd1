package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"

	"parley/channels"
	"parley/cmd/parley/api"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type uiCmd struct {
	Open uiOpen `cmd:"" default:"withargs" help:"Open the web page, signed in as the owner."`
	List uiList `cmd:"" help:"List the browsers where people are signed in."`
	End  uiEnd  `cmd:"" help:"Sign a browser out."`
}

type uiOpen struct {
	Print bool `help:"Print the link instead of opening a browser."`
}

type uiList struct{}

type uiEnd struct {
	ID string `arg:"" name:"id" help:"The sign-in, as parley ui list shows it."`
}

// errNoPage says that there is no page because no server is running.
var errNoPage = errors.New("no server is running here, so there's no page: start it with `parley serve`, then run `parley ui` again")

// Help shows examples.
func (uiOpen) Help() string { return examples("parley ui", "parley ui --print", "parley ui list") }

// Run creates a code to sign in with, and prints the link that contains it. If the output is a terminal, it also
// opens a browser, unless there is none or --print or --json is given. It returns errNoPage if no server is running.
func (u uiOpen) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if server.Hosted {
			return errNoPage
		}
		var offer api.SignInOffer
		if err := server.Do(ctx, http.MethodPost, "/v1/sign-ins/codes", "", nil, &offer); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(offer)
		}
		fmt.Fprintf(tty.Out, textPageLink, int(channels.SignInCodeLasts.Seconds()))
		for _, link := range offer.Links {
			fmt.Fprintf(tty.Out, "  %s\n", link)
		}
		if open := browserCommand(context.WithoutCancel(ctx), offer.Links[0]); open != nil && !u.Print && terminal.IsTerminal(tty.Out) {
			if err := open.Start(); err == nil {
				go func() { _ = open.Wait() }() // the browser may stay open longer than this command runs
				fmt.Fprintln(tty.Out, textOpeningBrowser)
			}
		}
		return nil
	})
}

// browserCommand returns the command that opens a link in a browser; nil if there is probably no browser. The
// command is killed when ctx is done.
func browserCommand(ctx context.Context, link string) *exec.Cmd {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	return exec.CommandContext(ctx, path, link)
}

// Help shows examples.
func (uiList) Help() string { return examples("parley ui list", "parley --json ui list") }

// Run lists the browsers in which people are signed in to the page.
func (uiList) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return printList(ctx, c, tty, "/v1/sign-ins", "sign_ins", report.SignIns)
}

// Help shows examples.
func (uiEnd) Help() string { return examples("parley ui end k3v7…") }

// Run ends a sign-in.
func (u uiEnd) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		err := server.Do(ctx, http.MethodDelete, "/v1/sign-ins/"+url.PathEscape(u.ID), "", nil, nil)
		if isRefusal(err, "not_found") {
			return fmt.Errorf("there's no sign-in %q: see `parley ui list`", u.ID)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(tty.Out, textSignedOut)
		return err
	})
}
