package nodelinks

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"parley/agent/nodes"
	"parley/bus"
	"parley/cmd/parley/config"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/ssh"
)

// targetHold begins the name on the bus that the process with the connection to a target holds.
const targetHold = "nodes/ssh/"

const (
	minRest     = time.Second // the shortest and the longest pause before ssh is started again
	maxRest     = time.Minute
	stableAfter = time.Minute // after a link that lasted this long, the pause is minRest again
)

// Reload makes RunTargets keep connections to the targets that the next settings name. The next settings may not be
// the current ones yet when RunTargets learns of them.
func (n *Nodes) Reload(next *config.Config) (apply func(), err error) {
	return func() {
		select {
		case <-n.reloaded: // drop targets that RunTargets has not read yet
		default:
		}
		n.reloaded <- next.SSHTargets()
	}, nil
}

// RunTargets keeps a connection to each ssh:// target on which agents work, until ctx is done. Each connection
// belongs to one process of the fleet.
func (n *Nodes) RunTargets(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var reaching sync.WaitGroup
	ends := map[ssh.Target]context.CancelFunc{}
	targets := n.cfg.Settings().SSHTargets()
	for ctx.Err() == nil {
		named := map[ssh.Target]bool{}
		for _, t := range targets {
			named[t] = true
			if ends[t] != nil {
				continue
			}
			reached, end := context.WithCancel(ctx)
			ends[t] = end
			reaching.Go(func() {
				if err := n.keepLinked(reached, t); err != nil {
					fail(err)
				}
			})
		}
		for t, end := range ends {
			if !named[t] { // if it is named again, its name stays held until this connection has ended
				end()
				delete(ends, t)
			}
		}
		select {
		case targets = <-n.reloaded:
		case <-ctx.Done():
		}
	}
	reaching.Wait()
	for _, end := range ends {
		end()
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// keepLinked keeps a connection to a target, as long as this process holds its name, until ctx is done.
func (n *Nodes) keepLinked(ctx context.Context, t ssh.Target) error {
	return bus.WhileHeld(ctx, n.cfg.Holds, targetHold+t.Name(), func(held context.Context) error {
		log := n.cfg.Log.With(slog.String("target", t.String()), slog.String("node", t.Name()))
		said := ""
		for rest := minRest; held.Err() == nil; rest = min(2*rest, maxRest) {
			began := time.Now()
			err := n.linkTarget(held, t, log)
			if held.Err() != nil {
				break
			}
			if time.Since(began) >= stableAfter {
				rest, said = minRest, ""
			}
			level := slog.LevelWarn
			if text := textOf(err); text == said { // the log already says so
				level = slog.LevelDebug
			} else {
				said = text
			}
			attrs := []slog.Attr{slog.Any("error", err)}
			if p, ok := errors.AsType[*ssh.Problem](err); ok {
				attrs = append(attrs, slog.String("remedy", p.Remedy(t)))
			}
			log.LogAttrs(held, level, "an ssh target can't be reached, or its link has ended; trying again and again", attrs...)
			select {
			case <-time.After(rest/2 + rand.N(rest)):
			case <-held.Done():
			}
		}
		return nil
	})
}

// textOf returns the text of an error; "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// linkTarget starts ssh, and serves the link of the target until it ends. Then ssh has ended, too.
func (n *Nodes) linkTarget(ctx context.Context, t ssh.Target, log *slog.Logger) error {
	key, err := n.key(ctx)
	if err != nil {
		return err
	}
	way := ssh.Connector{Target: t, Env: os.Environ(), Redact: n.cfg.Redact, Log: log}
	c, err := way.Connect(ctx, ssh.Greeting{Key: key.Public().(ed25519.PublicKey), Name: t.Name()}) //nolint:forcetypeassert // documented to be of this type
	if err != nil {
		return err
	}
	defer c.Wait()
	has := toolsThere(n.cfg.Offered(slices.Contains(c.Hello.Capabilities, "exec")))
	return nodes.Target{Name: t.Name(), Key: c.Hello.Key, Conn: c, Targets: n.cfg.Table, Tools: has}.Serve(ctx, n.Service)
}

// toolsThere returns tools in the form in which nodes offer them.
func toolsThere(specs []tools.Spec) (all []toolnodes.Tool) {
	for _, s := range specs {
		all = append(all, toolnodes.Tool{
			Name: s.Name, Description: s.Description, Schema: s.Schema, Pure: s.Effect == tools.Pure, Timeout: s.LongestTimeout().Milliseconds(),
		})
	}
	return all
}
