package onboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"parley/channels"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/platforms"
)

// A channel holds the settings of the chat channel that onboard writes; without a platform, no channel is written.
type channel struct {
	name, title string
	platform    string
	tokens      []token
	apiURL      string
	owner       string
}

// A token is one of a platform's tokens: from the file, if one is named, or from the environment; otherwise the
// person is asked for it.
type token struct {
	key string // the key of the setting
	secret
}

// noChannel is the answer of a person who wants to talk to the bot only in the terminal.
const noChannel = "none"

// choosePlatform asks on which chat platform people will talk to the bot.
func (s *setup) choosePlatform(ctx context.Context) error {
	s.channel = channel{}
	if !s.asksChannel() {
		return nil
	}
	all := platforms.Settings()
	var among []choice
	for _, p := range all {
		among = append(among, choice{p.Name, p.Title})
	}
	if s.present == nil {
		among = append(among, choice{noChannel, "nowhere yet: just in this terminal"})
	}
	name := s.Channel
	if name == "" && !s.d.interactive {
		name = noChannel
	}
	if name == "" {
		var err error
		if name, err = s.d.choose(ctx, textWhichPlatform, among); err != nil {
			return err
		}
	}
	if name == noChannel {
		return nil
	}
	p, ok := platformNamed(name)
	if !ok {
		return &UsageError{fmt.Sprintf("there's no platform %q: write one of %s, %s", name, strings.Join(platforms.Names(), ", "), noChannel)}
	}
	s.channel = channel{name: s.freeName(p.Name), platform: p.Name, title: p.Title, apiURL: s.APIURL}
	return nil
}

// platformNamed returns the platform with that name; false if there is none.
func platformNamed(name string) (config.Platform, bool) {
	all := platforms.Settings()
	i := slices.IndexFunc(all, func(p config.Platform) bool { return p.Name == name })
	if i < 0 {
		return config.Platform{}, false
	}
	return all[i], true
}

// freeName returns a channel name that the existing configuration doesn't use: the platform's, or that with a
// number.
func (s *setup) freeName(platform string) string {
	for name, n := platform, 2; ; name, n = platform+"-"+strconv.Itoa(n), n+1 {
		if s.present == nil {
			return name
		}
		if _, taken := s.present.Channels[name]; !taken {
			return name
		}
	}
}

// chooseTokens explains how to make a bot on the platform, and asks for its tokens. It checks these by asking the
// platform who the bot is.
func (s *setup) chooseTokens(ctx context.Context) error {
	p, ok := platformNamed(s.channel.platform)
	if !ok {
		return nil
	}
	if s.d.interactive && s.TokenFile == "" {
		s.explain(p)
	}
	for fromEnv := true; ; fromEnv = false {
		var err error
		if s.channel.tokens, err = s.askTokens(ctx, p, fromEnv); err != nil {
			return err
		}
		who, err := s.channel.tryOut(ctx)
		if err == nil {
			err = s.checkOther()
		}
		if err == nil {
			s.d.say(textBotAnswers, s.channel.title, who)
			return nil
		}
		if ctx.Err() != nil {
			return errLeft
		}
		if !s.d.interactive || s.TokenFile != "" {
			return fmt.Errorf("%s: %w", s.channel.title, err)
		}
		s.d.say(textTypeAgain, err, backCommand)
	}
}

// checkOther returns an error if a channel in the existing configuration has the same bot: the two would take each
// other's messages.
func (s *setup) checkOther() error {
	if s.present == nil {
		return nil
	}
	for _, c := range s.present.ChannelsByName() {
		for _, t := range s.channel.tokens {
			if t.key == "bot_token" && t.value == string(c.BotToken) {
				return fmt.Errorf("the channel %s already uses this bot: make another one", c.Name)
			}
		}
	}
	return nil
}

// explain prints how to make a bot on a platform.
func (s *setup) explain(p config.Platform) {
	s.d.say(textMakeBot, p.Title)
	for i, line := range platforms.Steps(p.Name) {
		s.d.say("  %d. %s", i+1, line)
	}
	if manifest := platforms.Manifest(p.Name); manifest != "" {
		s.d.say("\n%s", strings.TrimSpace(manifest))
	}
	s.d.say("")
}

// askTokens asks for the tokens that a channel of the platform needs if it receives messages in
// the platform's usual way.
func (s *setup) askTokens(ctx context.Context, p config.Platform, fromEnv bool) ([]token, error) {
	files := map[string]string{"bot_token": s.TokenFile, "app_token": s.AppTokenFile}
	flags := map[string]string{"bot_token": "--token-file", "app_token": "--app-token-file"}
	var all []token
	for _, t := range p.Tokens {
		if t.Receive != "" && t.Receive != p.Receives[0] {
			continue
		}
		held, err := s.d.token(ctx, p, t, files[t.Key], flags[t.Key], fromEnv)
		if err != nil {
			return nil, err
		}
		all = append(all, token{key: t.Key, secret: held})
	}
	return all, nil
}

// token returns one token, from a file or the environment, or else asks for it.
func (d *dialogue) token(ctx context.Context, p config.Platform, t config.PlatformToken, file, flag string, fromEnv bool) (secret, error) {
	if file != "" {
		return readSecret(file)
	}
	if held := os.Getenv(t.Env); held != "" && fromEnv {
		use := true
		if d.interactive {
			var err error
			if use, err = d.confirm(ctx, fmt.Sprintf(textUseVariable, t.Env)); err != nil {
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
	if !d.interactive {
		return secret{}, missing(flag, "a file with "+what+"; or set "+t.Env)
	}
	for {
		typed, err := d.askSecret(ctx, what)
		if err != nil || typed != "" && strings.HasPrefix(typed, t.Begins) {
			return secret{value: typed}, err
		}
		if typed != "" {
			d.say(textOtherToken, t.Begins)
		}
	}
}

// adapter makes the adapter of the channel.
func (ch channel) adapter() (channels.Channel, config.Channel, error) {
	c := config.Channel{Name: ch.name, Platform: ch.platform, Mode: "chat", APIURL: ch.apiURL, RateLimit: "platform"}
	for _, t := range ch.tokens {
		switch t.key {
		case "bot_token":
			c.BotToken = config.Secret(t.value)
		case "app_token":
			c.AppToken = config.Secret(t.value)
		}
	}
	adapter, err := platforms.Open(c, platforms.AdapterParts{Log: slog.New(slog.DiscardHandler)})
	return adapter, c, err
}

// tryOut asks the platform who the bot is, and whether it has the permissions that it needs.
func (ch channel) tryOut(ctx context.Context) (who string, err error) {
	adapter, c, err := ch.adapter()
	if err != nil {
		return "", err
	}
	who, err = platforms.Account(ctx, c.Platform, adapter)
	if err == nil {
		err = platforms.Examine(ctx, c, adapter, nil)
	}
	if refused, ok := errors.AsType[*channels.SendError](err); ok && refused.Fault == channels.Stop {
		return "", fmt.Errorf("the platform rejected the token (%s): %s", refused.Code, platforms.RefusalRemedy(refused))
	}
	if lack, ok := errors.AsType[*platforms.LackError](err); ok {
		return "", fmt.Errorf("%s: %s", lack.Lack, lack.Remedy)
	}
	return who, err
}

// invite shows the link with which the person adds the bot to the place where people are, on a platform that requires
// one, and waits until the person presses Enter.
func (s *setup) invite(ctx context.Context) error {
	if s.channel.platform == "" || !s.d.interactive {
		return nil
	}
	adapter, _, err := s.channel.adapter()
	if err != nil {
		return err
	}
	link, err := platforms.Invitation(ctx, s.channel.platform, adapter)
	if err != nil {
		s.d.say(textNoInvitation, err)
		return nil
	}
	if link == "" {
		return nil
	}
	s.d.say(textOpenInvitation, link)
	_, err = s.d.ask(ctx, textOnceThere, "")
	return err
}

// chooseOwner asks for the owner's id on the platform. It stays "" if the person doesn't know it: then "parley serve"
// prints a link or code, and the first person who uses it becomes the owner.
func (s *setup) chooseOwner(ctx context.Context) error {
	p, ok := platformNamed(s.channel.platform)
	if !ok {
		return nil
	}
	for id := s.Owner; ; id = "" {
		if id == "" && s.d.interactive {
			s.d.say(textWhoOwns, p.Title)
			var err error
			if id, err = s.d.ask(ctx, "Your id", ""); err != nil {
				return err
			}
		}
		if id == "" || p.IsUserID == nil || p.IsUserID(id) {
			s.channel.owner = id
			return nil
		}
		wrong := fmt.Sprintf("%q isn't a person's id on %s: %s", id, p.Title, p.UserIDRemedy)
		if !s.d.interactive || s.Owner != "" {
			return errors.New(wrong)
		}
		s.d.say("%s.", wrong)
	}
}

// These are the address at which the HTTP server listens unless another is set, and the word for not listening.
const (
	usualListen = "127.0.0.1:7275"
	noListen    = "none"
)

// chooseListen finds the address at which the HTTP server is to listen; "" means the usual one. It asks only if
// another program, such as another bot's server, already listens there.
func (s *setup) chooseListen(ctx context.Context) error {
	if s.present != nil {
		return nil
	}
	s.listen = s.Listen
	if s.listen == "" && checkFree(ctx, usualListen) == nil {
		return nil
	}
	if s.listen == "" && !s.d.interactive {
		return missing("--listen", fmt.Sprintf("another program is using %s; %q turns HTTP off", usualListen, noListen))
	}
	for where := s.Listen; ; where = "" {
		if where == "" {
			s.d.say(textAddressInUse, usualListen)
			var err error
			if where, err = s.d.ask(ctx, textWhereToListen, noListen); err != nil {
				return err
			}
		}
		_, _, err := net.SplitHostPort(where)
		if err == nil {
			err = checkFree(ctx, where)
		}
		if err == nil || where == noListen {
			s.listen = where
			return nil
		}
		if !s.d.interactive || s.Listen != "" {
			return &UsageError{fmt.Sprintf("%q isn't an address like %s: %v", where, usualListen, err)}
		}
		s.d.say(textWontWork, where, err)
	}
}

// checkFree returns why no program can listen at an address; nil if one can.
func checkFree(ctx context.Context, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
