package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/channels/console"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/sessions"
)

// chatCommands carries out the commands that only a terminal has: /sessions, /model and /recall.
type chatCommands struct {
	cfg     *config.Config
	models  models.Lists
	server  *client.Client
	current *client.Conversation
	// bound reports whether this conversation works in the person's own directory, which no other conversation does.
	bound  bool
	listed []place // the list that /sessions printed last, from which a number chooses; nil at first
	next   *place  // the conversation to switch to; nil to stay
}

// A place is one of the terminal's conversations.
type place struct {
	agent, chat string
	updated     time.Time
	title       string
}

// maxPlaces is how many conversations /sessions lists.
const maxPlaces = 15

// carryOut carries out a command, and returns the reply. leave is true if the person continues in another
// conversation.
func (c *chatCommands) carryOut(ctx context.Context, name, args string) (said string, leave bool) {
	switch name {
	case "model":
		return c.describeModel(args), false
	case "recall":
		return c.recall(ctx, args), false
	case "sessions":
		if args == "" {
			return c.list(ctx), false
		}
		return c.goTo(ctx, args)
	}
	return "", false
}

// list returns the reply to /sessions: a line for each of the person's conversations at terminals, the most recently
// used first, at most maxPlaces.
func (c *chatCommands) list(ctx context.Context) string {
	if err := c.find(ctx); err != nil {
		return "can't list the conversations: " + err.Error()
	}
	if len(c.listed) == 0 {
		return "there are no conversations yet"
	}
	lines := []string{textConversations}
	for i, p := range c.listed {
		if i == maxPlaces {
			lines = append(lines, "… parley sessions lists them all")
			break
		}
		about := []string{p.chat}
		if p.agent != config.MainAgent {
			about = append(about, "agent "+p.agent)
		}
		if c.isHere(p) {
			about = append(about, "this one")
		}
		about = append(about, age(time.Since(p.updated)))
		if p.title != "" {
			about = append(about, terminal.Cell(p.title))
		}
		lines = append(lines, fmt.Sprintf("%2d  %s", i+1, strings.Join(about, " · ")))
	}
	return strings.Join(lines, "\n")
}

// find fills c.listed with the person's conversations at terminals, as far as they are among the person's 100 most
// recently used ones.
func (c *chatCommands) find(ctx context.Context) error {
	var found struct {
		Sessions []sessions.Info `json:"sessions"`
	}
	// The server also returns the same person's conversations on other channels; they are left out below.
	if err := c.server.Get(ctx, "/v1/sessions?limit=100&person="+url.QueryEscape(console.Owner), &found); err != nil {
		return err
	}
	c.listed = nil
	for _, s := range found.Sessions {
		agent, chat, ok := strings.Cut(s.Key, ":"+console.Name+":")
		if chat, err := url.PathUnescape(chat); ok && err == nil && !strings.Contains(chat, ":") {
			c.listed = append(c.listed, place{agent, chat, s.Updated, s.Title})
		}
	}
	return nil
}

func (c *chatCommands) isHere(p place) bool {
	key, err := sessionKey(p.agent, p.chat)
	return err == nil && key == c.current.Session
}

// goTo switches the person to the conversation with that number, name or key. If it can't, it says why, and leave is
// false.
func (c *chatCommands) goTo(ctx context.Context, which string) (said string, leave bool) {
	if c.listed == nil {
		if err := c.find(ctx); err != nil {
			return "can't list the conversations: " + err.Error(), false
		}
	}
	at := slices.IndexFunc(c.listed, func(p place) bool {
		return p.chat == which || p.agent+":"+console.Name+":"+p.chat == which
	})
	if n, err := strconv.Atoi(which); err == nil && at < 0 {
		at = n - 1
	}
	switch {
	case at < 0 || at >= len(c.listed):
		return fmt.Sprintf("there's no conversation %s; /sessions lists them, and parley chat --session NAME begins one", which), false
	case c.isHere(c.listed[at]):
		return "you're already there", false
	case c.bound:
		return "this conversation works in your own directory (--workspace): exit, and run parley chat --session " + c.listed[at].chat, false
	}
	c.next = &c.listed[at]
	return "", true
}

// age returns in words how long ago something happened.
func age(since time.Duration) string {
	switch {
	case since < time.Minute:
		return "just now"
	case since < time.Hour:
		return fmt.Sprintf("%d min ago", since/time.Minute)
	case since < 48*time.Hour:
		return fmt.Sprintf("%d h ago", since/time.Hour)
	}
	return fmt.Sprintf("%d days ago", since/(24*time.Hour))
}

// agent returns the name of this conversation's agent.
func (c *chatCommands) agent() string {
	if c.current.Agent == "" {
		return config.MainAgent
	}
	return c.current.Agent
}

// answering returns the name of the model that answers; "" if another process answers.
func (c *chatCommands) answering() string {
	if chain := c.models[c.agent()]; c.server.Hosted && len(chain) > 0 {
		return chain[0].Model.Info().Name
	}
	return ""
}

// describeModel returns which model answers, which others are configured, and how to use another one. If args names a
// model, it also says that one conversation can't change its model.
func (c *chatCommands) describeModel(args string) string {
	chain := c.models[c.agent()]
	if len(chain) == 0 {
		return "this configuration has no agent " + c.agent() + ", so I can't say which model answers"
	}
	named := func(m models.Model) string { return fmt.Sprintf("%s ([%s])", m.Model.Info().Name, m.Table) }
	text := named(chain[0]) + " answers"
	if !c.server.Hosted {
		text += ", unless the running server was started with a different configuration"
	}
	var further []string
	used := map[string]bool{}
	for i, m := range chain {
		if used[m.Table] = true; i > 0 {
			further = append(further, named(m))
		}
	}
	if len(further) > 0 {
		text += ". If it can't: " + strings.Join(further, ", then ")
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Models)) {
		if !used["models."+name] {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		text += ".\nAlso configured: " + strings.Join(others, ", ")
	}
	file := c.cfg.File
	if file == "" {
		file = "parley.toml"
	}
	how := fmt.Sprintf(textUseAnother, file, c.agent())
	if args != "" {
		how = ".\nYou can't change the model for one conversation" + how
	}
	return text + how
}
