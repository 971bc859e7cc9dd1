// Package onboard leads somebody from an empty home to the first answer of a bot: it asks
// for a model and a channel, tries both, and writes the settings.
//
// onboard.go has the order of the steps; dialogue.go asks questions, model.go and
// channel.go ask for the values to write, providers.go is the table of known providers of
// models, and settings.go writes the file and the secrets beside it.
package onboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"parley/cmd/parley/terminal"
)

// A Program has the functions of the command line that onboard calls: to find the file to write,
// and to try what was written.
type Program struct {
	// File returns the path of the configuration file to write.
	File func() (string, error)
	// Ask sends a question to the agent, as it is configured now, and prints the answer.
	Ask func(ctx context.Context, file, question string) error
	// Serve serves the channels until ctx is done.
	Serve func(ctx context.Context, file string) error
}

// A UsageError says that onboard was called wrongly.
type UsageError struct{ problem string }

// Error says what to do.
func (e *UsageError) Error() string { return e.problem }

// missing returns the error for a flag that must be given because there is no person at a terminal
// who can be asked; purpose says what the flag is for.
func missing(flag, purpose string) error {
	return &UsageError{fmt.Sprintf("nobody can be asked here, because this is no terminal: give %s (%s)", flag, purpose)}
}

// A Command is the command line of onboard. What its flags leave out is asked for.
type Command struct {
	Provider string `help:"Whose model answers: openai, anthropic, …, ollama, other, or demo." placeholder:"NAME"`
	BaseURL  string `help:"Where the model's server is, if it is none of those." placeholder:"URL"`
	KeyFile  string `help:"A file with the provider's key." placeholder:"FILE"`
	Model    string `help:"The model's name." placeholder:"NAME"`

	Channel      string `help:"Where people talk to it: ${platforms}, or none." placeholder:"PLATFORM"`
	TokenFile    string `help:"A file with the bot's token." placeholder:"FILE"`
	AppTokenFile string `help:"A file with the app's token (Slack)." placeholder:"FILE"`
	APIURL       string `help:"Another address of the platform's API." name:"api-url" placeholder:"URL"`
	Owner        string `help:"The owner's id on the platform." placeholder:"ID"`

	Listen string `help:"Where programs reach it over HTTP; none switches that off." placeholder:"ADDR"`

	Start bool `help:"Serve the channel at the end."`
	Yes   bool `help:"Replace a configuration that is there; the old one is kept beside it."`
}

// Help shows examples.
func (Command) Help() string {
	return `What the flags leave out is asked for; where nobody can be asked, each step has its flag. The settings are written to the file that --config names, else to the home's parley.toml. One that is there is kept under another name.

Examples:

  parley onboard

  parley onboard --provider ollama --model llama3.1

  parley onboard --provider openai --key-file key.txt --channel telegram --token-file token.txt --start`
}

// question is the first question to an agent, and demoQuestion one that the demo
// understands.
const (
	question     = "Say hello to me in one short sentence."
	demoQuestion = "write hello to hello.txt then list the files"
)

// Run asks for what the flags leave out, writes the settings, and lets the agent answer a first
// question.
func (c Command) Run(ctx context.Context, tty terminal.Terminal, p Program) error {
	d := &dialogue{in: tty.In, out: tty.Err, asks: term.IsTerminal(int(tty.In.Fd()))}
	file, err := p.File()
	if err != nil {
		return err
	}
	old, err := c.askToReplace(ctx, d, file)
	if err != nil {
		return err
	}
	s := settings{file: file, old: old}
	if s.model, err = c.chooseModel(ctx, d); err != nil {
		return err
	}
	if s.channel, err = c.chooseChannel(ctx, d); err != nil {
		return err
	}
	if s.listen, err = c.chooseListen(ctx, d); err != nil {
		return err
	}
	if err := s.write(); err != nil {
		return err
	}
	d.say("\nWritten: %s", file)
	if s.old != "" {
		d.say("What stood there is %s now.", s.old)
	}
	first := question
	if s.model.provider.name == demoProvider {
		first = demoQuestion
	}
	d.say("\nThe agent is asked: %s\n", first)
	if err := p.Ask(ctx, file, first); err != nil {
		return fmt.Errorf("the settings are written, but there is no answer yet (parley doctor says more): %w", err)
	}
	return c.begin(ctx, d, p, s)
}

// askToReplace asks whether the configuration file may be replaced, if there is one already. It
// returns the name under which the old file is to be kept; "" if there is none. It returns an error
// if the file may not be replaced.
func (c Command) askToReplace(ctx context.Context, d *dialogue, file string) (old string, err error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("look at %s: %w", file, err)
	}
	if !c.Yes {
		if !d.asks {
			return "", missing("--yes", file+" is there already; it would be kept under another name")
		}
		yes, err := d.confirm(ctx, fmt.Sprintf("%s is there already. Replace it? It is kept beside the new one.", file), false)
		if err != nil {
			return "", err
		}
		if !yes {
			return "", errors.New("nothing was changed")
		}
	}
	return nameForOld(file), nil
}

// begin serves the channel if the person wants that; otherwise it says how to go on.
func (c Command) begin(ctx context.Context, d *dialogue, p Program, s settings) error {
	ch := s.channel
	if ch.platform == "" {
		d.say("\nparley chat talks to it here. parley onboard adds a channel; docs/configuration.md has all that can be set.")
		return nil
	}
	start := c.Start
	if !start && d.asks {
		var err error
		if start, err = d.confirm(ctx, fmt.Sprintf("\nServe %s now? Ctrl-C ends it.", ch.title), true); err != nil {
			return err
		}
	}
	if !start {
		d.say("\nparley serve serves %s: it prints how the bot becomes yours.", ch.title)
		return nil
	}
	d.say("\nparley serve starts it the next time.")
	return p.Serve(ctx, s.file)
}

// secretsFolder is the folder of the files that hold secrets, beside the configuration file.
const secretsFolder = "secrets"

func secretPath(file, name string) string {
	return filepath.Join(filepath.Dir(file), secretsFolder, name)
}
