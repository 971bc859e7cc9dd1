package telegram

import (
	"context"
	"net/http"

	"github.com/go-telegram/bot/models"

	"parley/bus"
)

// ClientForTLS returns the HTTP client for servers with TLS; tests use it for a server without TLS.
func ClientForTLS() *http.Client { return clientOver(newTransport()) }

// Deliver publishes a private message with a text, as if a poll had received it.
func (c *Channel) Deliver(ctx context.Context, text string, publish func(context.Context, bus.Inbound) error) bool {
	p := &publisher{translator: c.translator, publish: publish}
	return p.publishMessage(ctx, &models.Message{
		ID: 1, Text: text, From: &models.User{ID: 1, FirstName: "Ann"}, Chat: models.Chat{ID: 1, Type: models.ChatTypePrivate},
	}, false)
}
