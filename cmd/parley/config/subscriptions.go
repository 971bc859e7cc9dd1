package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/cmd/parley/config/schema"
	"parley/sessions/subscriptions"
)

// A Subscription says which of the server's events are posted to a program, and where.
type Subscription struct {
	Name   string
	URL    string
	Secret Secret // the key of the signature
	Events []string
	Text   bool // whether events include what was said
}

// Subscribers returns the subscriptions, sorted by name.
func (c *Config) Subscribers() (all []subscriptions.Subscription) {
	for _, name := range slices.Sorted(maps.Keys(c.Subscriptions)) {
		s := c.Subscriptions[name]
		all = append(all, subscriptions.Subscription{Name: name, URL: s.URL, Secret: string(s.Secret), Events: strings.Join(s.Events, " "), Text: s.Text})
	}
	return all
}

// subscriptionsSection declares the settings of subscriptions.
func subscriptionsSection() section {
	return section{
		Section: schema.Section{Name: "subscriptions", Named: true, Reload: schema.AtOnce, Settings: []schema.Setting{
			{Key: "url", Kind: schema.URL, Schemes: []string{"https", "http"}, Example: `"https://hooks.example.com/parley"`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Subscription) any { return &s.URL })},
			{Key: "secret", Kind: schema.Text, Secret: true, Example: `"${file:/run/secrets/subscription}"`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Subscription) any { return &s.Secret })},
			{Key: "events", Kind: schema.Texts, Example: `["turn.*", "tool.completed"]`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Subscription) any { return &s.Events })},
			{Key: "text", Kind: schema.Truth, Default: false, Example: "true", Reload: schema.AtOnce, Fill: schema.Into(func(s *Subscription) any { return &s.Text })},
		}},
		check: func(l *loader) {
			for _, name := range l.Names("subscriptions") {
				checkSubscription(l, "subscriptions."+name)
			}
		},
	}
}

// checkSubscription reports settings of a subscription that are missing, wrong or unsafe.
func checkSubscription(l *loader, path string) {
	at := l.At(path)
	switch address := l.Text(path + ".url"); {
	case !l.Mentioned(path + ".url"):
		l.Report(at, path, "has no url: there's nowhere to post events", `write url = "https://HOST/PATH"`)
	case inTheClear(address):
		l.Report(l.At(path+".url"), path+".url", "without TLS, others could read the events in transit", `write https://, or http:// only for a program on this machine, such as "http://127.0.0.1:8080/parley"`)
	}
	secret := l.Text(path + ".secret")
	key, ok := subscriptions.Key(secret)
	switch {
	case !l.Mentioned(path + ".secret"):
		l.Report(at, path, "has no secret: the program couldn't tell whose events they are", `write secret = "${file:PATH}"`)
	case !ok:
		l.Report(l.At(path+".secret"), path+".secret", "starts with whsec_, but what follows isn't Base64", "copy it again, up to the last =; or make one with: openssl rand -hex 32")
	case secret != "" && len(key) < minTokenBytes:
		l.Report(l.At(path+".secret"), path+".secret", fmt.Sprintf("short enough to guess: it needs at least %d characters", minTokenBytes), "make one with: openssl rand -hex 32")
	}
	events := l.Texts(path + ".events")
	if len(events) == 0 {
		l.Report(at, path, "doesn't name any events", `write something like events = ["turn.*", "ask.*"]`)
	}
	for i, pattern := range events {
		if len(subscriptions.Select(pattern)) == 0 {
			l.Report(l.ElementAt(path+".events", i), path+".events", fmt.Sprintf("unknown event %q", pattern), schema.OneOf(pattern, eventPatterns()))
		}
	}
}

// eventPatterns returns what a subscription may name: types of events, and groups of several types.
func eventPatterns() (all []string) {
	last := ""
	for _, one := range subscriptions.Types() {
		group, _, _ := strings.Cut(one, ".")
		if group != last && len(subscriptions.Select(group+".*")) > 1 {
			all = append(all, group+".*")
		}
		all, last = append(all, one), group
	}
	return all
}
