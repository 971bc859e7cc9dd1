package config

import (
	"strings"

	"parley/cmd/parley/config/schema"
)

// botToken is the setting with the token that channels of all platforms need.
const botToken = "bot_token"

// addChannels adds a channel for each platform for which the environment contains a bot token. It is called only if
// there is no configuration file.
func addChannels(l *loader) {
	for _, p := range l.opts.Platforms {
		token := p.token(botToken)
		if token == nil {
			continue
		}
		if _, ok := l.Env(token.Env); ok {
			l.AddTable("channels", p.Name, schema.Origin{Var: token.Env})
		}
	}
}

// fillTokens takes from the environment the tokens that the file leaves out.
func fillTokens(l *loader) {
	for _, name := range l.Names("channels") {
		platform := l.Text("channels." + name + ".platform")
		if platform == "" {
			platform = name
		}
		for _, token := range platformOf(l.opts.Platforms, platform).Tokens {
			if path := "channels." + name + "." + token.Key; !l.Mentioned(path) {
				l.TakeVariable(path, token.Env)
			}
		}
	}
}

// checkTokens reports which tokens are missing in the channel's table at path, which of them its platform doesn't
// use, and which are of the wrong kind. settings are the settings that a channel may have.
func checkTokens(l *loader, path string, platform Platform, settings []schema.Setting) {
	for _, set := range settings {
		if !set.Secret {
			continue
		}
		key := path + "." + set.Key
		token := platform.token(set.Key)
		switch {
		case token == nil && l.Mentioned(key):
			l.Report(l.At(key), key, "only "+titlesThatHave(l.opts.Platforms, func(p Platform) bool { return p.token(set.Key) != nil })+" one", "remove it")
		case token == nil:
		case l.Mentioned(key):
			checkMistaken(l, key, platform, *token)
		case token.Receive != "" && token.Receive != receiveMode(l, path, platform):
		case !token.ChatOnly || l.Text(path+".mode") == "chat":
			l.Report(l.At(path), key, "is missing", "write "+set.Key+` = "${`+token.Env+`}", or set `+token.Env)
		}
	}
}

// checkMistaken reports a token of another kind than the setting needs, because the platform would only say that it
// is not valid.
func checkMistaken(l *loader, key string, platform Platform, token PlatformToken) {
	remedy := "write the one that begins with " + token.Begins
	report := func(begins, remedy string) {
		if token.Begins != "" && begins != "" && strings.HasPrefix(l.Text(key), begins) {
			l.Report(l.At(key), key, "this is another kind of token: it begins with "+begins, remedy)
		}
	}
	for _, other := range platform.Tokens {
		if other.Key != token.Key {
			report(other.Begins, remedy+"; this one belongs in "+other.Key)
		}
	}
	for _, begins := range platform.OtherTokens {
		report(begins, remedy)
	}
}

// checkSharedToken reports a channel that has the same token as another, if both receive, because they would receive
// each other's messages. seen maps the tokens found so far to their channels.
func checkSharedToken(l *loader, name string, seen map[string]string) {
	path := "channels." + name
	token := l.Text(path + ".bot_token")
	if token == "" || l.Text(path+".mode") != "chat" {
		return
	}
	if twin, ok := seen[token]; ok {
		at := l.At(path + ".bot_token")
		if at.File == "" {
			at = l.At(path)
		}
		l.Report(at, path+".bot_token", "the same token as channels."+twin+": the two would take each other's messages", `give it a bot of its own, or write mode = "send"`)
		return
	}
	seen[token] = name
}
