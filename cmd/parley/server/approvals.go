package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/agent"
	"parley/bus"
	"parley/channels"
	"parley/channels/asks"
	"parley/channels/console"
	"parley/channels/web"
	"parley/cmd/parley/clock"
	"parley/cmd/parley/events"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/occasion"
	"parley/tools"
	"parley/tools/guard"
)

// newDesk makes the desk that opens asks and decides them.
func (s *Server) newDesk() *asks.Desk {
	return &asks.Desk{Bus: s.home.Bus, Book: s.home.Book, MayPark: s.home.MayPark, Ended: s.metrics.AskEnded, Log: s.log}
}

// newClock makes the clock that starts turns when schedules are due.
func (s *Server) newClock() *clock.Clock {
	return clock.New(clock.Config{
		Bus: s.home.Bus, Table: s.home.Store.Schedules(), Limits: s.scheduleLimits, Admit: s.admitOccasion, Zone: s.zoneOf, Ready: s.home.MaySchedule,
		Fired: s.metrics.ScheduleFired, Log: s.log, Point: s.point,
	})
}

// zoneOf returns the time zone of a person; "" if their platform does not tell it.
func (s *Server) zoneOf(ctx context.Context, person string) string {
	channel, _, _ := strings.Cut(person, ":")
	for _, l := range s.channels {
		if knows, ok := channels.AsTimeZoner(l.channel); ok && l.name == channel {
			zone, err := knows.TimeZone(ctx, person)
			if err != nil {
				s.log.Debug("a time zone is not known now", slog.String("person", person), slog.Any("error", err))
			}
			return zone
		}
	}
	return ""
}

func (s *Server) scheduleLimits() clock.Limits {
	c := s.settings.Load().Schedule
	return clock.Limits{Most: c.Most, Least: c.Least, Zone: cmp.Or(c.TimeZone, clock.MachineZone())}
}

// admitOccasion reports whether a turn may begin for somebody at an address now, though
// they say nothing, by the rules that hold for their messages there. Programs begin turns
// only in their own sessions.
func (s *Server) admitOccasion(ctx context.Context, who bus.Person, at bus.Address) (occasion.Caller, bool, error) {
	channel, user, _ := strings.Cut(who.ID, ":")
	switch channel {
	case console.Name:
		who.Owner = true
		return occasion.Caller{Person: who, Private: true}, true, nil
	case web.Name:
		token, ok := s.settings.Load().Tokens[user]
		return occasion.Caller{Person: who, Private: true}, ok && (slices.Contains(token.May, "agent") || slices.Contains(token.May, "admin")), nil
	case events.Name, heartbeat.Name:
		_, hears := s.replySession(at)
		return occasion.Program(who.ID), hears && at.Channel == channel && at.Chat == user, nil
	}
	i := slices.IndexFunc(s.channels, func(l *endpoint) bool { return l.name == channel && l.config.Platform != "" && l.receive })
	if i < 0 || at.Channel != channel {
		return occasion.Caller{}, false, nil // the channel is not configured any more
	}
	l := s.channels[i]
	private := s.isPrivateChat(at)
	if !private && l.gate.Mention(at.Chat) == channels.MentionNowhere {
		return occasion.Caller{}, false, nil
	}
	judged, ok, err := l.gate.Judge(ctx, l.channel, s.home.Book, who)
	return occasion.Caller{Person: judged, Private: private}, ok, err
}

// approvalSettings returns where people are asked for approvals and for how long, by the
// settings in force.
func (s *Server) approvalSettings() agent.Approvals {
	c := s.settings.Load()
	a := agent.Approvals{Expires: c.Approvals.Expires}
	a.To = s.resolvePlaces(c.Approvals.To)
	return a
}

// resolvePlaces returns the addresses that a list of targets and addresses stands for.
func (s *Server) resolvePlaces(written []string) (all []bus.Address) {
	targets := s.settings.Load().Targets
	for _, place := range written {
		if to, ok := targets[place]; ok {
			all = append(all, to...)
			continue
		}
		if at, err := bus.ParseAddress(place); err == nil { // the configuration was checked
			all = append(all, at)
		}
	}
	return all
}

// fingerprintInputs returns a hash of what a call works on beside its arguments: the
// session's directory, and the files in it that the arguments name, whole or within a
// command line.
func (s *Server) fingerprintInputs(ctx context.Context, call tools.Call) (string, error) {
	dir, err := s.home.Workspace(call.Session)
	if err != nil {
		return "", fmt.Errorf("open the workspace: %w", err)
	}
	words, folders, err := guard.FileWords(call)
	if err != nil {
		return "", err
	}
	return dir.Fingerprint(ctx, words, folders)
}

// waitsForPeople reports whether a turn of a session waits for people.
func (s *Server) waitsForPeople(ctx context.Context, session string) (bool, error) {
	return s.home.Book.Waits(ctx, session)
}

// isPrivateChat reports whether a chat is known to have one person and the bot alone.
func (s *Server) isPrivateChat(at bus.Address) bool {
	known, err := s.home.Book.Chats(context.Background())
	return err == nil && slices.ContainsFunc(known, func(c channels.Chat) bool {
		return c.Address.Channel == at.Channel && c.Address.Chat == at.Chat && !c.Group
	})
}
