package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/tools/plainjson"
)

type forgetCmd struct {
	User    string `help:"The person whose messages to erase, as CHANNEL:USER." placeholder:"WHO" xor:"what"`
	Session string `help:"The conversation to erase, by its key." placeholder:"KEY" xor:"what"`
	Receipt string `help:"Show how far an erasure is, and its receipt once it's done." placeholder:"ID" xor:"what"`
	Yes     bool   `help:"Don't ask for confirmation."`
}

// Help returns the help, which says that either a person or a session must be given, and shows examples.
func (forgetCmd) Help() string {
	return textUserOrSession +
		examples("parley forget --user telegram:42", "parley forget --session main:slack:C0TEAM", "parley forget --yes --user telegram:42")
}

// Run erases what a person has said, or a session, and prints the receipt: a list of what was erased. The server goes on
// if Run is interrupted; then the receipt can be printed later.
func (c forgetCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	if c.User+c.Session+c.Receipt == "" {
		return &usageError{"give --user WHO or --session KEY"}
	}
	if c.Receipt == "" {
		if err := confirm(tty, c.Yes, fmt.Sprintf(textErase, c.User+c.Session)); err != nil {
			return err
		}
	}
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		e := erasure{server: server, id: c.Receipt, bar: progressBar(flags, tty)}
		receipt, err := e.receipt(ctx, c)
		if err != nil {
			return err
		}
		if flags.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(receipt)
		}
		_, err = fmt.Fprint(tty.Out, receipt.String())
		return err
	})
}

// errInterrupted says that the person who waited has given up.
var errInterrupted = errors.New("interrupted")

// pollEvery is how often a command asks how far an erasure is.
const pollEvery = 200 * time.Millisecond

// An erasure is an erasure that a command requests and waits for.
type erasure struct {
	server *client.Client
	id     string
	bar    *terminal.Bar
}

// receipt requests the erasure, unless that was done before, and waits for the receipt.
func (e *erasure) receipt(ctx context.Context, c forgetCmd) (*erase.Receipt, error) {
	if e.id == "" {
		body := map[string]string{"user": c.User}
		if c.Session != "" {
			body = map[string]string{"session": c.Session}
		}
		var begun struct {
			erase.Receipt
			ID string `json:"id"`
		}
		if err := e.server.Do(ctx, http.MethodPost, "/v1/forget?wait=false", "", body, &begun); err != nil {
			return nil, err
		}
		if begun.ID == "" { // the server is of an older release, which answers with the receipt
			return &begun.Receipt, nil
		}
		e.id = begun.ID
	}
	r, err := e.await(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = errInterrupted
		}
		if _, refused := errors.AsType[*client.Error](err); !refused {
			err = fmt.Errorf(textErasingGoesOn, err, e.id)
		}
		return nil, err
	}
	if r.State == erase.Failed {
		return nil, fmt.Errorf(textNotErased, r.Error)
	}
	return r.Receipt, nil
}

// await waits until the erasure has ended, and shows how far it is.
func (e *erasure) await(ctx context.Context) (erase.Request, error) {
	defer e.bar.Clear()
	showErasing(e.bar, erase.Progress{})
	for {
		var r erase.Request
		if err := e.server.Get(ctx, "/v1/forget/"+url.PathEscape(e.id), &r); err != nil || r.State != erase.Running {
			return r, err
		}
		showErasing(e.bar, r.Progress)
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// showErasing shows how far an erasure is.
func showErasing(bar *terminal.Bar, p erase.Progress) {
	steps := erase.Steps()
	far := ""
	if p.Of > 1 {
		far = fmt.Sprintf("%d of %d sessions", p.Done, p.Of)
	}
	bar.Show(partDone(slices.Index(steps, p.Step), len(steps), int64(p.Done), int64(p.Of)), cmp.Or(string(p.Step), "beginning"), far)
}

// progressBar returns the bar on which a command shows its progress, or nil if the output is JSON.
func progressBar(flags *globalFlags, tty terminal.Terminal) *terminal.Bar {
	if flags.JSON {
		return terminal.NewBar(io.Discard)
	}
	return terminal.NewBar(tty.Err)
}

// partDone returns which part of the whole work is done, if all steps count alike: the steps before step, and done/of
// of that one, or none of it if of is 0.
func partDone(step, steps int, done, of int64) float64 {
	part := 0.0
	if of > 0 {
		part = float64(done) / float64(of)
	}
	return (float64(max(0, step)) + part) / float64(steps)
}
