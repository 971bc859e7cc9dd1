package discord

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

// A request describes a call to the REST API that is about to be made.
type request struct {
	method, url string
	contentType string // the body's Content-Type; "" means JSON
	body        []byte
}

// An api is Discord's REST API for one account.
type api struct {
	session      *discordgo.Session
	apiURL       *url.URL              // the root of the REST API
	reachability channels.Reachability // whether the last call reached Discord
	log          *slog.Logger          // names the channel
}

// call makes one call and decodes the answer into result; if result is nil, it ignores the answer. Its errors are
// *channels.SendError and contain neither the token nor the text of anybody's message.
func (c *api) call(ctx context.Context, r request, result any) (err error) {
	defer func() { c.reachability.Note(err) }()
	ctx, t := withRequestTrace(ctx)
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	// discordgo's limiter ignores ctx while it sleeps, and never forgets a chat. A new limiter for each call never
	// waits; the Dispatcher keeps the pace.
	bucket := discordgo.NewRatelimiter().LockBucket(r.url)
	data, err := c.session.RequestWithLockedBucket(r.method, r.url, r.contentType, r.body, bucket, 0, discordgo.WithContext(ctx))
	if err != nil {
		e := sendError(err, t)
		if e.Fault == channels.Unknown && r.method != http.MethodPost {
			e.Fault = channels.Retry // reading, or overwriting with the same data, may be repeated
		}
		return e
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return &channels.SendError{Fault: channels.Unknown, Code: "unreadable", Err: errors.New("the answer is not what Discord gives")}
	}
	return nil
}

// get fetches the JSON at a URL of the REST API and decodes it into its last argument.
func (c *api) get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, request{method: http.MethodGet, url: url}, into)
}

// An Account is the bot's own user, as Discord describes it.
type Account struct {
	ID       string `json:"id"`
	Username string `json:"username"`
}

// Check asks Discord who the bot is. If Discord refuses the token, it returns a *channels.SendError with the fault
// Stop.
func (c *api) Check(ctx context.Context) (Account, error) {
	var a Account
	err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointUser("@me")}, &a)
	return a, err
}

// Connected reports whether the last call reached Discord.
func (c *api) Connected() bool { return c.reachability.Connected() }

// callTimeout limits one call to the REST API. Sending a file may take longer. Check, and what the examiner asks
// about the account, have only the limits of their callers.
const callTimeout = 30 * time.Second
