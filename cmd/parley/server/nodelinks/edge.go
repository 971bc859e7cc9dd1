package nodelinks

import (
	"context"

	"parley/agent/nodes"
	"parley/bus"
	"parley/tools/nodes/mqtt"
)

// brokerHold is the name that the process holds which has the connection to the MQTT broker.
const brokerHold = "nodes/mqtt"

// RunEdge gives edge agents over MQTT their calls, if the settings name a broker, until ctx is done. One process of the fleet
// does so at a time.
func (n *Nodes) RunEdge(ctx context.Context) error {
	at := n.cfg.Settings().MQTT // it changes with the next start only
	if at.URL == "" {
		<-ctx.Done()
		return nil
	}
	return bus.WhileHeld(ctx, n.cfg.Holds, brokerHold, func(held context.Context) error {
		return n.ServeBroker(held, nodes.BrokerConfig{
			Server: mqtt.Server{URL: at.URL, User: at.User, Password: string(at.Password)}, Edges: n.cfg.Table,
			Tools: func(name string) []string { return n.cfg.Settings().Nodes[name].Tools },
			May: func(name string) bool { // the names of their tools would begin alike
				_, isServer := n.cfg.Settings().MCP[name]
				return !isServer
			},
		})
	})
}
