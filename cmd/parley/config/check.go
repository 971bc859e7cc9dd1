package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/bus"
	"parley/cmd/parley/outbox"
)

// check looks at what only shows when everything is known.
func (l *loader) check() {
	seen := map[string]string{}
	for _, name := range l.names["channels"] {
		l.checkChannel(name)
		l.checkTwin(name, seen)
	}
	l.checkStore()
	for _, name := range l.names["targets"] {
		l.checkPlaces("targets."+name, false)
		l.checkMany("targets."+name, l.places["targets."+name], l.list("targets."+name))
	}
	for _, name := range append([]string{defaults}, l.names["agents"]...) {
		l.checkPlaces("agents."+name+".may_message", true)
	}
	l.checkFront()
	l.checkModel()
}

// list is a setting's texts, and none where it has none.
func (l *loader) list(path string) []string {
	if v, ok := l.values[path]; ok {
		return v.v.([]string)
	}
	return nil
}

// report puts a problem where it belongs: what only the environment asked for
// stops serve alone.
func (l *loader) report(at origin, key, what, remedy string) {
	p := at.at(key, &fault{wrong: what, remedy: remedy})
	if at.env != "" {
		l.serving = append(l.serving, p)
		return
	}
	l.found = append(l.found, p)
}

// element is where one element of a list stands.
func (l *loader) element(path string, i int) origin {
	at := l.places[path]
	if at.file != "" {
		return l.lineOf(append(strings.Split(path, "."), strconv.Itoa(i))...)
	}
	return at
}

func (l *loader) checkChannel(name string) {
	path := "channels." + name
	at := l.places[path]
	platform := l.str(path + ".platform")
	if platform == "" {
		if !l.mentioned(path + ".platform") {
			remedy := `write platform = "telegram", or "slack" or "discord"`
			if near := nearest(name, platforms()); near != "" {
				remedy = "did you mean [channels." + near + "]? Else " + remedy
			}
			l.report(at, path, "its name is no platform's, and it has no platform", remedy)
		}
		return
	}
	vars := tokenVars(platform)
	for _, key := range []string{"bot_token", "app_token"} {
		needed := key == "bot_token" || l.str(path+".mode") == "chat"
		name, has := vars[key]
		switch {
		case has && needed && !l.mentioned(path+"."+key):
			l.report(at, path+"."+key, "is missing", "write "+key+` = "${`+name+`}", or set `+name)
		case !has && l.mentioned(path+"."+key):
			l.report(l.places[path+"."+key], path+"."+key, "only Slack has one", "remove it")
		}
	}
	if platform == slack {
		l.checkSlackTokens(path)
	}
	agents := l.names["agents"]
	if agent := l.str(path + ".agent"); agent != "" && !slices.Contains(agents, agent) {
		l.report(l.places[path+".agent"], path+".agent", fmt.Sprintf("no agent is called %q", agent), oneOf(agent, agents)+", or add [agents."+agent+"]")
	}
	l.checkAccess(path, platform)
	for _, key := range []string{"allow_from", "owners", "approvers"} {
		l.checkPeople(path+"."+key, platform)
	}
}

// checkSlackTokens names a token that stands in the place of the other: Slack says
// only that it is not valid.
func (l *loader) checkSlackTokens(path string) {
	for _, c := range []struct{ key, start, other string }{{"bot_token", "xoxb-", "app_token"}, {"app_token", "xapp-", "bot_token"}} {
		token := path + "." + c.key
		for _, wrong := range []string{"xoxb-", "xapp-", "xoxp-"} {
			if wrong == c.start || !strings.HasPrefix(l.str(token), wrong) {
				continue
			}
			remedy := "write the one that begins with " + c.start
			if wrong != "xoxp-" {
				remedy += "; this one belongs in " + c.other
			}
			l.report(l.places[token], token, "a token that begins with "+wrong+" is another kind of token", remedy)
		}
	}
}

func (l *loader) checkAccess(path, platform string) {
	policy := l.str(path + ".access")
	if policy == "" {
		return // written wrong, and reported
	}
	if policy == "members" && platform != slack {
		l.report(l.places[path+".access"], path+".access", `only Slack has "members"`,
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

// checkPeople looks at ids of users, which stand without their channel.
func (l *loader) checkPeople(path, platform string) {
	for i, id := range l.list(path) {
		if _, user, ok := strings.Cut(id, ":"); ok {
			l.report(l.element(path, i), path, fmt.Sprintf("%q names a channel", id), fmt.Sprintf("write just the user: %q", user))
			continue
		}
		if n, err := strconv.ParseInt(id, 10, 64); platform == telegram && (err != nil || n <= 0) {
			l.report(l.element(path, i), path, fmt.Sprintf("%q is not a Telegram user's id", id), "write the number: the bot tells it to whom it refuses")
		}
		if platform == slack && !isSlackUser(id) {
			l.report(l.element(path, i), path, fmt.Sprintf("%q is not a Slack user's id", id),
				"write the member ID, as \"U0123456789\": it is in the person's profile, under ⋮")
		}
	}
}

// isSlackUser tells the ids of Slack's users from names and addresses.
func isSlackUser(id string) bool {
	return len(id) > 1 && (id[0] == 'U' || id[0] == 'W') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// checkTwin refuses two channels that would take each other's messages.
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

func (l *loader) checkStore() {
	at, ok := l.places["bus.url"]
	if !ok || l.mentioned("store.url") {
		return
	}
	l.report(at, "bus.url", "[bus] url without [store] url: workers would share mail but not logs",
		"set [store] url or DATABASE_URL, or leave the bus out")
}

// checkPlaces looks whether each place of a list leads somewhere.
func (l *loader) checkPlaces(path string, targets bool) {
	v, ok := l.values[path]
	if !ok || v.from == (origin{}) {
		return
	}
	if !l.mentioned(path) {
		return // inherited, and reported there
	}
	for i, s := range l.list(path) {
		if f := l.place(s, targets); f != nil {
			l.report(l.element(path, i), path, f.wrong, f.remedy)
		}
	}
}

// checkMany reports a list that leads to more addresses than one message may have.
func (l *loader) checkMany(path string, at origin, to []string) {
	addresses := map[string]bool{}
	for _, s := range to {
		places, isTarget := l.values["targets."+s]
		if !isTarget {
			addresses[s] = true
			continue
		}
		for _, address := range places.v.([]string) {
			addresses[address] = true
		}
	}
	if n := len(addresses); n > outbox.MaxDestinations {
		l.report(at, path, fmt.Sprintf("leads to %d addresses, and a message may have %d", n, outbox.MaxDestinations), "make several targets")
	}
}

// place says what is wrong with a target or an address.
func (l *loader) place(s string, targets bool) *fault {
	if !strings.Contains(s, ":") && targets {
		known := l.names["targets"]
		if slices.Contains(known, s) {
			return nil
		}
		if near := nearest(s, known); near != "" {
			return &fault{wrong: fmt.Sprintf("no target is called %q", s), remedy: fmt.Sprintf("write %q", near)}
		}
		return &fault{wrong: fmt.Sprintf("no target is called %q", s), remedy: "add it to [targets], or write an address: CHANNEL:CHAT"}
	}
	at, err := bus.ParseAddress(s)
	if err != nil {
		return &fault{wrong: fmt.Sprintf("%q is not an address", s), remedy: "write CHANNEL:CHAT or CHANNEL:CHAT/THREAD"}
	}
	known := l.names["channels"]
	if slices.Contains(known, at.Channel) {
		return nil
	}
	remedy := "add [channels." + at.Channel + "]"
	if near := nearest(at.Channel, known); near != "" {
		remedy = fmt.Sprintf("write %q", bus.Address{Channel: near, Chat: at.Chat, Thread: at.Thread}.String())
	} else if len(known) > 0 {
		remedy += ", or use one of " + strings.Join(known, ", ")
	}
	return &fault{wrong: fmt.Sprintf("no channel is called %q", at.Channel), remedy: remedy}
}

// checkModel stops a server whose channels would hear people and have nobody to
// answer them.
func (l *loader) checkModel() {
	hears := slices.IndexFunc(l.names["channels"], func(name string) bool { return l.str("channels."+name+".mode") == "chat" })
	name, base, key := l.str("model.name"), l.str("model.base_url"), l.str("model.api_key")
	if hears < 0 || name == demoName {
		return
	}
	channel := "channels." + l.names["channels"][hears]
	u, err := url.Parse(base)
	own := base == "" || err == nil && u.Hostname() == "api.openai.com"
	switch {
	case !own || key != "":
	case base == "" && name == "":
		l.answering = append(l.answering, l.places[channel].at(channel, &fault{
			wrong:  "it hears people, and no model answers them",
			remedy: `set OPENAI_API_KEY; or [model] base_url for a server of your own; or [model] name = "demo"; or mode = "send" here`,
		}))
	case base == "":
		l.answering = append(l.answering, l.places["model.name"].at("model.name", &fault{
			wrong:  "the model at the default URL wants a key, and there is none",
			remedy: "set OPENAI_API_KEY, or write [model] base_url for a server of your own",
		}))
	default:
		l.answering = append(l.answering, l.places["model.base_url"].at("model.base_url", &fault{
			wrong:  "the server named here wants a key, and the environment's is not sent to it unasked",
			remedy: `write api_key = "${OPENAI_API_KEY}" beside it`,
		}))
	}
}
