package device

import (
	"time"

	"parley/tools"
	"parley/tools/nodes"
)

// OfferOf describes tools for a server.
func OfferOf(set *tools.Set, capabilities []string, release, platform string) nodes.Offer {
	o := nodes.Offer{Tools: []nodes.Tool{}, Capabilities: capabilities, Release: release, Platform: platform}
	for _, s := range set.Specs() {
		o.Tools = append(o.Tools, nodes.Tool{
			Name: s.Name, Description: tools.Clip(s.Description, nodes.MaxDescription), Schema: s.Schema, Pure: s.Effect == tools.Pure,
			Timeout: s.LongestTimeout().Milliseconds(),
		})
	}
	return o
}

// limitOf returns how long a call may take: the time of the tool and the arguments, but no longer than the server
// waits.
func limitOf(s tools.Spec, args []byte, server int64) time.Duration {
	limit := min(s.TimeoutFor(args), nodes.MaxTimeout)
	if server <= 0 {
		return limit
	}
	return min(limit, time.Duration(min(server, nodes.MaxTimeout.Milliseconds()))*time.Millisecond)
}
