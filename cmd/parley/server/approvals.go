package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/bus"
	"parley/channels"
	"parley/channels/asks"
	"parley/channels/console"
	"parley/channels/web"
	"parley/cmd/parley/clock"
	"parley/cmd/parley/events"
	"parley/cmd/parley/handover"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/jobs"
	"parley/cmd/parley/occasion"
	"parley/sessions"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/sandbox"
	"parley/tools/shell"
)

// newAsks makes the service that asks people for approvals and answers, and records what they
// decide.
func (s *Server) newAsks() *asks.Service {
	return &asks.Service{Bus: s.home.Bus, Book: s.home.Book, MayPark: s.home.MayPark, Ended: s.metrics.AskEnded, Log: s.log}
}

// newClock makes the clock that gives agents the texts of schedules that are due.
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

// admitOccasion decides whether a turn may begin on somebody's behalf at an address now though
// they say nothing, for example because a schedule of theirs is due. The same rules hold as for
// their messages there. Programs may begin turns only in their own sessions.
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
		session, err := s.replySession(ctx, at)
		return occasion.Program(who.ID), session != "" && at.Channel == channel && at.Chat == user, err
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

// resolvePlaces returns the addresses for which a list of targets and addresses stands.
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

// fingerprintInputs returns a hash of what a tool call works on beside its arguments, so that a
// change after people have approved the call is noticed: the session's directory, and the files
// in it that the arguments name, whole or within a command line.
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

// worksBeside reports whether a turn of a session waits for people, or sub-agents or jobs in the
// background work for the session: then there is something to stop, though the session has no
// mail.
func (s *Server) worksBeside(ctx context.Context, session string) (bool, error) {
	if waits, err := s.home.Book.Waits(ctx, session); waits || err != nil {
		return waits, err
	}
	if n, err := s.handover.Count(ctx, session); n > 0 || err != nil {
		return n > 0, err
	}
	n, err := s.jobs.Count(ctx, session)
	return n > 0, err
}

// isPrivateChat reports whether a chat is known to have one person and the bot alone.
func (s *Server) isPrivateChat(at bus.Address) bool {
	known, err := s.home.Book.Chats(context.Background())
	return err == nil && slices.ContainsFunc(known, func(c channels.Chat) bool {
		return c.Address.Channel == at.Channel && c.Address.Chat == at.Chat && !c.Group
	})
}

// newJobs makes the runner of background commands.
func (s *Server) newJobs(box sandbox.Sandbox) *jobs.Runner {
	return jobs.New(jobs.Config{
		Store: s.home.Store, Bus: s.home.Bus, Sandbox: box, Settings: s.jobSettings,
		Place: func(ctx context.Context, call tools.Call) (sandbox.Place, error) {
			return s.commandPlace(ctx, call, "")
		},
		Create: func(_ context.Context, session, path string) (*os.File, error) {
			dir, err := s.home.Workspace(session)
			if err != nil {
				return nil, err
			}
			return dir.Create(path)
		},
		Networked: s.reachesNetwork, Changed: s.markChanged, Redact: func(text string) string { return s.guard.Load().redact.Text(text) }, Admit: s.admitOccasion, Ready: s.home.MayRunJobs,
		Audit: func(ctx context.Context, r sessions.AuditRecord) error { return s.trail.Record(ctx, r) }, Point: s.point, Log: s.log,
	})
}

// jobSettings returns the operator's settings for jobs, as they are now.
func (s *Server) jobSettings() jobs.Settings {
	c := s.settings.Load().Jobs
	return jobs.Settings{Limits: sessions.JobLimits{Session: c.PerSession, Person: c.PerPerson}, Most: c.Most, Write: c.Write}
}

// newHandover makes the service that hands tasks to sub-agents.
func (s *Server) newHandover() *handover.Service {
	return handover.New(handover.Config{
		Table: s.home.Store.Tasks(), Bus: s.home.Bus, Ready: s.home.MayDelegate, MaySpawn: s.maySpawn, Admit: s.admitOccasion,
		Copy: func(ctx context.Context, call tools.Call, to string, files []string) error {
			from, err := s.openUntil(ctx, call)
			if err != nil {
				return err
			}
			into := call
			into.Session = to
			dir, err := s.openUntil(ctx, into)
			if err != nil {
				return err
			}
			return (&handover.Copier{From: from, To: dir}).Copy(ctx, files)
		},
		Erase: func(ctx context.Context, sessions []string) ([]string, error) {
			return s.eraser().Sessions(ctx, sessions)
		},
		Sessions: s.home.Store, Describe: s.describeAgent,
		Listens: func(at bus.Address) bool {
			session, err := s.replySession(context.Background(), at)
			return (session != "" || err != nil) && at.Channel != events.Name && at.Channel != heartbeat.Name
		},
		Ended: s.metrics.TaskEnded, Point: s.point, Log: s.log,
	})
}

// describeAgent returns what models are told of an agent.
func (s *Server) describeAgent(name string) handover.AgentInfo {
	a := s.settings.Load().Agents[name]
	return handover.AgentInfo{Model: a.Model, Capabilities: a.Capabilities, Prompt: a.Prompt}
}

// maySpawn returns the names of the agents to which an agent may hand tasks.
func (s *Server) maySpawn(name string) []string {
	may := append([]string{name}, s.settings.Load().Agents[name].MaySpawn...)
	slices.Sort(may)
	return slices.Compact(may)
}

// parentOf returns the session that has handed out the task on which a sub-agent's session works.
// It returns "" for any other session, and if that cannot be found out now.
func (s *Server) parentOf(session string) string {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTimeout)
	defer cancel()
	parent, err := s.handover.Parent(ctx, session)
	if err != nil {
		s.log.Warn("it is not known for whom a sub-agent works, so it may do nothing", slog.String("session", session), slog.Any("error", err))
	}
	return parent
}

// lookUpTimeout bounds how long parentOf looks for a sub-agent's parent.
const lookUpTimeout = 5 * time.Second

// mainAgentJobs is a shell.Background that starts no command for a sub-agent, because nobody would
// look after that.
type mainAgentJobs struct{ shell.Background }

// Start implements shell.Background: it starts the command, unless a sub-agent asks for it.
func (f mainAgentJobs) Start(ctx context.Context, call tools.Call, o shell.Order) (any, error) {
	if call.Parent != "" {
		return nil, tools.Errorf(tools.PermissionDenied, "a sub-agent runs nothing in the background: run it without background")
	}
	return f.Background.Start(ctx, call, o)
}
