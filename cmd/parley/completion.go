package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/cmd/parley/config"
	"parley/cmd/parley/terminal"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help shows where to put the script.
func (completionCmd) Help() string {
	return examples(`source <(parley completion bash)`, `parley completion zsh > "${fpath[1]}/_parley"`, `parley completion fish > ~/.config/fish/completions/parley.fish`)
}

// Run prints a script that lets a shell complete commands and flags, and the agents' names.
func (c completionCmd) Run(flags *globalFlags, tty terminal.Terminal) error {
	parser, err := newParser(&cli{}, tty)
	if err != nil {
		return err
	}
	agents := []string{config.MainAgent}
	// If the configuration cannot be read, the shell still completes the rest.
	if cfg, err := loadConfig(config.Options{File: flags.Config, Home: flags.Home, WithoutSecrets: true}); err == nil {
		agents = slices.Sorted(maps.Keys(cfg.Agents))
	}
	printCompletion(tty.Out, c.Shell, parser.Model.Node, map[string][]string{"agent": agents})
	return nil
}

// printCompletion prints the script with which a shell completes the commands and flags of the
// program whose command line is n. shell is bash, zsh or fish; values contains the values to offer
// for some flags, by the flags' names.
func printCompletion(out io.Writer, shell string, n *kong.Node, values map[string][]string) {
	var all []offeredCommand
	collectOffered(n, "", nil, &all)
	switch shell {
	case "fish":
		printFish(out, all, values)
	case "zsh":
		fmt.Fprintln(out, "#compdef parley\nautoload -U +X bashcompinit && bashcompinit")
		printBash(out, all, values)
	default:
		printBash(out, all, values)
	}
}

// An offeredCommand is a command with the subcommands and flags that completion offers after it.
type offeredCommand struct {
	path     string // "pairing list"; "" means the program
	commands []*kong.Node
	flags    []*kong.Flag
}

// collectOffered appends a command, followed by its subcommands, to all. above are the flags of the
// commands above it, which it also accepts.
func collectOffered(n *kong.Node, path string, above []*kong.Flag, all *[]offeredCommand) {
	c := offeredCommand{path: path, flags: append([]*kong.Flag{}, above...)}
	c.flags = append(c.flags, n.Flags...)
	for _, child := range n.Children {
		if child.Type == kong.CommandNode {
			c.commands = append(c.commands, child)
		}
	}
	*all = append(*all, c)
	for _, child := range c.commands {
		collectOffered(child, strings.TrimSpace(path+" "+child.Name), c.flags, all)
	}
}

// wordLine returns the subcommands and flags on one line.
func (c offeredCommand) wordLine() string {
	var words []string
	for _, child := range c.commands {
		words = append(words, child.Name)
	}
	for _, f := range c.flags {
		words = append(words, "--"+f.Name)
	}
	return strings.Join(words, " ")
}

// printBash prints a shell function that follows the words before the cursor through the commands,
// and offers what may come next. Where nothing of that fits, the shell offers files.
func printBash(out io.Writer, all []offeredCommand, values map[string][]string) {
	fmt.Fprintln(out, `_parley() {
  local cur="${COMP_WORDS[COMP_CWORD]}" at="" word words=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in`)
	var steps []string
	for _, c := range all[1:] {
		step := c.path
		if !strings.Contains(step, " ") {
			step = " " + step // a command below the program itself
		}
		steps = append(steps, fmt.Sprintf("%q", step))
	}
	fmt.Fprintf(out, "      %s) at=\"${at:+$at }$word\" ;;\n    esac\n  done\n  case \"$at\" in\n", strings.Join(steps, "|"))
	for _, c := range all {
		fmt.Fprintf(out, "    %q) words=%q ;;\n", c.path, c.wordLine())
	}
	fmt.Fprintln(out, "  esac\n  case \"${COMP_WORDS[COMP_CWORD-1]}\" in")
	for _, flag := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(out, "    --%s) words=%q ;;\n", flag, strings.Join(values[flag], " "))
	}
	fmt.Fprintln(out, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _parley parley`)
}

// printFish prints a line for each command and flag, with its help.
func printFish(out io.Writer, all []offeredCommand, values map[string][]string) {
	for _, c := range all {
		var names []string
		for _, child := range c.commands {
			names = append(names, child.Name)
		}
		var is []string
		for name := range strings.FieldsSeq(c.path) {
			is = append(is, "__fish_seen_subcommand_from "+name)
		}
		if len(names) > 0 {
			is = append(is, "not __fish_seen_subcommand_from "+strings.Join(names, " "))
		}
		when := ""
		if len(is) > 0 {
			when = fmt.Sprintf(" -n '%s'", strings.Join(is, "; and "))
		}
		for _, child := range c.commands {
			fmt.Fprintf(out, "complete -c parley -f%s -a %s -d %q\n", when, child.Name, child.Help)
		}
		for _, f := range c.flags {
			value := " -r"
			if f.IsBool() {
				value = ""
			} else if known := values[f.Name]; len(known) > 0 {
				value = fmt.Sprintf(" -x -a %q", strings.Join(known, " "))
			}
			fmt.Fprintf(out, "complete -c parley%s -l %s%s -d %q\n", when, f.Name, value, f.Help)
		}
	}
}
