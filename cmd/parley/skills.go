package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server"
	"parley/cmd/parley/server/skillfolders"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/cmd/parley/terminal/report"
	"parley/tools/plainjson"
)

type skillsCmd struct {
	List   skillsList   `cmd:"" default:"1" help:"List your skills, which agents have them, and why some can't be used."`
	Accept skillsAccept `cmd:"" help:"Look at a skill that an agent has proposed, and accept it for all conversations."`
	Refuse skillsRefuse `cmd:"" help:"Drop a proposal. The conversation that made it keeps the skill."`
}

// A proposedSkill names a skill that an agent proposes.
type proposedSkill struct {
	Name    string `arg:"" optional:"" help:"The skill's name. Without it, the proposals are listed."`
	Session string `placeholder:"KEY" help:"The session that proposed it, if several have proposed a skill by that name."`
}

// path returns the path of the proposal in the API, with a suffix.
func (s proposedSkill) path(suffix string) string {
	path := "/v1/skills/proposals/" + url.PathEscape(s.Name) + suffix
	if s.Session != "" {
		path += "?session=" + url.QueryEscape(s.Session)
	}
	return path
}

type skillsAccept struct {
	proposedSkill
	Yes bool `help:"Don't ask for confirmation."`
}

// Help shows examples.
func (skillsAccept) Help() string {
	return examples("parley skills accept", "parley skills accept weekly-report")
}

// Run shows a proposed skill, and accepts it if the person agrees. Without a name it lists the
// proposals.
func (a skillsAccept) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	if a.Name == "" {
		return printList(ctx, c, tty, "/v1/skills/proposals", "proposals", report.Proposals)
	}
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		var shown skillfolders.ShownProposal
		if err := server.Do(ctx, http.MethodGet, a.path(""), "", nil, &shown); err != nil {
			return err
		}
		if !c.JSON {
			if err := report.Proposal(tty.Out, shown); err != nil {
				return err
			}
		}
		if err := confirm(tty, a.Yes, fmt.Sprintf(textAcceptSkill, terminal.Cell(shown.Name))); err != nil {
			return err
		}
		var now struct {
			Name   string `json:"name"`
			Folder string `json:"folder"`
		}
		if err := server.Do(ctx, http.MethodPost, a.path("/accept"), "", map[string]string{"hash": shown.Hash}, &now); err != nil {
			return err
		}
		if c.JSON {
			return plainjson.NewEncoder(tty.Out).Encode(now)
		}
		_, err := fmt.Fprintf(tty.Out, textSkillAccepted, terminal.Cell(now.Name), terminal.Cell(now.Folder))
		return err
	})
}

type skillsRefuse struct{ proposedSkill }

// Help shows an example.
func (skillsRefuse) Help() string { return examples("parley skills refuse weekly-report") }

// Run drops a proposal.
func (r skillsRefuse) Run(ctx context.Context, c *globalFlags, tty terminal.Terminal) error {
	if r.Name == "" {
		return &usageError{textNoSkillNamed}
	}
	return withClient(ctx, c, tty, server.Reader, func(ctx context.Context, server *client.Client) error {
		if err := server.Do(ctx, http.MethodDelete, r.path(""), "", nil, nil); err != nil || c.JSON {
			return err
		}
		_, err := fmt.Fprintf(tty.Out, textSkillRefused, terminal.Cell(r.Name))
		return err
	})
}

type skillsList struct{}

// Help shows examples.
func (skillsList) Help() string { return examples("parley skills list", "parley --json skills list") }

// Run lists the operator's skills. It fails if serve would refuse to start because of one.
func (skillsList) Run(c *globalFlags, tty terminal.Terminal) error {
	cfg, err := c.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	found := skillfolders.Find(cfg)
	if c.JSON {
		err = plainjson.NewEncoder(tty.Out).Encode(found.List())
	} else {
		err = report.Skills(tty.Out, found)
	}
	for _, p := range found.Minor() {
		fmt.Fprintln(tty.Err, "note:", p)
	}
	for _, p := range found.LeftOut() {
		fmt.Fprintln(tty.Err, "left out:", p)
	}
	if wrong := found.Err(); wrong != nil {
		fmt.Fprintln(tty.Err, "parley serve wouldn't start:")
		return errors.Join(err, wrong)
	}
	return err
}
