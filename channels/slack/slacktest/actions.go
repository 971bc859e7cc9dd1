package slacktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The kinds of envelopes. Slack redelivers only events.
const (
	eventsAPI     = "events_api"
	interactive   = "interactive"
	slashCommands = "slash_commands"
)

// Command makes a user give the app's slash command, and returns the id of the envelope in which it is delivered.
// Slack sends it once.
func (s *Server) Command(channel, user, text string) (envelope string) {
	trigger := s.newTS()
	return s.announceAction(slashCommands, map[string]any{
		"token": "verification", "team_id": Team, "team_domain": "team", "channel_id": channel, "channel_name": "name-of-" + channel,
		"user_id": user, "user_name": strings.ToLower(user), "command": "/parley", "text": text,
		"response_url": "https://hooks.slack.com/commands/1", "trigger_id": trigger + ".0abc", "api_app_id": "A0PARLEY",
	})
}

// Ask makes a user choose the message shortcut with that callback id at a message, and returns the id of the
// envelope in which it is delivered. Slack sends it once.
func (s *Server) Ask(channel, user, ts, callback string) (envelope string) {
	s.mu.Lock()
	m := s.find(channel, ts)
	if m == nil {
		s.mu.Unlock()
		panic(fmt.Sprintf("slacktest: %s has no message %s", channel, ts))
	}
	shown := m.asJSON()
	s.mu.Unlock()
	at := s.newTS()
	return s.announceAction(interactive, map[string]any{
		"type": "message_action", "callback_id": callback, "trigger_id": at + ".0abc", "action_ts": at, "message_ts": ts,
		"response_url": "https://hooks.slack.com/app/1", "message": shown,
		"user": map[string]any{"id": user, "name": strings.ToLower(user)}, "team": map[string]any{"id": Team, "domain": "team"},
		"channel": map[string]any{"id": channel, "name": "name-of-" + channel},
	})
}

// React adds a user's reaction to a message, or removes it, given the emoji's name.
func (s *Server) React(channel, user, ts, name string, removed bool) {
	s.mu.Lock()
	m := s.find(channel, ts)
	author := ""
	if m != nil {
		author = m.User
	}
	s.mu.Unlock()
	if m == nil {
		panic(fmt.Sprintf("slacktest: %s has no message %s", channel, ts))
	}
	kind := "reaction_added"
	if removed {
		kind = "reaction_removed"
	}
	s.SendEvent(map[string]any{
		"type": kind, "user": user, "reaction": name, "item_user": author, "event_ts": s.newTS(),
		"item": map[string]any{"type": "message", "channel": channel, "ts": ts},
	})
}

// Shown returns what the app made Slack show to the user who gave a slash command; "" if the envelope has not been
// acknowledged yet or the app showed nothing.
func (s *Server) Shown(envelope string) string {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return string(s.sockets.shown[envelope])
}

// announceAction sends the app a user's action and returns the id of the envelope.
func (s *Server) announceAction(kind string, fields map[string]any) (envelope string) {
	payload, err := json.Marshal(fields)
	if err != nil {
		panic("slacktest: an action that is no JSON: " + err.Error()) // the test's mistake
	}
	channel, _ := fields["channel_id"].(string)
	return s.sockets.enqueue(kind, channel, payload)
}

// newTS returns a ts that no message has.
func (s *Server) newTS() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastTS = max(s.lastTS+1, time.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}
