package discord

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/channels/discord/socket"
)

// findGateway asks Discord for the address of its gateway (the server that sends events), and how many sessions may
// be started.
func (c *api) findGateway(ctx context.Context) (socket.GatewayInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var g discordgo.GatewayBotResponse
	if err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointGatewayBot}, &g); err != nil {
		if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
			refusal.Fault = channels.Retry // Discord may accept the next call
		}
		return socket.GatewayInfo{}, err
	}
	limit := g.SessionStartLimit
	if limit.Total == 0 { // a server in place of Discord may have no such limit
		limit.Remaining = 1
	}
	return socket.GatewayInfo{
		URL: g.URL, SessionsLeft: limit.Remaining, MaxConcurrency: limit.MaxConcurrency,
		ResetAfter: time.Duration(limit.ResetAfter) * time.Millisecond,
	}, nil
}
