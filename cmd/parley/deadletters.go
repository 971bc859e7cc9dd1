package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type deadLettersCmd struct {
	List   deadList   `cmd:"" default:"1" help:"List the messages that Parley gave up on."`
	Show   deadShow   `cmd:"" help:"Show one message in full."`
	Replay deadReplay `cmd:"" help:"Send messages again under new ids."`
	Drop   deadDrop   `cmd:"" help:"Drop messages for good."`
}

// pathOf returns the path of a dead letter in the server's API.
func pathOf(d report.DeadLetter) string {
	return "/v1/dead-letters/" + url.PathEscape(d.Topic) + "/" + url.PathEscape(d.ID)
}

// fetchDeadLetters returns all dead letters, that is, the messages that were given up.
func fetchDeadLetters(ctx context.Context, server *client.Client) ([]report.DeadLetter, error) {
	var standing report.Status
	if err := server.Get(ctx, "/v1/status?brief=true", &standing); err != nil {
		return nil, err
	}
	all := []report.DeadLetter{} // encoded as an empty list in JSON, not as null
	for _, t := range standing.Topics {
		for after := ""; ; {
			var page struct {
				Letters []report.DeadLetter `json:"letters"`
				Next    string              `json:"next"`
				More    bool                `json:"more"`
			}
			path := "/v1/dead-letters?topic=" + url.QueryEscape(t.Topic) + "&after=" + url.QueryEscape(after)
			if err := server.Get(ctx, path, &page); err != nil {
				return nil, err
			}
			all = append(all, page.Letters...)
			if after = page.Next; !page.More || after == "" {
				break
			}
		}
	}
	return all, nil
}

// chooseLetters returns the dead letters with these ids or, if everything is set, all of them. It returns an error if
// one of the ids is unknown, or if there is none and everything isn't set.
func chooseLetters(ctx context.Context, server *client.Client, ids []string, everything bool) ([]report.DeadLetter, error) {
	if len(ids) == 0 && !everything {
		return nil, &usageError{"give the ids of dead letters, or use --all"}
	}
	all, err := fetchDeadLetters(ctx, server)
	if err != nil || everything {
		return all, err
	}
	var picked []report.DeadLetter
	for _, id := range ids {
		found := false
		for _, d := range all {
			if d.ID == id {
				picked, found = append(picked, d), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no dead letter has the id %q: see `parley dead-letters list`", id)
		}
	}
	return picked, nil
}

type deadList struct{}

// Help shows examples.
func (deadList) Help() string {
	return examples("parley dead-letters", "parley --json dead-letters list")
}

// Run lists dead letters.
func (deadList) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		all, err := fetchDeadLetters(ctx, server)
		if err != nil {
			return err
		}
		if flags.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(all)
		}
		return report.DeadLetters(tty.Out, all)
	})
}

type deadShow struct {
	ID string `arg:""`
}

// Help shows examples.
func (deadShow) Help() string { return examples("parley dead-letters show ID") }

// Run prints one dead letter.
func (c deadShow) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		picked, err := chooseLetters(ctx, server, []string{c.ID}, false)
		if err != nil {
			return err
		}
		return server.Get(ctx, pathOf(picked[0]), tty.Out)
	})
}

type deadReplay struct {
	IDs []string `arg:"" optional:"" name:"id"`
	All bool     `help:"Send all of them again."`
}

// Help shows examples.
func (deadReplay) Help() string {
	return examples("parley dead-letters replay ID", "parley dead-letters replay --all")
}

// Run publishes dead letters again, each under a new id.
func (c deadReplay) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		picked, err := chooseLetters(ctx, server, c.IDs, c.All)
		if err != nil {
			return err
		}
		for _, d := range picked {
			var now struct {
				ID string `json:"id"`
			}
			if err := server.Do(ctx, http.MethodPost, pathOf(d)+"/replay", "", nil, &now); err != nil {
				return err
			}
			fmt.Fprintf(tty.Out, "%s is on its way again as %s\n", d.ID, now.ID)
		}
		return nil
	})
}

type deadDrop struct {
	IDs []string `arg:"" optional:"" name:"id"`
	All bool     `help:"Drop all of them."`
	Yes bool     `help:"Don't ask for confirmation."`
}

// Help shows examples.
func (deadDrop) Help() string {
	return examples("parley dead-letters drop ID", "parley dead-letters drop --all --yes")
}

// Run deletes dead letters.
func (c deadDrop) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	if c.All {
		if err := confirm(tty, c.Yes, textForgetAll); err != nil {
			return err
		}
	}
	return withClient(ctx, flags, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		picked, err := chooseLetters(ctx, server, c.IDs, c.All)
		if err != nil {
			return err
		}
		for _, d := range picked {
			if err := server.Do(ctx, http.MethodDelete, pathOf(d), "", nil, nil); err != nil {
				return err
			}
			fmt.Fprintf(tty.Out, "%s has been dropped\n", d.ID)
		}
		return nil
	})
}
