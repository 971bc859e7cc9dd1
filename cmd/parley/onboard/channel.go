package onboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"parley/channels"
	"parley/cmd/parley/config"
	"parley/cmd/parley/platforms"
)

// A channel has the settings of the chat channel that onboard writes; without a platform no
// channel is written.
type channel struct {
	platform, title string
	tokens          []token
	apiURL          string
	owner           string
}

// token returns one of a platform's tokens: from the file, if one is named, or from the
// environment; otherwise it asks for the token. Flag is the flag that names the file.
type token struct {
	key string // the setting
	secret
}

// noChannel is the answer of a person who wants to talk to the bot only in the terminal.
const noChannel = "none"

// chooseChannel asks on which chat platform people will talk to the bot, and asks for its tokens.
// It checks these by asking the platform who the bot is.
func (c Command) chooseChannel(ctx context.Context, d *dialogue) (channel, error) {
	p, err := c.choosePlatform(ctx, d)
	if err != nil || p.Name == "" {
		return channel{}, err
	}
	ch := channel{platform: p.Name, title: p.Title, apiURL: c.APIURL}
	for {
		if ch.tokens, err = c.askTokens(ctx, d, p); err != nil {
			return channel{}, err
		}
		who, err := ch.tryOut(ctx)
		if err == nil {
			d.say("%s answers: the bot is %s.", ch.title, who)
			ch.owner, err = c.askOwner(ctx, d, p)
			return ch, err
		}
		if ctx.Err() != nil {
			return channel{}, errLeft
		}
		failed := fmt.Errorf("%s: %w", ch.title, err)
		if !d.asks || c.TokenFile != "" {
			return channel{}, failed
		}
		d.say("%v", failed)
		if again, err := d.confirm(ctx, "Try again?", true); err != nil || !again {
			return channel{}, errors.Join(err, errors.New("nothing was written"))
		}
	}
}

// choosePlatform asks for the chat platform. It returns a Platform without a name if the person
// wants none.
func (c Command) choosePlatform(ctx context.Context, d *dialogue) (config.Platform, error) {
	all := platforms.Settings()
	var among []choice
	for _, p := range all {
		among = append(among, choice{p.Name, p.Title})
	}
	among = append(among, choice{noChannel, "nowhere yet: in this terminal alone"})
	name := c.Channel
	if name == "" && !d.asks {
		name = noChannel
	}
	if name == "" {
		var err error
		if name, err = d.choose(ctx, "Where do people talk to it?", among); err != nil {
			return config.Platform{}, err
		}
	}
	if name == noChannel {
		return config.Platform{}, nil
	}
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
	}
	return config.Platform{}, &UsageError{fmt.Sprintf("there is no platform %q: one of %s, %s", name, strings.Join(platforms.Names(), ", "), noChannel)}
}

// askTokens asks for the tokens that a channel of the platform needs if it receives messages in
// the platform's usual way.
func (c Command) askTokens(ctx context.Context, d *dialogue, p config.Platform) ([]token, error) {
	files := map[string]string{"bot_token": c.TokenFile, "app_token": c.AppTokenFile}
	flags := map[string]string{"bot_token": "--token-file", "app_token": "--app-token-file"}
	if page := platforms.Page(p.Name); d.asks && page != "" {
		d.say("docs/%s says how to get it.", page)
	}
	var all []token
	for _, t := range p.Tokens {
		if t.Receive != "" && t.Receive != p.Receives[0] {
			continue
		}
		s, err := d.token(ctx, p, t, files[t.Key], flags[t.Key])
		if err != nil {
			return nil, err
		}
		all = append(all, token{key: t.Key, secret: s})
	}
	return all, nil
}

// token reads one token from a file or the environment, or asks for it.
func (d *dialogue) token(ctx context.Context, p config.Platform, t config.PlatformToken, file, flag string) (secret, error) {
	if file != "" {
		return readSecret(file)
	}
	if held := os.Getenv(t.Env); held != "" {
		use := true
		if d.asks {
			var err error
			if use, err = d.confirm(ctx, fmt.Sprintf("$%s is set. Use it? Whoever starts parley has to set it then.", t.Env), true); err != nil {
				return secret{}, err
			}
		}
		if use {
			return secret{env: t.Env, value: held}, nil
		}
	}
	what := fmt.Sprintf("%s's %s", p.Title, strings.ReplaceAll(t.Key, "_", " "))
	if t.Begins != "" {
		what += ", " + t.Begins + "…"
	}
	if !d.asks {
		return secret{}, missing(flag, "a file with "+what+"; or set "+t.Env)
	}
	typed, err := d.askSecret(ctx, what)
	return secret{value: typed}, err
}

// tryOut asks the platform who the bot is, and whether it has the permissions that it
// needs.
func (ch channel) tryOut(ctx context.Context) (who string, err error) {
	c := config.Channel{Name: ch.platform, Platform: ch.platform, Mode: "chat", APIURL: ch.apiURL, RateLimit: "platform"}
	for _, t := range ch.tokens {
		switch t.key {
		case "bot_token":
			c.BotToken = config.Secret(t.value)
		case "app_token":
			c.AppToken = config.Secret(t.value)
		}
	}
	adapter, err := platforms.Open(c, platforms.AdapterParts{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	who, err = platforms.Account(ctx, c.Platform, adapter)
	if err == nil {
		err = platforms.Examine(ctx, c, adapter, nil)
	}
	if refused, ok := errors.AsType[*channels.SendError](err); ok && refused.Fault == channels.Stop {
		return "", fmt.Errorf("the platform refuses the token (%s): %s", refused.Code, platforms.RefusalRemedy(refused))
	}
	if lack, ok := errors.AsType[*platforms.LackError](err); ok {
		return "", fmt.Errorf("%s: %s", lack.Lack, lack.Remedy)
	}
	return who, err
}

// askOwner asks for the owner's id on the platform. It returns "" if the person does not know it:
// then "parley serve" prints a link or code that makes whoever uses it first the owner.
func (c Command) askOwner(ctx context.Context, d *dialogue, p config.Platform) (string, error) {
	id := c.Owner
	for {
		if id == "" && d.asks {
			var err error
			if id, err = d.ask(ctx, "Your own id there, if you know it (else serve gives you a link or a code that makes the bot yours)", ""); err != nil {
				return "", err
			}
		}
		if id == "" || p.IsUserID == nil || p.IsUserID(id) {
			return id, nil
		}
		wrong := fmt.Sprintf("%q is no id of a person on %s: %s", id, p.Title, p.UserIDRemedy)
		if !d.asks || c.Owner != "" {
			return "", errors.New(wrong)
		}
		d.say("%s.", wrong)
		id = ""
	}
}

// The address at which the HTTP server listens unless another is set, and the word that means
// that there is none.
const (
	usualListen = "127.0.0.1:7275"
	noListen    = "none"
)

// chooseListen returns the address at which the HTTP server is to listen; "" means the usual one.
// It asks only if another program, such as another bot's server, listens there already.
func (c Command) chooseListen(ctx context.Context, d *dialogue) (string, error) {
	where := c.Listen
	if where == "" {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", usualListen)
		if err == nil {
			return "", l.Close()
		}
		if !d.asks {
			return "", missing("--listen", usualListen+" is taken by another program; "+noListen+" switches HTTP off")
		}
		where, err = d.ask(ctx, "\n"+usualListen+" is taken by another program. Where is HTTP to listen", noListen)
		if err != nil {
			return "", err
		}
	}
	if _, _, err := net.SplitHostPort(where); err != nil && where != noListen {
		return "", &UsageError{fmt.Sprintf("%q is no address such as %s: %v", where, usualListen, err)}
	}
	return where, nil
}
