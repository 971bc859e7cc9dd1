package server

import (
	"context"
	"os"

	"parley/agent"
	"parley/agent/jobs"
	"parley/agent/schedules"
	"parley/agent/sessioncache"
	"parley/agent/subagents"
	"parley/agent/worker"
	"parley/bus"
	"parley/bus/timers"
	"parley/channels/asks"
	"parley/channels/webhook/events"
)

// answerer answers messages: it runs the worker.
type answerer struct {
	foundation
	agents       *agents
	limits       *limits
	liveChannels liveChannels
	asks         *asks.Service
	jobs         *jobs.Runner
	subagents    *subagents.Service
	undoing      *undoHistory
	rights       *rights
	events       *events.Channel
	link         func(context.Context, bus.Inbound) (string, error) // carries out /link for the users of tokens
	costs        *costs
	audit        *auditing
	sessionCache *sessioncache.Journals // the cached state of sessions
}

// Run runs the worker, which answers messages.
func (w *answerer) Run(ctx context.Context) error {
	c := w.settings.Load()
	return worker.New(agent.Config{
		Bus: w.home.Bus, Events: w.home.Bus, Store: w.home.Store, Budget: w.home.Store, Money: w.home.Store.Money(),
		Agents: w.agents.forSession, Limits: w.limits.inForce, Healthy: w.healthy, Prefix: w.liveChannels.prefix, Asks: w.asks, ShowsWholeTexts: showsAll, Presses: w.liveChannels.hasButtons, OwnData: w.liveChannels.isPlatform, Link: w.link, Approvals: w.settings.approvals,
		NodeWaits: w.agents.nodes, Approvers: w.agents.nodes.Approvers, Jobs: w.jobs, SubAgents: w.subagents, History: w.undoing, Deserted: w.rights.isUnattended, Admit: admitEvent(w.events), Account: w.home.Book.Account, Usage: w.costs.Answer, SessionCache: w.sessionCache,
		MaxInFlight: c.Serve.MaxInFlight, Drain: c.Serve.Drain, Log: w.log, Observer: w.metrics, Trace: w.traces, Audit: w.audit.RecordSoon, QueueAudit: w.audit.Note, Point: w.point,
	}).Run(ctx)
}

// healthy returns an error if something that every session needs doesn't work: the store or, in a fleet, the folders
// with the sessions' files. It reads before it writes, because only a read ends when ctx does.
func (w *answerer) healthy(ctx context.Context) error {
	if _, err := w.home.Store.List(ctx, "", 1); err != nil {
		return err
	}
	if err := w.home.Store.Writable(ctx); err != nil {
		return err
	}
	if w.settings.Load().Store.URL == "" {
		return nil
	}
	for _, folder := range w.settings.Load().Folders() {
		if _, err := os.Stat(folder.Dir); err != nil {
			return err
		}
	}
	return nil
}

// newTimers returns the runner that wakes asks and schedules when they are due.
func newTimers(on foundation, asked *asks.Service, due *schedules.Scheduler) *timers.Runner {
	return &timers.Runner{Bus: on.home.Bus, Log: on.log, Handlers: map[string]timers.Handler{
		bus.AskTimer: asked.Fire, bus.ScheduleTimer: due.Fire,
	}}
}

// worksWithoutMail reports whether a turn of a session waits for people or a node, or sub-agents or background
// jobs work for the session: then there is something to stop, although the session has no mail.
func (w *answerer) worksWithoutMail(ctx context.Context, session string) (bool, error) {
	if waits, err := w.home.Book.HasOpenAsk(ctx, session); waits || err != nil {
		return waits, err
	}
	if waits, err := w.agents.nodes.WaitsIn(ctx, session); waits || err != nil {
		return waits, err
	}
	if n, err := w.subagents.Count(ctx, session); n > 0 || err != nil {
		return n > 0, err
	}
	n, err := w.jobs.Count(ctx, session)
	return n > 0, err
}
