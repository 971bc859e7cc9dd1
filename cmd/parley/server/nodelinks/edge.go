package nodelinks

import (
	"context"
	"sync"

	"parley/agent/nodes"
	"parley/bus"
	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/tunnel"
)

// brokerHold is the name on the bus that the process with the connections to the MQTT broker holds.
const brokerHold = "nodes/mqtt"

// RunBroker accepts the links of nodes that come through the MQTT broker, and sends edge agents there their calls,
// until ctx is done. It does nothing if the settings name no broker. One process of the fleet does this at a time.
func (n *Nodes) RunBroker(ctx context.Context) error {
	at := n.cfg.Settings().MQTT // the broker changes only at the next start
	if at.URL == "" {
		<-ctx.Done()
		return nil
	}
	return bus.WhileHeld(ctx, n.cfg.Holds, brokerHold, func(held context.Context) error {
		broker := mqtt.Server{URL: at.URL, User: at.User, Password: string(at.Password)}
		if at.Compatible == "" {
			n.listenAgain(held, tunnel.Place{Broker: broker, Prefix: at.Prefix})
			return nil
		}
		var beside sync.WaitGroup
		defer beside.Wait()
		beside.Go(func() { n.listenAgain(held, tunnel.Place{Broker: broker, Prefix: at.Prefix}) })
		return n.ServeBroker(held, nodes.BrokerConfig{
			Server: broker, Edges: n.cfg.Table,
			Tools:       func(name string) []string { return n.cfg.Settings().Nodes[name].Tools },
			MayHaveName: func(name string) bool { return !isReserved(n.cfg.Settings(), name) },
		})
	})
}
