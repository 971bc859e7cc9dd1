// Package onboard leads somebody from an empty home to the first answer of a bot: it asks for a model and a
// channel, tries both, and writes the settings. It also adds a model or a channel to existing settings.
//
// onboard.go defines the order of the steps; dialogue.go asks questions, model.go and channel.go ask for the values
// to write, providers.go is the table of known model providers, settings.go writes the file and the secrets beside
// it, and addition.go changes an existing file. unit.go writes the unit file with which systemd starts Parley and
// keeps it running.
package onboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"parley/cmd/parley/config"
	"parley/cmd/parley/terminal"
)

// A Program holds the functions of the command line that onboard calls: to find the file to write, and to try what
// was written.
type Program struct {
	// File returns the path of the configuration file to write.
	File func() (string, error)
	// Load reads a configuration file. Its error says why a server would not start with that file.
	Load func(file string) (*config.Config, error)
	// Ask sends a question to the agent, with the configuration in file, and prints the answer.
	Ask func(ctx context.Context, file, question string) error
	// Serve serves the channels of the configuration in file until ctx is done. It calls answered once the first
	// message on that channel was answered.
	Serve func(ctx context.Context, file, channel string, answered func()) error
}

// A UsageError says that onboard was called incorrectly.
type UsageError struct{ problem string }

// Error returns what was wrong with the call and, if there is one, the remedy.
func (e *UsageError) Error() string { return e.problem }

// missing returns the error for a flag that must be given because there is no person at a terminal to ask; purpose
// says what the flag is for.
func missing(flag, purpose string) error {
	return &UsageError{fmt.Sprintf(textCannotAsk, flag, purpose)}
}

// A Command is the command line of onboard. It asks for what the flags leave out.
type Command struct {
	Provider string `help:"Whose model answers: openai, anthropic, …, ollama, other, or demo." placeholder:"NAME"`
	BaseURL  string `help:"The address of the model's server, if it's none of those." placeholder:"URL"`
	KeyFile  string `help:"A file with the provider's key." placeholder:"FILE"`
	Model    string `help:"The model's name." placeholder:"NAME"`

	Channel      string `help:"Where people talk to the bot: ${platforms}, or none." placeholder:"PLATFORM"`
	TokenFile    string `help:"A file with the bot's token." placeholder:"FILE"`
	AppTokenFile string `help:"A file with the app's token (Slack)." placeholder:"FILE"`
	APIURL       string `help:"A different address for the platform's API." name:"api-url" placeholder:"URL"`
	Owner        string `help:"The owner's id on the platform." placeholder:"ID"`

	Listen string `help:"Where programs reach the bot over HTTP, or \"none\" to turn HTTP off." placeholder:"ADDR"`

	Start bool `help:"Start serving the channel when it's set up."`
	Add   bool `help:"Add to the existing configuration, and change nothing else in it." xor:"present"`
	Yes   bool `help:"Replace the existing configuration, and keep the old one next to it." xor:"present"`
}

// Help shows examples.
func (Command) Help() string {
	return textHelp
}

// demoQuestion is the first question if the model is the built-in demo, which understands only a few requests.
const demoQuestion = "write hello to hello.txt then list the files"

// A setup is one run of onboard: the settings to ask for, and the answers so far.
type setup struct {
	Command
	settings
	d       *dialogue
	program Program
}

// Run asks for what the flags leave out, writes the settings, and makes the agent answer a first question.
func (c Command) Run(ctx context.Context, tty terminal.Terminal, p Program) error {
	s := &setup{Command: c, program: p, d: &dialogue{in: tty.In, out: tty.Err, interactive: term.IsTerminal(int(tty.In.Fd()))}}
	var err error
	if s.file, err = p.File(); err != nil {
		return err
	}
	if s.d.interactive {
		s.d.say(textHowToAnswer, backCommand)
	}
	err = s.d.walk(ctx, []step{
		s.lookAtPresent,
		s.chooseProvider, s.chooseServer, s.chooseKey, s.chooseModelName, s.chooseUse,
		s.choosePlatform, s.chooseTokens, s.invite, s.chooseOwner,
		s.chooseListen, s.confirmWriting,
	})
	if err != nil {
		return err
	}
	if err := s.write(p.Load); err != nil {
		return err
	}
	s.d.say("\nWritten: %s", s.file)
	if s.old != "" {
		s.d.say(textOldFile, s.old)
	}
	if err := s.askFirst(ctx); err != nil {
		return err
	}
	return s.begin(ctx)
}

// These are the three things that can be done with an existing configuration.
const (
	addChannel = "channel"
	addModel   = "model"
	startOver  = "replace"
)

// lookAtPresent asks what to do with the configuration file, if one exists.
func (s *setup) lookAtPresent(ctx context.Context) error {
	s.present, s.old, s.addsModel, s.addsChannel = nil, "", false, false
	if _, err := os.Lstat(s.file); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("check %s: %w", s.file, err)
	}
	if s.Yes {
		s.old = nameForOld(s.file)
		return nil
	}
	what, err := s.choosePresent(ctx)
	if err != nil {
		return err
	}
	if what == startOver {
		s.old = nameForOld(s.file)
		return nil
	}
	present, err := s.program.Load(s.file)
	if err != nil {
		return fmt.Errorf("the configuration has errors, so onboard can't add to it: fix them, or replace it with --yes: %w", err)
	}
	s.present = present
	return nil
}

// choosePresent asks whether to add a channel or a model to the existing configuration, or to replace it. Flags can
// answer this, too; what is then "".
func (s *setup) choosePresent(ctx context.Context) (what string, err error) {
	s.addsChannel = s.Channel != "" && s.Channel != noChannel
	s.addsModel = s.Provider != "" || s.BaseURL != ""
	switch {
	case s.Add && (s.addsChannel || s.addsModel):
		return "", nil
	case !s.d.interactive && s.Add:
		return "", missing("--channel or --provider", "what to add")
	case !s.d.interactive:
		return "", missing("--add or --yes", s.file+" already exists; --add adds to it, and --yes replaces it and keeps the old one under another name")
	}
	what, err = s.d.choose(ctx, s.file+textExists, []choice{
		{addChannel, "add a chat platform"},
		{addModel, "add a model, or replace the demo with one"},
		{startOver, "start over, and keep your current file next to the new one"},
	})
	s.addsChannel, s.addsModel = what == addChannel, what == addModel
	return what, err
}

// asksModel reports whether this run sets up a model.
func (s *setup) asksModel() bool { return s.present == nil || s.addsModel }

// asksChannel reports whether this run sets up a channel.
func (s *setup) asksChannel() bool { return s.present == nil || s.addsChannel }

// confirmWriting shows what is about to be written, and asks whether it is right.
func (s *setup) confirmWriting(ctx context.Context) error {
	if !s.d.interactive {
		return nil
	}
	var parts []string
	if s.asksModel() {
		parts = append(parts, s.model.describe())
	}
	if s.channel.platform != "" {
		parts = append(parts, s.channel.title)
	}
	s.d.say(textEverything, strings.Join(parts, ", on "), s.file)
	yes, err := s.d.confirm(ctx, "Write it?")
	if err == nil && !yes {
		return errors.New("nothing was written")
	}
	return err
}

// askFirst sends the first question to the agent.
func (s *setup) askFirst(ctx context.Context) error {
	first := textFirstMessage
	if s.asksModel() && s.model.provider.name == demoProvider {
		first = demoQuestion
	}
	if s.present != nil && (!s.present.AnyModel() && !s.addsModel || s.present.OnlyDemo() && !s.addsModel) {
		return nil // this bot has no model, or still only the demo, which was tried before
	}
	s.d.say(textAskingAgent, first)
	if err := s.program.Ask(ctx, s.file, first); err != nil {
		return fmt.Errorf("the settings have been written, but the agent hasn't answered (parley doctor has the details): %w", err)
	}
	return nil
}

// begin serves the channel if the person wants that; otherwise it says how to continue.
func (s *setup) begin(ctx context.Context) error {
	d, ch := s.d, s.channel
	if ch.platform == "" {
		d.say(textNextChat)
		return nil
	}
	start := s.Start
	if !start && d.interactive {
		var err error
		d.say(textWriteThere, ch.title)
		start, err = d.confirm(ctx, fmt.Sprintf(textStartServing, ch.title))
		if err != nil && !errors.Is(err, errBack) {
			return err
		}
	}
	if !start {
		d.say(textNextServe, ch.title)
		return nil
	}
	return s.program.Serve(ctx, s.file, ch.name, func() {
		d.say(textItWorks, ch.title)
	})
}

// secretsFolder is the folder for files with secrets, beside the configuration file.
const secretsFolder = "secrets"

func secretPath(file, name string) string {
	return filepath.Join(filepath.Dir(file), secretsFolder, name)
}
