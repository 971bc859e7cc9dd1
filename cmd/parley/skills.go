package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"parley/cmd/parley/config"
	"parley/cmd/parley/skillfolders"
	"parley/cmd/parley/terminal"
)

type skillsCmd struct {
	List skillsList `cmd:"" default:"1" help:"Your skills, which agents have them, and what is wrong with others."`
}

type skillsList struct{}

// Help shows examples.
func (skillsList) Help() string { return examples("parley skills list", "parley --json skills list") }

// Run lists the operator's skills. It fails where serve would not start.
func (skillsList) Run(c *cli, tty terminal.Terminal) error {
	cfg, err := c.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	found := skillfolders.Find(cfg)
	if c.JSON {
		err = json.NewEncoder(tty.Out).Encode(found.List())
	} else {
		err = printSkills(tty.Out, found)
	}
	for _, p := range found.Minor() {
		fmt.Fprintln(tty.Err, "note:", p)
	}
	if wrong := found.Err(); wrong != nil {
		fmt.Fprintln(tty.Err, "serve would not start:")
		return errors.Join(err, wrong)
	}
	return err
}

func printSkills(out io.Writer, found *skillfolders.Catalog) error {
	all := found.List()
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "There are no skills: see docs/skills.md.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SKILL\tAGENTS\tTRUSTED\tTOOLS\tFOLDER\tDESCRIPTION")
	for _, s := range all {
		trusted := map[bool]string{true: "yes", false: "no"}[s.Trusted]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, cmp.Or(strings.Join(s.Agents, ", "), "none"), trusted, strings.Join(s.Tools, ", "), terminal.Cell(s.Folder), terminal.Cell(s.Description))
	}
	return w.Flush()
}
