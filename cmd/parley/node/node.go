// Package node is the command parley node, which runs calls for the agents of a server on this device.
//
// It stores only the device's key and its server (membership.go), the journal of calls, and the folder in which
// agents work. It opens neither a bus nor a store.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"parley/bus/sqlitebus"
	"parley/cmd/parley/config"
	"parley/tools/crash"
	"parley/tools/guard"
	"parley/tools/nodes/device"
	"parley/tools/nodes/tunnel"
	"parley/tools/nodes/wire"
)

// These are the names of files and folders in a node's home.
const (
	keyFile         = "node.key"
	membershipFile  = "node.json"
	lockName        = "node"
	journalFolder   = "journal"
	workspaceFolder = "workspace"
)

// A SetupError says what a person has to do before a node can run. Starting the node again would fail in the same
// way.
type SetupError struct{ text string }

// Error returns what is wrong, and what to do.
func (e *SetupError) Error() string { return e.text }

func newSetupError(format string, args ...any) error {
	return &SetupError{fmt.Sprintf(format, args...)}
}

// Run runs the node of a home until ctx ends. It returns a *SetupError or a *config.SettingError if a person has to
// do something first.
func Run(ctx context.Context, c *config.Config, release string, log *slog.Logger) error {
	m, key, err := read(c.Home)
	if err != nil {
		return err
	}
	if c.Node.Name != "" && c.Node.Name != m.Name {
		return newSetupError(textOtherName, c.Node.Name, m.Name)
	}
	if c.Node.Server != "" { // the server has moved
		m.Server = c.Node.Server
	}
	unlock, err := lock(c.Home)
	if err != nil {
		return err
	}
	defer unlock()
	made, equipment, err := prepare(ctx, c, release, log)
	if err != nil {
		return err
	}
	defer equipment.close()
	log.Info("the node offers tools", slog.String("node", m.Name), slog.Int("tools", len(made.Link.Offer.Tools)), slog.Any("capabilities", made.Link.Offer.Capabilities))
	made.Link = wire.Node{Server: m.Server, ServerKey: m.ServerKey, Name: m.Name, Key: key, Offer: made.Link.Offer}
	if IsBroker(m.Server) {
		made.Link.OpenConn, made.Link.Timing.Answer = brokerNode(c, m.Server, m.Name, key, tunnel.MatchesKey(m.ServerKey)).Dial, maxPingAge
	}
	made.Journal = filepath.Join(c.Home, journalFolder)
	return explain(made.Run(ctx), m.Server)
}

// prepare returns a node with its tools, its rules and its offer, but without a link and a journal. The caller must
// close the equipment unless there is an error.
func prepare(ctx context.Context, c *config.Config, release string, log *slog.Logger) (n device.Node, _ *equipment, err error) {
	equipment, err := equip(ctx, c, log)
	if err != nil {
		return n, nil, err
	}
	defer func() {
		if err != nil {
			equipment.close()
		}
	}()
	rules, err := guard.New(equipment.denyRules(c.Node.Deny))
	if err != nil {
		return n, nil, newSetupError(textDeny, err)
	}
	asks, err := equipment.askRules(c.Node.Ask)
	if err != nil {
		return n, nil, newSetupError(textAsk, err)
	}
	offer := device.OfferOf(equipment.tools, equipment.capabilities, release, runtime.GOOS+"/"+runtime.GOARCH)
	offer.Ask = c.Node.Ask
	if err := wire.CheckOffer(offer); err != nil {
		return n, nil, newSetupError(textOffer, err)
	}
	return device.Node{
		Link:          wire.Node{Offer: offer},
		Tools:         equipment.tools,
		Job:           equipment.job,
		Decide:        rules.Decide,
		NeedsApproval: asks.Decide,
		Log:           log,
		Timing:        device.Timing{MaxDelay: crash.MostRest()},
		Point:         crash.Points(),
	}, equipment, nil
}

// explain returns a *SetupError for an error that would occur again if the node was started again, and any other
// error unchanged.
func explain(err error, server string) error {
	if damaged, ok := errors.AsType[*device.DamagedError](err); ok {
		return newSetupError(textDamaged, damaged)
	}
	if wrong := wrongAddress(err, server); wrong != nil {
		return &SetupError{wrong.Error()}
	}
	return err
}

// wrongAddress returns an error that says what is wrong with a server's address, or nil if err has another reason.
func wrongAddress(err error, server string) error {
	switch {
	case errors.Is(err, wire.ErrNotHTTPS):
		return fmt.Errorf(textPlain, server)
	case errors.Is(err, wire.ErrAddress):
		return fmt.Errorf(textAddress, server)
	}
	return nil
}

// lock keeps every other process from running the node of a home, until unlock is called.
func lock(home string) (unlock func(), err error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make the home: %w", err)
	}
	held, err := sqlitebus.Lock(filepath.Join(home, lockName))
	if busy, ok := errors.AsType[*sqlitebus.InUseError](err); ok {
		return nil, fmt.Errorf(textRuns, busy)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the home: %w", err)
	}
	return func() { _ = held.Close() }, nil // the kernel releases the lock in any case
}
