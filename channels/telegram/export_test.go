package telegram

import (
	"context"
	"net/http"

	"github.com/go-telegram/bot/models"

	"parley/bus"
)

// ClientForTLS returns the client by which servers with TLS are asked, for servers without it too.
func ClientForTLS() *http.Client { return clientOver(newTransport()) }

// Deliver has a private message of one who says text published, as a poll does.
func (c *Channel) Deliver(ctx context.Context, text string, publish func(context.Context, bus.Inbound) error) bool {
	p := &publisher{translator: c.translator, publish: publish}
	return p.publishMessage(ctx, &models.Message{
		ID: 1, Text: text, From: &models.User{ID: 1, FirstName: "Ann"}, Chat: models.Chat{ID: 1, Type: models.ChatTypePrivate},
	}, false)
}
