package routing

import (
	"slices"
	"strings"
	"unicode"
)

// A Route says which agent answers the messages that match it. An empty field matches every message.
type Route struct {
	Chat    string // the platform's id of the chat
	User    string // the platform's id of the sender
	Mention string // the word, after the bot's name, with which the message names the agent
	Agent   string
}

// messageFacts is what is known about a message when its agent is chosen.
type messageFacts struct {
	chat, user string
	text       string
	called     bool // whether the message began with the bot's name
	// current is the agent of the conversation that the message belongs to by its place; "" if it belongs to none.
	current string
}

// canMatch reports whether a route can match messages in a chat from a user, whatever they say. If user is "", any
// user will do.
func (r Route) canMatch(chat, user string) bool {
	return (r.Chat == "" || r.Chat == chat) && (r.User == "" || user == "" || r.User == user)
}

// choose returns the agent of the first route that matches a message, and the text without the word that names the
// agent, if there is one; named says whether there is. A message that names no agent belongs to the conversation's
// current agent, if people can name that agent here. agent is "" if no route matches.
func choose(routes []Route, s messageFacts) (agent, text string, named bool) {
	front, word, rest := cutAgentWord(s.text, s.called)
	calls := func(r Route) bool { return r.Mention != "" && strings.EqualFold(r.Mention, word) }
	named = slices.ContainsFunc(routes, func(r Route) bool { return r.canMatch(s.chat, s.user) && calls(r) })
	for _, r := range routes {
		switch {
		case !r.canMatch(s.chat, s.user):
		case r.Mention == "":
			return r.Agent, s.text, false
		case named && calls(r):
			if text = strings.TrimSpace(front + rest); text == "" {
				text = s.text // the word is all that was said
			}
			return r.Agent, text, true
		case !named && r.Agent == s.current:
			return r.Agent, s.text, false
		}
	}
	return "", s.text, false
}

// candidates returns the agents that people may talk to in a chat: those of the routes that can match there, and
// the agent otherwise, which answers if no route matches.
func candidates(routes []Route, otherwise, chat, user string) []string {
	var all []string
	for _, r := range routes {
		if r.canMatch(chat, user) && !slices.Contains(all, r.Agent) {
			all = append(all, r.Agent)
		}
	}
	if !slices.Contains(all, otherwise) {
		all = append(all, otherwise)
	}
	return all
}

// cutAgentWord splits a text into the file names at its beginning, the word that may name an agent, and the rest.
// If the bot was called by its name, that word is the first one; otherwise, the first word counts only if it ends
// in a colon.
func cutAgentWord(text string, called bool) (files, word, rest string) {
	rest = strings.TrimSpace(text)
	for strings.HasPrefix(rest, "[") {
		i := strings.IndexByte(rest, ']')
		if i < 0 {
			break
		}
		files, rest = files+rest[:i+1]+" ", strings.TrimSpace(rest[i+1:])
	}
	word, rest = rest, ""
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word, rest = word[:i], strings.TrimSpace(word[i:])
	}
	bare := strings.TrimRight(word, ":,")
	if !called && !strings.HasSuffix(word, ":") {
		return files, "", rest
	}
	return files, bare, rest
}
