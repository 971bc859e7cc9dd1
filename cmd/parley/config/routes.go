package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// An AgentRoute says that messages on a channel that match it are answered by a certain agent. Of
// Chat, User and Mention at least one is set, and all that are set have to match.
type AgentRoute struct {
	Chat, User string // the platform's ids
	Mention    string // the first word behind the bot's name
	Agent      string
}

// agentRoutes decodes the list of a channel's routes.
func (d *decoder) agentRoutes(v any) (any, *fault) {
	items, ok := v.([]any)
	if !ok {
		return nil, d.wrongType("a list of tables", v)
	}
	list := []AgentRoute{}
	for i, item := range items {
		r, f := d.agentRoute(item)
		if f != nil {
			f.index = i + 1
			return nil, f
		}
		list = append(list, r)
	}
	return list, nil
}

func (d *decoder) agentRoute(v any) (r AgentRoute, f *fault) {
	table, ok := v.(map[string]any)
	if !ok {
		return r, d.wrongType("a table in each place", v)
	}
	if f := unknownKey(table, "a route", "match", "agent"); f != nil {
		return r, f
	}
	if table["agent"] == nil {
		return r, &fault{wrong: "a route without its agent", remedy: d.exampleRemedy()}
	}
	if r.Agent, f = d.text(table["agent"]); f != nil {
		return r, f
	}
	match, _ := table["match"].(map[string]any)
	if len(match) == 0 {
		return r, &fault{wrong: "a route needs match: a chat, a user or a mention", remedy: d.exampleRemedy()}
	}
	if f := unknownKey(match, "match", "chat", "user", "mention"); f != nil {
		return r, f
	}
	for key, field := range map[string]*string{"chat": &r.Chat, "user": &r.User, "mention": &r.Mention} {
		want, given := match[key]
		if n, ok := want.(int64); ok && key != "mention" {
			want = strconv.FormatInt(n, 10)
		}
		if !given {
			continue
		}
		if *field, f = d.text(want); f != nil {
			return r, f
		}
		if *field == "" {
			return r, &fault{wrong: key + ` is ""`, remedy: "write the " + key + ", or leave it out"}
		}
	}
	return r, nil
}

// unknownKey returns the fault of a table that has a key beside the known ones, keys; nil if it has
// none. tableKind says in the message what the table is.
func unknownKey(table map[string]any, tableKind string, keys ...string) *fault {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(keys, key) {
			return &fault{wrong: tableKind + " has no " + strconv.Quote(key), remedy: oneOf(key, keys)}
		}
	}
	return nil
}

// shownAgentRoutes converts routes into types that JSON has, so that the setting can be shown.
func shownAgentRoutes(routes []AgentRoute) []any {
	list := []any{}
	for _, r := range routes {
		match := map[string]string{"chat": r.Chat, "user": r.User, "mention": r.Mention}
		maps.DeleteFunc(match, func(_, want string) bool { return want == "" })
		list = append(list, map[string]any{"match": match, "agent": r.Agent})
	}
	return list
}

// agentsOf returns the agents that answer on a channel.
func (l *loader) agentsOf(channel string) []string {
	all := []string{l.str(channel + ".agent")}
	if v := l.values[channel+".routes"]; v != nil {
		for _, r := range v.v.([]AgentRoute) {
			all = append(all, r.Agent)
		}
	}
	return all
}

// checkAgentRoutes reports a channel's routes that name no agent, or match no message.
func (l *loader) checkAgentRoutes(channel string, platform Platform) {
	path := channel + ".routes"
	v := l.values[path]
	if v == nil {
		return
	}
	for i, r := range v.v.([]AgentRoute) {
		report := func(what, remedy string) { l.report(l.element(path, i), path, what, remedy) }
		l.checkAgentName(l.element(path, i), path, r.Agent)
		for _, id := range []string{r.Chat, r.User} {
			if _, alone, names := strings.Cut(id, ":"); names {
				report(fmt.Sprintf("%q names a channel", id), fmt.Sprintf("write just what stands behind it: %q", alone))
			}
		}
		if strings.ContainsAny(r.Chat, "# ") || strings.HasPrefix(r.Chat, "@") {
			report(fmt.Sprintf("%q is a name, and a chat is told by its id", r.Chat), platform.GroupIDRemedy)
		}
		if r.User != "" && !strings.Contains(r.User, ":") && platform.IsUserID != nil && !platform.IsUserID(r.User) {
			report(fmt.Sprintf("%q is not a %s user's id", r.User, platform.Title), platform.UserIDRemedy)
		}
		if strings.ContainsFunc(r.Mention, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("@:,/[]<>", c) }) {
			report(fmt.Sprintf("the mention %q is no word", r.Mention), `write a word as people say it behind the bot's name, such as mention = "ops"`)
		}
		if slices.Contains([]string{"stop", "new", "status", "help"}, strings.ToLower(r.Mention)) {
			report(fmt.Sprintf("the mention %q is a command", r.Mention), "choose another word")
		}
	}
}

// A Route says where the posts of a webhook go that match it, instead of the webhook's own
// places.
type Route struct {
	Match map[string]string
	To    []string // targets and addresses, as written; if there are none, posts that match are dropped
}

func (d *decoder) routes(v any) (any, *fault) {
	items, ok := v.([]any)
	if !ok {
		return nil, d.wrongType("a list of tables", v)
	}
	var list []Route
	for i, item := range items {
		r, f := d.route(item)
		if f != nil {
			f.index = i + 1
			return nil, f
		}
		list = append(list, r)
	}
	return list, nil
}

func (d *decoder) route(v any) (Route, *fault) {
	r := Route{Match: map[string]string{}}
	table, ok := v.(map[string]any)
	if !ok {
		return r, d.wrongType("a table in each place", v)
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if key != "match" && key != "to" {
			return r, &fault{wrong: "a route has no " + strconv.Quote(key), remedy: oneOf(key, []string{"match", "to"})}
		}
	}
	var f *fault
	if r.To, f = d.routeTo(table["to"]); f != nil {
		return r, f
	}
	match, _ := table["match"].(map[string]any)
	if len(match) == 0 {
		return r, &fault{wrong: "a route needs match, a table of texts", remedy: d.exampleRemedy()}
	}
	for name, want := range match {
		if r.Match[name], f = d.text(want); f != nil {
			return r, f
		}
	}
	return r, nil
}

// routeTo decodes the places to which a route leads. An empty list means that posts that match
// are dropped.
func (d *decoder) routeTo(v any) ([]string, *fault) {
	if none, ok := v.([]any); ok && len(none) == 0 {
		return []string{}, nil
	}
	to, f := d.places(v)
	if f != nil {
		return nil, &fault{wrong: "a route needs to: a target, an address or a list of them ([] drops what matches)", remedy: d.exampleRemedy()}
	}
	return to.([]string), nil
}
