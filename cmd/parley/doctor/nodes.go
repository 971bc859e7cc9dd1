package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/terminal/client"
	"parley/sessions/nodes"
	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/ssh"
	"parley/tools/nodes/tunnel"
)

// checkNodes asks the server of this home for its nodes, and returns a finding for each that was not removed, and for
// each agent that can't work on its node. If no server is running, there are no findings.
func checkNodes(ctx context.Context, cfg *config.Config) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var got struct {
		Nodes []nodelinks.Node `json:"nodes"`
	}
	if client.Dial(cfg.Home).Do(ctx, http.MethodGet, "/v1/nodes", "", nil, &got) != nil {
		return nil
	}
	for _, n := range got.Nodes {
		if n.State != nodes.Revoked {
			found = append(found, judgeNode(n))
		}
	}
	return append(found, findAgentsWithoutTheirNode(cfg, got.Nodes)...)
}

// judgeNode returns the finding about a node.
func judgeNode(n nodelinks.Node) Finding {
	f := Finding{Part: "node " + n.Name, State: note}
	switch {
	case n.State == nodes.Waiting:
		f.Detail, f.Remedy = textNodeWaits, fmt.Sprintf(textNodeAccept, n.Name)
	case n.SSH && n.Target == "":
		f.Detail, f.Remedy = textTargetUnnamed, fmt.Sprintf(textTargetRevoke, n.Name)
	case n.SSH && !n.Here:
		f.Detail, f.Remedy = fmt.Sprintf(textTargetAway, n.Target), textTargetLook
	case n.Edge && !n.Here:
		f.Detail, f.Remedy = textEdgeAway, textEdgeStart
	case !n.Here && n.Since == nil:
		f.Detail, f.Remedy = textNodeNever, textNodeStart
	case !n.Here:
		f.Detail, f.Remedy = fmt.Sprintf(textNodeAway, n.Since.Local().Format(time.DateTime)), textNodeStart
	case len(n.Aside) > 0:
		f.Detail, f.Remedy = fmt.Sprintf(textNodeAside, len(n.Tools), len(n.Aside)), fmt.Sprintf(textNodeAccept, n.Name)
	case len(n.Agents) == 0:
		f.Detail, f.Remedy = textNodeUnused, fmt.Sprintf(textNodeAgents, n.Name)
	default:
		f.State, f.Detail = fine, fmt.Sprintf(textNodeHere, len(n.Tools))
	}
	return f
}

// isNodeNamed reports whether the settings name a node.
func isNodeNamed(cfg *config.Config, name string) bool {
	if _, has := cfg.Nodes[name]; has {
		return true
	}
	for _, a := range cfg.Agents {
		if slices.Contains(a.Nodes, name) || a.Node() == name {
			return true
		}
	}
	return false
}

// checkBroker connects to the MQTT broker where nodes and edge agents are reached, if the settings name one.
func checkBroker(ctx context.Context, cfg *config.Config) []Finding {
	if cfg.MQTT.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	f := Finding{Part: "MQTT broker", State: fine, Detail: textBrokerWorks}
	at := mqtt.Server{URL: cfg.MQTT.URL, User: cfg.MQTT.User, Password: string(cfg.MQTT.Password)}
	err := tunnel.Place{Broker: at, Prefix: cfg.MQTT.Prefix}.Check(ctx)
	if cfg.MQTT.Compatible != "" && (err == nil || errors.Is(err, mqtt.ErrRefused)) { // the broker may be only for edge agents
		var conn *mqtt.Conn
		if conn, err = at.Dial(ctx, func(mqtt.Message) {}); err == nil {
			conn.Close()
		}
	}
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf(textBrokerFails, err), textBrokerRemedy
	}
	return []Finding{f}
}

// checkSSHTargets connects to each ssh:// target on which an agent works, and returns a finding for each. It disturbs no link
// that a server has to it.
func checkSSHTargets(ctx context.Context, cfg *config.Config) []Finding {
	all := cfg.SSHTargets()
	names := slices.Sorted(maps.Keys(all))
	return sideBySide(len(names), func(i int) Finding { return checkSSHTarget(ctx, all[names[i]]) })
}

func checkSSHTarget(ctx context.Context, t ssh.Target) Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	f := Finding{Part: t.String(), State: fine}
	hello, err := ssh.Connector{Target: t, Env: os.Environ(), Log: slog.New(slog.DiscardHandler)}.Check(ctx)
	problem, known := errors.AsType[*ssh.Problem](err)
	switch {
	case known:
		f.State, f.Detail, f.Remedy = wrong, problem.Error(), problem.Remedy(t)
	case err != nil:
		silent := &ssh.Problem{Kind: ssh.NoOutput}
		f.State, f.Detail, f.Remedy = wrong, silent.Error(), silent.Remedy(t)
	case !slices.Contains(hello.Capabilities, "exec"):
		f.State, f.Detail, f.Remedy = note, fmt.Sprintf(textTargetNoSandbox, hello.Release), textTargetSandbox
	default:
		f.Detail = fmt.Sprintf(textTargetWorks, hello.Release)
	}
	return f
}
