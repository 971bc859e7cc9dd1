package main

import (
	"io"
	"strings"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command; left out, all are listed."`
}

// Run prints what --help prints.
func (h helpCmd) Run(tty terminal) error {
	args := append(append([]string{}, h.Command...), "--help")
	if code := run(args, terminal{in: tty.in, out: tty.out, err: io.Discard}); code != exitDone {
		return &usageError{"there is no command " + strings.Join(h.Command, " ")}
	}
	return nil
}

// examples makes the part of a command's help that shows how it is called.
func examples(lines ...string) string {
	return "Examples:\n\n  " + strings.Join(lines, "\n\n  ")
}

// Help is shown below a command's flags; so are those that follow.
func (chatCmd) Help() string {
	return examples("parley chat", `parley chat -m "what is in notes.txt?"`, `parley chat --workspace . -m "list the files"`)
}

// Help shows examples.
func (serveCmd) Help() string {
	return examples("parley serve", "parley serve --config /etc/parley/parley.toml", "parley serve --role worker")
}

// Help shows examples.
func (sendCmd) Help() string {
	return examples(`parley send --to oncall "it works"`, `make 2>&1 | parley send --to slack:C0BUILDS --key build-7`, `parley send --to telegram:42 --file report.pdf --wait "the report"`)
}

// Help shows examples.
func (statusCmd) Help() string { return examples("parley status", "parley --json status") }

// Help shows examples.
func (sessionsCmd) Help() string {
	return examples("parley sessions", "parley sessions main:telegram:42", "parley --json sessions main:telegram:42 > log.jsonl")
}

// Help shows examples.
func (deadList) Help() string {
	return examples("parley dead-letters", "parley --json dead-letters list")
}

// Help shows examples.
func (deadShow) Help() string { return examples("parley dead-letters show ID") }

// Help shows examples.
func (deadReplay) Help() string {
	return examples("parley dead-letters replay ID", "parley dead-letters replay --all")
}

// Help shows examples.
func (deadDrop) Help() string {
	return examples("parley dead-letters drop ID", "parley dead-letters drop --all --yes")
}

// Help says that one of the two is given, and shows examples.
func (forgetCmd) Help() string {
	return "Give --user or --session, one of the two.\n\n" +
		examples("parley forget --user telegram:42", "parley forget --session main:slack:C0TEAM", "parley forget --yes --user telegram:42")
}

// Help shows examples.
func (backupCmd) Help() string {
	return examples("parley backup parley.backup", "parley backup - | ssh elsewhere 'cat > parley.backup'")
}

// Help shows examples.
func (restoreCmd) Help() string {
	return examples("parley restore parley.backup", "parley --home /srv/second restore parley.backup")
}

// Help shows examples.
func (migrateCmd) Help() string { return examples("parley migrate --to fleet.toml") }

// Help shows examples.
func (pairingList) Help() string {
	return examples("parley pairing list", "parley --json pairing list")
}

// Help shows examples.
func (pairingApprove) Help() string { return examples("parley pairing approve ABCD2345") }

// Help shows examples.
func (pairingRevoke) Help() string { return examples("parley pairing revoke telegram:42") }

// Help shows examples.
func (pairingOwner) Help() string {
	return examples("parley pairing owner", "parley pairing owner telegram")
}

// Help shows examples.
func (chatsCmd) Help() string { return examples("parley chats", "parley --json chats") }

// Help shows examples.
func (doctorCmd) Help() string {
	return examples("parley doctor", "parley --config /etc/parley/parley.toml doctor")
}

// Help shows examples.
func (configCheck) Help() string {
	return examples("parley config check", "parley --config parley.toml config check")
}

// Help shows examples.
func (versionCmd) Help() string { return examples("parley version", "parley --json version") }

// Help shows where the script goes.
func (completionCmd) Help() string {
	return examples(`source <(parley completion bash)`, `parley completion zsh > "${fpath[1]}/_parley"`, `parley completion fish > ~/.config/fish/completions/parley.fish`)
}

// Help shows examples.
func (helpCmd) Help() string { return examples("parley help", "parley help pairing approve") }
