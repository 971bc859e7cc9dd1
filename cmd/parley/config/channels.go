package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/tools/spelling"
)

// A Platform is a chat platform, with what the settings of its channels are checked against.
type Platform struct {
	Name  string // as in platform = "telegram"
	Title string // as people write it: "Telegram"
	// Receives lists the ways in which a channel of the platform can receive what people
	// say, the usual one first: values of the setting receive.
	Receives []string
	// Members says that access = "members" works on the platform: it knows who belongs to the
	// workspace and who is a guest.
	Members bool
	// Tokens are the tokens that a channel of the platform needs.
	Tokens []PlatformToken
	// OtherTokens are the beginnings of the platform's tokens of other kinds, which people
	// mistake for these.
	OtherTokens []string
	// IsUserID reports whether a text is an id of a user and not a name or an address,
	// and UserIDRemedy says where to find the id. If IsUserID is nil, every text counts
	// as an id.
	IsUserID     func(id string) bool
	UserIDRemedy string
	// IsGroupID and GroupIDRemedy do the same for groups and channels.
	IsGroupID     func(id string) bool
	GroupIDRemedy string
}

// A PlatformToken is one of the tokens that a platform gives a bot.
type PlatformToken struct {
	Key      string // the setting, "bot_token" or "app_token"
	Env      string // the environment variable that fills the setting; if there is no file, it also makes a channel of the platform
	Begins   string // how the platform's tokens of this kind begin; "" if that is not known
	ChatOnly bool   // a channel that only sends needs none
	Receive  string // the way of receiving that needs it; "" means every way
}

// byHTTP is the value of the setting "receive" with which the platform sends what people say as
// HTTP requests to this server.
const byHTTP = "http"

// botToken is the setting that every platform's channel has.
const botToken = "bot_token"

// token returns the platform's token that is set by this key; nil if there is none.
func (p Platform) token(key string) *PlatformToken {
	for i := range p.Tokens {
		if p.Tokens[i].Key == key {
			return &p.Tokens[i]
		}
	}
	return nil
}

// platformNames returns the names of platforms.
func platformNames(platforms []Platform) []string {
	var all []string
	for _, p := range platforms {
		all = append(all, p.Name)
	}
	return all
}

// platform returns the platform of that name. For an unknown one, which is reported
// elsewhere, it returns a Platform against which nothing is checked.
func (l *loader) platform(name string) Platform {
	for _, p := range l.opts.Platforms {
		if p.Name == name {
			return p
		}
	}
	return Platform{Name: name}
}

// titlesThatHave returns the titles of the platforms for which have returns true, joined into the
// beginning of a sentence.
func (l *loader) titlesThatHave(have func(Platform) bool) string {
	var all []string
	for _, p := range l.opts.Platforms {
		if have(p) {
			all = append(all, p.Title)
		}
	}
	if len(all) > 1 {
		return strings.Join(all, " and ") + " have"
	}
	return strings.Join(all, "") + " has"
}

// addChannels adds a channel for each platform for whose bot the environment has a token. It is
// called only if there is no configuration file.
func (l *loader) addChannels() {
	for _, p := range l.opts.Platforms {
		token := p.token(botToken)
		if token == nil {
			continue
		}
		if _, ok := l.env(token.Env); ok {
			l.names["channels"] = append(l.names["channels"], p.Name)
			l.places["channels."+p.Name] = origin{env: token.Env}
		}
	}
	slices.Sort(l.names["channels"])
}

// fillTokens takes from the environment the tokens that the file leaves out.
func (l *loader) fillTokens() {
	channels := l.section("channels")
	for _, name := range l.names["channels"] {
		platform := l.str("channels." + name + ".platform")
		if platform == "" {
			platform = name
		}
		for _, token := range l.platform(platform).Tokens {
			if path := "channels." + name + "." + token.Key; !l.mentioned(path) {
				l.takeVar(channels.find(token.Key), path, token.Env)
			}
		}
	}
}

func (l *loader) checkChannel(name string) {
	path := "channels." + name
	at := l.places[path]
	platform := l.platform(l.str(path + ".platform"))
	if platform.Name == "" {
		if !l.mentioned(path + ".platform") {
			remedy := l.writeKey("channels", "platform")
			if near := spelling.Nearest(name, platformNames(l.opts.Platforms)); near != "" {
				remedy = "did you mean [channels." + near + "]? Else " + remedy
			}
			l.report(at, path, "its name is no platform's, and it has no platform", remedy)
		}
		return
	}
	l.checkReceive(name, platform)
	l.checkTokens(path, platform)
	if agent := l.str(path + ".agent"); agent != "" {
		l.checkAgentName(l.places[path+".agent"], path+".agent", agent)
	}
	l.checkAgentRoutes(path, platform)
	l.checkAccess(path, platform)
	for _, key := range []string{"allow_from", "owners", "approvers"} {
		l.checkPeople(path+"."+key, platform)
	}
	l.checkChats(path+".chats", platform)
}

// checkTokens reports which tokens are missing in the settings of a channel, the table at path, and
// which of those there its platform has no use for.
func (l *loader) checkTokens(path string, platform Platform) {
	for _, set := range l.section("channels").settings {
		if !set.secret {
			continue
		}
		key := path + "." + set.key
		token := platform.token(set.key)
		switch {
		case token == nil && l.mentioned(key):
			l.report(l.places[key], key, "only "+l.titlesThatHave(func(p Platform) bool { return p.token(set.key) != nil })+" one", "remove it")
		case token == nil:
		case l.mentioned(key):
			l.checkMistaken(key, platform, *token)
		case token.Receive != "" && token.Receive != l.receiveMode(path, platform):
		case !token.ChatOnly || l.str(path+".mode") == "chat":
			l.report(l.places[path], key, "is missing", "write "+set.key+` = "${`+token.Env+`}", or set `+token.Env)
		}
	}
}

// receiveMode returns the way in which a channel receives what people say: the one that is set,
// or the platform's usual one.
func (l *loader) receiveMode(path string, platform Platform) string {
	if way := l.str(path + ".receive"); way != "" || len(platform.Receives) == 0 {
		return way
	}
	return platform.Receives[0]
}

// checkReceive reports a way of receiving that the platform does not have, and settings
// that only another way needs.
func (l *loader) checkReceive(name string, platform Platform) {
	path := "channels." + name
	at, way := l.places[path+".receive"], l.str(path+".receive")
	if way == byHTTP && slices.Contains(platform.Receives, way) {
		l.checkHTTPChannel(path, at)
		return
	}
	if way != "" && !slices.Contains(platform.Receives, way) {
		remedy := "remove it"
		if len(platform.Receives) > 0 {
			remedy = oneOf(way, platform.Receives)
		}
		l.report(at, path+".receive", fmt.Sprintf("%s is not received so", platform.Title), remedy)
	}
	for _, key := range []string{"public_url", "signing_secret"} {
		if set := l.places[path+"."+key]; set.file != "" && platform.Receives != nil {
			l.report(set, path+"."+key, `has no effect without receive = "http"`, `write receive = "http", or remove it`)
		}
	}
}

// checkHTTPChannel reports what a channel lacks whose platform is to send requests to this
// server, such as a public URL; at says where that way of receiving is set.
func (l *loader) checkHTTPChannel(path string, at origin) {
	if l.str(path+".mode") == "send" {
		l.report(at, path+".receive", `contradicts mode = "send": the channel receives nothing`, "remove one of the two")
		return
	}
	if l.mentioned("http.listen") && l.str("http.listen") == "" {
		l.report(at, path+".receive", `the platform's requests have nobody to go to: [http] listen is ""`, `write [http] listen = "127.0.0.1:7275", behind a proxy that does TLS`)
	}
	key := path + ".public_url"
	if !l.mentioned(key) {
		key = "http.public_url"
	}
	public := l.str(key)
	switch {
	case !l.mentioned(key):
		l.report(at, key, "is missing: the platform has to know where it reaches this server", `write [http] public_url = "https://bot.example.com"`)
	case strings.HasPrefix(public, "http://") && l.str(path+".api_url") == "":
		l.report(l.places[key], key, "the platform makes its requests over https alone", `write "https://…", the address of the proxy before this server`)
	}
}

// checkMistaken reports a token of another kind than the setting needs, because the platform
// would say only that it is not valid.
func (l *loader) checkMistaken(key string, platform Platform, token PlatformToken) {
	remedy := "write the one that begins with " + token.Begins
	report := func(begins, remedy string) {
		if token.Begins != "" && begins != "" && strings.HasPrefix(l.str(key), begins) {
			l.report(l.places[key], key, "a token that begins with "+begins+" is another kind of token", remedy)
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

func (l *loader) checkAccess(path string, platform Platform) {
	policy := l.str(path + ".access")
	if policy == "" {
		return // written wrong, and reported
	}
	if policy == "members" && !platform.Members {
		l.report(l.places[path+".access"], path+".access", "only "+l.titlesThatHave(func(p Platform) bool { return p.Members })+` "members"`,
			`write "pairing" (an owner admits each person), or "list" with allow_from`)
	}
	if allow, ok := l.places[path+".allow_from"]; ok && policy != "list" {
		l.report(allow, path+".allow_from", `has no effect without access = "list"`, `write access = "list", or remove allow_from`)
	}
	known := l.values[path+".allow_from"] != nil && l.values[path+".owners"] != nil // else written wrong, and reported
	if policy == "list" && known && len(l.list(path+".allow_from"))+len(l.list(path+".owners")) == 0 {
		l.report(l.places[path+".access"], path+".access", `"list" lets nobody in: allow_from and owners are empty`, `write allow_from = ["42"], or owners`)
	}
}

// checkPeople reports entries in a channel's lists of people that are no ids of users, or that
// have their channel's name before them.
func (l *loader) checkPeople(path string, platform Platform) {
	for i, id := range l.list(path) {
		if _, user, ok := strings.Cut(id, ":"); ok {
			l.report(l.element(path, i), path, fmt.Sprintf("%q names a channel", id), fmt.Sprintf("write just the user: %q", user))
			continue
		}
		if platform.IsUserID != nil && !platform.IsUserID(id) {
			l.report(l.element(path, i), path, fmt.Sprintf("%q is not a %s user's id", id, platform.Title), platform.UserIDRemedy)
		}
	}
}

// mentions returns the values that the setting mention can have.
func mentions() []string { return []string{"always", "threads", "never"} }

// chats decodes the list of groups in which a channel's bot listens.
func (d *decoder) chats(v any) (any, *fault) {
	items, ok := v.([]any)
	if !ok {
		return nil, d.wrongType("a list", v)
	}
	if len(items) == 0 {
		return nil, &fault{wrong: "names no chat", remedy: "remove it, if the bot is to listen in every chat that it is in; else " + d.exampleRemedy()}
	}
	list := []Chat{}
	for i, item := range items {
		chat, f := d.chat(item)
		if f == nil && slices.ContainsFunc(list, func(c Chat) bool { return c.Chat == chat.Chat }) {
			f = &fault{wrong: fmt.Sprintf("%q stands in it twice", chat.Chat), remedy: "remove one of them"}
		}
		if f != nil {
			f.index = i + 1
			return nil, f
		}
		list = append(list, chat)
	}
	return list, nil
}

// chat decodes a chat's id, or a table with the id and the settings of that chat.
func (d *decoder) chat(v any) (chat Chat, f *fault) {
	table, ok := v.(map[string]any)
	if !ok {
		table = map[string]any{"chat": v}
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if key != "chat" && key != "mention" {
			return chat, &fault{wrong: "a chat has no " + strconv.Quote(key), remedy: oneOf(key, []string{"chat", "mention"})}
		}
	}
	id, ok := table["chat"]
	if !ok {
		return chat, &fault{wrong: "a chat without its id", remedy: d.exampleRemedy()}
	}
	if n, ok := id.(int64); ok {
		id = strconv.FormatInt(n, 10)
	}
	if chat.Chat, f = d.text(id); f != nil {
		return chat, f
	}
	if chat.Chat == "" {
		return chat, &fault{wrong: "a chat without its id", remedy: d.exampleRemedy()}
	}
	if said, ok := table["mention"]; ok {
		if chat.Mention, f = d.text(said); f != nil {
			return chat, f
		}
		if !slices.Contains(mentions(), chat.Mention) {
			return chat, &fault{wrong: fmt.Sprintf("unknown value %q", said), remedy: oneOf(chat.Mention, mentions())}
		}
	}
	return chat, nil
}

// shownChats converts a list of groups into types that JSON has, so that the setting can be
// shown.
func shownChats(chats []Chat) []any {
	list := []any{}
	for _, c := range chats {
		if c.Mention == "" {
			list = append(list, c.Chat)
			continue
		}
		list = append(list, map[string]any{"chat": c.Chat, "mention": c.Mention})
	}
	return list
}

// checkChats reports entries in a channel's list of groups that are no ids of groups, or that
// have their channel's name before them.
func (l *loader) checkChats(path string, platform Platform) {
	v := l.values[path]
	if v == nil {
		return
	}
	for i, c := range v.v.([]Chat) {
		if _, chat, ok := strings.Cut(c.Chat, ":"); ok {
			l.report(l.element(path, i), path, fmt.Sprintf("%q names a channel", c.Chat), fmt.Sprintf("write just the chat: %q", chat))
			continue
		}
		if platform.IsGroupID != nil && !platform.IsGroupID(c.Chat) {
			l.report(l.element(path, i), path, fmt.Sprintf("%q is not the id of a group on %s", c.Chat, platform.Title), platform.GroupIDRemedy)
		}
	}
}

// checkTwin reports a channel that has the same token as another, because they would receive each
// other's messages. seen has the channels so far by their tokens.
func (l *loader) checkTwin(name string, seen map[string]string) {
	path := "channels." + name
	token := l.str(path + ".bot_token")
	if token == "" || l.str(path+".mode") != "chat" {
		return
	}
	if twin, ok := seen[token]; ok {
		at := l.places[path+".bot_token"]
		if at.file == "" {
			at = l.places[path]
		}
		l.report(at, path+".bot_token", "the same as channels."+twin+"'s: they would take each other's messages", `give it a bot of its own, or write mode = "send"`)
		return
	}
	seen[token] = name
}
