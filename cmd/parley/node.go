package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/term"

	"parley/cmd/parley/config"
	"parley/cmd/parley/node"
	"parley/cmd/parley/onboard"
	"parley/cmd/parley/terminal"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

type nodeCmd struct {
	Run  nodeRun  `cmd:"" default:"withargs" help:"Run this device's node, until it's told to end."`
	Join nodeJoin `cmd:"" help:"Join a server with a code that an owner got from parley nodes invite."`
}

type nodeRun struct {
	Install   bool `help:"Write a systemd unit that starts the node and keeps it running, instead of running it now."`
	Uninstall bool `help:"Stop the service that --install set up, and remove its unit."`
	Start     bool `help:"With --install: start it now without asking."`
	Yes       bool `help:"With --install: replace an existing unit."`
	Stdio     bool `help:"Be the node for the server that runs this over ssh, as runs_on = \"ssh://…\" says, without having joined."`
	Check     bool `help:"With --stdio: only say what the server would hear first."`
}

type nodeJoin struct {
	URL  string `arg:"" name:"url" help:"The server's address, such as https://parley.example.org, or that of an MQTT broker where it is, such as mqtts://broker.example.org."`
	Code string `arg:"" help:"The code from parley nodes invite."`
	Name string `help:"The node's name; default: this machine's." placeholder:"NAME"`
}

// Help shows examples.
func (nodeRun) Help() string {
	return examples("parley node", "parley node --install", "parley --home /srv/pi node")
}

// Help shows examples.
func (nodeJoin) Help() string {
	return examples("parley node join https://parley.example.org q7kzm-2vxha", "parley node join https://parley.example.org q7kzm-2vxha --name kitchen",
		"parley node join mqtts://broker.example.org q7kzm-2vxha-h4fz2kqm7ynvx3wcd5sgjtb6ra")
}

// Run runs the node of a home until SIGINT or SIGTERM. With --install or --uninstall, it sets up or removes the systemd
// service instead.
func (c nodeRun) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	o := config.Options{File: flags.Config, Home: flags.Home, LookLocal: true}
	if c.Uninstall {
		return uninstallService(ctx, flags, onboard.Service{Node: true}, tty)
	}
	cfg, err := loadConfig(o)
	if err != nil {
		return err
	}
	if c.Install {
		return c.install(ctx, flags, cfg, tty)
	}
	log := newLogger(cfg, tty.Err)
	for _, notice := range cfg.Notices() {
		log.Warn("setting", slog.String("notice", notice))
	}
	switch {
	case c.Check && !c.Stdio, c.Stdio && !c.Check && term.IsTerminal(int(tty.In.Fd())):
		return &usageError{textOverSSH}
	case c.Check:
		return node.Check(ctx, cfg, thisBuild().Version, tty.Out, log)
	case c.Stdio:
		return node.Stdio(ctx, cfg, thisBuild().Version, log)
	}
	return node.Run(ctx, cfg, thisBuild().Version, log)
}

// install writes the systemd unit that starts "parley node".
func (c nodeRun) install(ctx context.Context, flags *globalFlags, cfg *config.Config, tty terminal.Terminal) error {
	s, path, err := serviceFor(flags, onboard.Service{Config: cfg.File, Node: true, Camera: len(cfg.Node.Camera) > 0})
	if err != nil {
		return err
	}
	if home := s.ItsHome(); !node.Joined(home) {
		return fmt.Errorf(textJoinFirst, home)
	}
	return installService(ctx, s, path, tty, c.Start, c.Yes)
}

// Run makes this device join a server.
func (c nodeJoin) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	cfg, err := loadConfig(config.Options{File: flags.Config, Home: flags.Home, LookLocal: true, WithoutSecrets: !node.IsBroker(c.URL)})
	if err != nil {
		return err
	}
	name := c.Name
	if name == "" {
		name = cfg.Node.Name
	}
	if name == "" {
		name = node.DefaultName()
	}
	join := func() (ed25519.PublicKey, node.Membership, error) {
		return node.Join(ctx, cfg.Home, c.URL, c.Code, name)
	}
	if node.IsBroker(c.URL) {
		join = func() (ed25519.PublicKey, node.Membership, error) {
			return node.JoinThrough(ctx, cfg, c.URL, c.Code, name)
		}
	}
	key, m, err := join()
	if err != nil {
		return err
	}
	fingerprint := wire.Fingerprint(key)
	if flags.JSON {
		return plainjson.NewEncoder(tty.Out).Encode(map[string]string{"name": m.Name, "server": m.Server, "fingerprint": fingerprint})
	}
	fmt.Fprintf(tty.Out, textNodeJoined, m.Server, m.Name, fingerprint)
	return nil
}

// needsSetup reports whether starting the program again is of no use until somebody has done something.
func needsSetup(err error) bool {
	_, ok := errors.AsType[*node.SetupError](err)
	return ok
}
