package platforms

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"parley/channels"
	"parley/channels/telegram"
	"parley/cmd/parley/config"
)

// requestAddress returns the URL to which a channel's platform sends what people say.
func requestAddress(c config.Channel) string { return c.PublicURL + "/channels/" + c.Name }

// examineAddress checks that requests to a channel's public address reach a server of this bot. It
// sends one without a signature, which the bot's server refuses in words that no other server uses.
func examineAddress(ctx context.Context, c config.Channel) error {
	address := requestAddress(c)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return &LackError{Lack: "public_url isn't an address", Remedy: `write public_url = "https://bot.example.com"`}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		lack := &LackError{Lack: fmt.Sprintf("can't reach %s: %v", address, err), Remedy: "check the proxy, its certificate, the host name and the network"}
		_, lack.Perhaps = errors.AsType[*net.OpError](err)
		return lack
	}
	_ = resp.Body.Close() // the status is all that is needed
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return nil
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &LackError{
			Lack:   fmt.Sprintf("%s answers with %d: the bot isn't serving there now", address, resp.StatusCode),
			Remedy: "run parley doctor while parley serve is running, or check the proxy", Perhaps: true,
		}
	}
	return &LackError{
		Lack:   fmt.Sprintf("%s answers with %d, but not the way this bot does", address, resp.StatusCode),
		Remedy: "have the proxy pass /channels/ on to [http] listen, with an unchanged Host header",
	}
}

// examineTelegram checks the bot's webhook: it must exist if Telegram sends requests, and
// must not if Telegram is polled.
func examineTelegram(ctx context.Context, c config.Channel, ch channels.Channel, _ []channels.Chat) error {
	if c.Mode != "chat" {
		return nil
	}
	state, err := ch.(*telegram.Channel).Webhook(ctx)
	if refused, ok := errors.AsType[*channels.SendError](err); ok && refused.Fault == channels.Stop {
		return err
	}
	switch {
	case err != nil:
		return &LackError{Lack: textWebhookUnknown + err.Error(), Remedy: "try again later", Perhaps: true}
	case !c.ByHTTP() && state.URL != "":
		return &LackError{
			Lack:   "a webhook is set, so Parley can't poll",
			Remedy: `parley serve removes it if Parley set it; otherwise have the other program call deleteWebhook, or write receive = "http"`,
		}
	case !c.ByHTTP():
		return examinePrivacy(ctx, c, ch.(*telegram.Channel))
	case state.URL != requestAddress(c):
		return &LackError{Lack: textOtherWebhook, Remedy: "parley serve sets it: run parley doctor while parley serve is running", Perhaps: state.URL == ""}
	}
	if err := examineAddress(ctx, c); err != nil {
		return err
	}
	if state.LastError != "" && state.PendingUpdates > 0 {
		return &LackError{
			Lack:   fmt.Sprintf(textUpdatesWaiting, state.LastError, state.PendingUpdates),
			Remedy: "check public_url, the proxy and its certificate", Perhaps: true,
		}
	}
	return examinePrivacy(ctx, c, ch.(*telegram.Channel))
}

// examinePrivacy checks that Telegram delivers to the bot the messages that it must answer in
// groups. A bot that is a group's administrator gets everything that is said there, which cannot be
// seen here.
func examinePrivacy(ctx context.Context, c config.Channel, ch *telegram.Channel) error {
	never := string(channels.MentionNever)
	answersAll := c.Access.Mention == never || slices.ContainsFunc(c.Access.Chats, func(chat config.Chat) bool { return chat.Mention == never })
	if !answersAll {
		return nil
	}
	account, err := ch.Check(ctx)
	if err != nil || account.ReceivesGroupMessages {
		return err
	}
	return &LackError{
		Lack:   `privacy mode is on: Telegram only gives the bot messages that mention it, but with mention = "never" it should answer every message`,
		Remedy: "turn it off with /setprivacy in BotFather, then remove the bot from the group and add it again; or make it an administrator there", Perhaps: true,
	}
}
