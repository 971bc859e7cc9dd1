package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"parley/cmd/parley/config/schema"
)

// An AgentRoute says that messages on a channel that match it are answered by a certain agent. At
// least one of Chat, User and Mention is set, and all that are set have to match.
type AgentRoute struct {
	Chat, User string // ids on the platform
	Mention    string // the first word after the bot's name
	Agent      string
}

// An agentRoutes is the kind of a setting whose value is a list of { match = { chat, user, mention
// }, agent = … }.
type agentRoutes struct{}

// Decode converts a list of tables into a list of AgentRoute.
func (agentRoutes) Decode(d *schema.Decoder, v any) (any, *schema.Fault) {
	return schema.Tables(d, v, decodeAgentRoute)
}

// Show converts routes to JSON types.
func (agentRoutes) Show(v any) any {
	list := []any{}
	for _, r := range v.([]AgentRoute) {
		match := map[string]string{"chat": r.Chat, "user": r.User, "mention": r.Mention}
		maps.DeleteFunc(match, func(_, want string) bool { return want == "" })
		list = append(list, schema.Table{{Key: "match", Value: match}, {Key: "agent", Value: r.Agent}})
	}
	return list
}

func decodeAgentRoute(d *schema.Decoder, table map[string]any) (r AgentRoute, f *schema.Fault) {
	if f := schema.UnknownKey(table, "a route", "match", "agent"); f != nil {
		return r, f
	}
	if table["agent"] == nil {
		return r, &schema.Fault{Wrong: "a route has no agent", Remedy: d.Example()}
	}
	if r.Agent, f = d.Text(table["agent"]); f != nil {
		return r, f
	}
	match, _ := table["match"].(map[string]any)
	if len(match) == 0 {
		return r, &schema.Fault{Wrong: `a route needs "match": a chat, a user or a mention`, Remedy: d.Example()}
	}
	if f := schema.UnknownKey(match, "match", "chat", "user", "mention"); f != nil {
		return r, f
	}
	for key, field := range map[string]*string{"chat": &r.Chat, "user": &r.User, "mention": &r.Mention} {
		want, given := match[key]
		if !given {
			continue
		}
		decode := d.ID
		if key == "mention" {
			decode = d.Text
		}
		if *field, f = decode(want); f != nil {
			return r, f
		}
		if *field == "" {
			return r, &schema.Fault{Wrong: key + ` is ""`, Remedy: "write the " + key + ", or leave it out"}
		}
	}
	return r, nil
}

// agentsOf returns the agents that answer on the channel whose table is at this path.
func agentsOf(l *loader, channel string) []string {
	all := []string{l.Text(channel + ".agent")}
	routes, _ := l.Value(channel + ".routes").([]AgentRoute)
	for _, r := range routes {
		all = append(all, r.Agent)
	}
	return all
}

// checkAgentRoutes reports a channel's routes that name no agent, that match no message, or whose mention is a command.
func checkAgentRoutes(l *loader, channel string, platform Platform) {
	path := channel + ".routes"
	routes, _ := l.Value(path).([]AgentRoute)
	for i, r := range routes {
		report := func(what, remedy string) { l.Report(l.ElementAt(path, i), path, what, remedy) }
		checkAgentExists(l, l.ElementAt(path, i), path, r.Agent)
		for _, id := range []string{r.Chat, r.User} {
			if _, alone, names := strings.Cut(id, ":"); names {
				report(fmt.Sprintf("%q names a channel", id), fmt.Sprintf("write only what follows it: %q", alone))
			}
		}
		if strings.ContainsAny(r.Chat, "# ") || strings.HasPrefix(r.Chat, "@") {
			report(fmt.Sprintf("%q is a name, but a chat needs its id", r.Chat), platform.GroupIDRemedy)
		}
		if r.User != "" && !strings.Contains(r.User, ":") && platform.IsUserID != nil && !platform.IsUserID(r.User) {
			report(fmt.Sprintf("%q isn't a %s user's id", r.User, platform.Title), platform.UserIDRemedy)
		}
		if strings.ContainsFunc(r.Mention, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("@:,/[]<>", c) }) {
			report(fmt.Sprintf("the mention %q isn't a word", r.Mention), `write a word that people say after the bot's name, such as mention = "ops"`)
		}
		if slices.Contains([]string{"stop", "new", "status", "help"}, strings.ToLower(r.Mention)) {
			report(fmt.Sprintf("the mention %q is a command", r.Mention), "choose another word")
		}
	}
}
