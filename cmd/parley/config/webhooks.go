package config

import (
	"slices"

	"parley/cmd/parley/config/schema"
)

// A Webhook is a path of the server that another service posts to.
type Webhook struct {
	Name     string
	Kind     string   // "alertmanager", "github" or "json"
	Token    Secret   // "" if the service signs its requests
	Secret   Secret   // the key of the signature; "" if the service sends the token
	To       []string // where messages go if no route matches: targets and addresses, as written
	Routes   []Route  // the first route that matches decides
	Template string   // "" means the kind's own
	// Agent is the agent that is given what is posted; if it is "", people are sent a message.
	Agent string
	Group string // for plain JSON that is given to an agent: the template whose result says which posts belong together
}

// These are the kinds of webhooks that the program treats specially.
const (
	alertmanager = "alertmanager"
	github       = "github"
)

// webhooksSection declares the settings of webhooks.
func webhooksSection() section {
	return section{
		Section: schema.Section{Name: "webhooks", Named: true, ByName: "kind", WideNames: true, Reload: withChannels, Settings: []schema.Setting{
			{Key: "kind", Kind: schema.Text, OneOf: []string{alertmanager, github, "json"}, Example: `"alertmanager"`, Reload: schema.AtOnce, Fill: schema.Into(func(w *Webhook) any { return &w.Kind })},
			{Key: "token", Kind: schema.Text, Secret: true, Example: `"${file:/run/secrets/webhook}"`, Reload: schema.AtOnce, Fill: schema.Into(func(w *Webhook) any { return &w.Token })},
			{Key: "secret", Kind: schema.Text, Secret: true, Example: `"${file:/run/secrets/webhook}"`, Reload: schema.AtOnce, Fill: schema.Into(func(w *Webhook) any { return &w.Secret })},
			{Key: "to", Kind: placeList{}, Example: `"oncall"`, Reload: withChannels, Fill: schema.Into(func(w *Webhook) any { return &w.To })},
			{Key: "routes", Kind: routeList{}, Example: `[{ match = { severity = "critical" }, to = "oncall" }]`, Reload: withChannels, Fill: schema.Into(func(w *Webhook) any { return &w.Routes })},
			{Key: "template", Kind: schema.Text, Example: `"{{ .commonLabels.severity }}"`, Reload: schema.AtOnce, Fill: schema.Into(func(w *Webhook) any { return &w.Template })},
			{Key: "agent", Kind: schema.Text, Example: `"main"`, Fill: schema.Into(func(w *Webhook) any { return &w.Agent })},
			{Key: "group", Kind: schema.Text, Example: `"{{ .build.id }}"`, Reload: schema.AtOnce, Fill: schema.Into(func(w *Webhook) any { return &w.Group })},
		}},
		check: func(l *loader) {
			for _, name := range l.Names("webhooks") {
				checkWebhook(l, name)
			}
		},
	}
}

// A Route sends a webhook's posts that match it to other places than the webhook's own.
type Route struct {
	Match map[string]string
	To    []string // targets and addresses, as written; if there are none, matching posts are dropped
}

// A routeList is the kind of a setting whose value is a list of { match = {…}, to = … }.
type routeList struct{}

// Decode converts a list of tables into a list of Route.
func (routeList) Decode(d *schema.Decoder, v any) (any, *schema.Fault) {
	return schema.Tables(d, v, decodeRoute)
}

// Show converts routes to JSON types.
func (routeList) Show(v any) any {
	list := []any{}
	for _, r := range v.([]Route) {
		list = append(list, schema.Table{{Key: "match", Value: r.Match}, {Key: "to", Value: r.To}})
	}
	return list
}

func decodeRoute(d *schema.Decoder, table map[string]any) (r Route, f *schema.Fault) {
	if f := schema.UnknownKey(table, "a route", "match", "to"); f != nil {
		return r, f
	}
	if r.To, f = decodeRouteTo(d, table["to"]); f != nil {
		return r, f
	}
	match, _ := table["match"].(map[string]any)
	if len(match) == 0 {
		return r, &schema.Fault{Wrong: `a route needs "match", a table of strings`, Remedy: d.Example()}
	}
	r.Match = map[string]string{}
	for name, want := range match {
		if r.Match[name], f = d.Text(want); f != nil {
			return r, f
		}
	}
	return r, nil
}

// decodeRouteTo decodes the places that a route leads to. An empty list means that matching posts
// are dropped.
func decodeRouteTo(d *schema.Decoder, v any) ([]string, *schema.Fault) {
	if none, ok := v.([]any); ok && len(none) == 0 {
		return []string{}, nil
	}
	to, f := decodePlaces(d, v)
	if f != nil {
		return nil, &schema.Fault{Wrong: `a route needs "to": a target, an address or a list of them ([] drops what matches)`, Remedy: d.Example()}
	}
	return to, nil
}

// checkWebhook reports what a webhook lacks, and settings of it that are wrong.
func checkWebhook(l *loader, name string) {
	path := "webhooks." + name
	at := l.At(path)
	kind := l.Text(path + ".kind")
	if !l.Mentioned(path+".kind") && kind == "" {
		l.Report(at, path, "it doesn't name a kind", `write kind = "json", "alertmanager" or "github"`)
	}
	token, secret := l.Mentioned(path+".token"), l.Mentioned(path+".secret")
	switch {
	case !token && !secret:
		l.Report(at, path, "has neither token nor secret: anybody could post", `write token = "${file:PATH}", or secret if the sender signs`)
	case kind == github && !secret:
		l.Report(at, path, "has no secret: GitHub signs, and sends no token", `write secret = "${file:PATH}", the one that you gave GitHub`)
	case kind == alertmanager && !token:
		l.Report(at, path, "has no token: Alertmanager sends one, and can't sign", `write token = "${file:PATH}", the one in Alertmanager's http_config`)
	}
	if !l.Mentioned(path + ".to") {
		l.Report(at, path, `has no "to": anything that doesn't match a route has nowhere to go`, `write to = "TARGET"`)
	}
	checkPlaces(l, path+".to", true)
	checkTooMany(l, path+".to", l.At(path+".to"), l.Texts(path+".to"))
	checkTemplate(l, path+".template", `write something like template = "**{{ .title }}** {{ .body }}"`)
	checkTemplate(l, path+".group", `write something like group = "{{ .build.id }}"`)
	checkWebhookAgent(l, path, kind)
	routes, _ := l.Value(path + ".routes").([]Route)
	for i, r := range routes {
		checkTooMany(l, path+".routes", l.ElementAt(path+".routes", i), r.To)
		for _, s := range r.To {
			if f := checkPlace(l, s, true); f != nil {
				l.Report(l.ElementAt(path+".routes", i), path+".routes", f.Wrong, f.Remedy)
			}
		}
	}
}

// checkWebhookAgent reports mistakes in a webhook whose posts are given to an agent.
func checkWebhookAgent(l *loader, path, kind string) {
	agent := l.Text(path + ".agent")
	if l.Mentioned(path+".group") && (agent == "" || kind == alertmanager || kind == github) {
		wrong, remedy := "has no effect without agent", "write agent = \""+MainAgent+"\", or remove it"
		if agent != "" {
			wrong, remedy = "is for plain JSON: "+kind+" sends its own groups", "remove it"
		}
		l.Report(l.At(path+".group"), path+".group", wrong, remedy)
	}
	if agent == "" {
		return
	}
	checkAgentExists(l, l.At(path+".agent"), path+".agent", agent)
	if slices.Contains(l.Names("channels"), "webhook") {
		l.Report(l.At("channels.webhook"), "channels.webhook", "if a webhook has an agent, the name webhook is reserved for its conversations", "choose another name for the channel")
	}
}

// checkTemplate reports a template, in the setting at path, that cannot be parsed; remedy shows how to write one.
func checkTemplate(l *loader, path, remedy string) {
	text, ok := l.Value(path).(string)
	if !ok || l.opts.CheckTemplate == nil {
		return
	}
	err := l.opts.CheckTemplate(text)
	if err == nil {
		return
	}
	wrong := "can't be read"
	if !l.HasReferences(path) { // otherwise the parser might repeat a secret
		wrong += ": " + err.Error()
	}
	l.Report(l.At(path), path, wrong, remedy)
}
