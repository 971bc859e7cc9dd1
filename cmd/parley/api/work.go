package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/sessions/schedules"
)

// A Work finds what the bot is working on. It reads only what is stored, so each process can report it for the whole
// fleet. A nil field finds nothing.
type Work struct {
	Turns sessions.TurnReader
	Jobs  sessions.JobLister
	// Asks returns the open asks that were opened first, at most limit, and how many are open.
	Asks func(ctx context.Context, limit int) ([]bus.Ask, int, error)
	// Schedules returns the schedules that are due next, at most limit, and how many there are.
	Schedules func(ctx context.Context, limit int) ([]schedules.Schedule, int, error)
}

// maxListed is how many of each kind the status lists at most.
const maxListed = 20

// A CurrentWork lists what the bot is working on. It contains ids, names of tools and times, and nothing that anybody
// has said or written.
type CurrentWork struct {
	Turns     LimitedList[RunningTurn]    `json:"turns"`
	Waiting   LimitedList[WaitingSession] `json:"waiting"`
	Asks      LimitedList[WaitingAsk]     `json:"asks"`
	Jobs      LimitedList[RunningJob]     `json:"jobs"`
	Schedules LimitedList[DueSchedule]    `json:"schedules"`
}

// A LimitedList contains the first few items of a list, and how many there are.
type LimitedList[T any] struct {
	Count int `json:"count"`
	List  []T `json:"list"`
}

// A RunningTurn is a turn that a worker is working on.
type RunningTurn struct {
	Session string `json:"session"`
	// Turn is left out if the log doesn't contain it: it is about to begin or is over, or a command is being
	// carried out. Since is then when the message arrived.
	Turn     string    `json:"turn,omitempty"`
	Person   string    `json:"person,omitempty"`
	Agent    string    `json:"agent"`
	Process  string    `json:"process,omitempty"` // the process of the fleet that is working on it
	Since    time.Time `json:"since"`
	Messages int       `json:"messages"` // waiting messages of its session, including those that it answers
	// Calls are the running tool calls; if there are none, the model is being asked.
	Calls []RunningCall `json:"calls"`
}

// A RunningCall is a running tool call.
type RunningCall struct {
	Call  string    `json:"call"`
	Tool  string    `json:"tool"`
	Since time.Time `json:"since"`
}

// A WaitingSession is a session with messages that nobody is working on.
type WaitingSession struct {
	Session  string     `json:"session"`
	Messages int        `json:"messages"`
	Since    time.Time  `json:"since"`          // when the first of them arrived
	Next     *time.Time `json:"next,omitempty"` // when they are tried again; left out if as soon as a worker is free
}

// A WaitingAsk is an approval or a question that a turn is waiting for.
type WaitingAsk struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Session string    `json:"session"`
	Tool    string    `json:"tool,omitempty"`
	Person  string    `json:"person"`
	Decides []string  `json:"decides"` // who may answer: owners, approvers of CHANNEL, or a person
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
}

// A RunningJob is a command that runs in the background.
type RunningJob struct {
	ID       string    `json:"id"`
	Session  string    `json:"session"`
	Person   string    `json:"person"`
	Agent    string    `json:"agent"`
	Tool     string    `json:"tool"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
}

// A DueSchedule says when a schedule is due.
type DueSchedule struct {
	ID      string    `json:"id"`
	Session string    `json:"session"`
	Person  string    `json:"person"`
	Next    time.Time `json:"next"`
}

// limitList returns a list as a LimitedList.
func limitList[A, B any](all []A, count int, as func(A) B) LimitedList[B] {
	s := LimitedList[B]{Count: count, List: []B{}}
	for _, one := range all {
		s.List = append(s.List, as(one))
	}
	return s
}

// read finds what the bot is working on; each list in it has no more than maxListed elements.
func (k Work) read(ctx context.Context, mail bus.Inspector) (now CurrentWork, err error) {
	boxes, err := mail.Mailboxes(ctx, bus.InboundTopic, maxListed)
	if err != nil {
		return now, err
	}
	now.Waiting = limitList(boxes.Waiting, boxes.WaitingCount, func(m bus.Mailbox) WaitingSession {
		w := WaitingSession{Session: m.Key, Messages: m.Messages, Since: m.Since.UTC()}
		if !m.Due.IsZero() {
			next := m.Due.UTC()
			w.Next = &next
		}
		return w
	})
	now.Turns = LimitedList[RunningTurn]{Count: boxes.LeasedCount, List: []RunningTurn{}}
	for _, m := range boxes.Leased {
		t, err := k.running(ctx, m)
		if err != nil {
			return now, err
		}
		now.Turns.List = append(now.Turns.List, t)
	}
	slices.SortStableFunc(now.Turns.List, func(a, b RunningTurn) int { return a.Since.Compare(b.Since) })
	return now, k.readRest(ctx, &now)
}

// readRest finds what waits for people or for a time, and what runs outside the turns.
func (k Work) readRest(ctx context.Context, now *CurrentWork) error {
	now.Asks, now.Jobs, now.Schedules = LimitedList[WaitingAsk]{List: []WaitingAsk{}}, LimitedList[RunningJob]{List: []RunningJob{}}, LimitedList[DueSchedule]{List: []DueSchedule{}}
	if k.Asks != nil {
		found, count, err := k.Asks(ctx, maxListed)
		if err != nil {
			return err
		}
		now.Asks = limitList(found, count, func(a bus.Ask) WaitingAsk {
			return WaitingAsk{a.ID, a.Kind, a.Session, a.Tool, a.Person, whoDecides(a), a.Made.UTC(), a.Expires.UTC()}
		})
	}
	if k.Jobs != nil {
		found, err := k.Jobs.AllRunningJobs(ctx, maxListed)
		if err != nil {
			return err
		}
		now.Jobs = limitList(found.Jobs, found.Count, func(j sessions.Job) RunningJob {
			return RunningJob{j.ID, j.Session, j.Person, j.Agent, j.Tool, j.Started.UTC(), j.Deadline.UTC()}
		})
	}
	if k.Schedules != nil {
		found, count, err := k.Schedules(ctx, maxListed)
		if err != nil {
			return err
		}
		now.Schedules = limitList(found, count, func(s schedules.Schedule) DueSchedule {
			return DueSchedule{s.ID, s.Session, s.Person, s.DueSince().UTC()}
		})
	}
	return nil
}

// running returns the turn that is being worked on in a session whose mailbox is leased.
func (k Work) running(ctx context.Context, m bus.Mailbox) (RunningTurn, error) {
	t := RunningTurn{Session: m.Key, Agent: sessions.AgentOf(m.Key), Process: m.Holder, Since: m.Since.UTC(), Messages: m.Messages, Calls: []RunningCall{}}
	if k.Turns == nil {
		return t, nil
	}
	open, err := k.Turns.OpenTurns(ctx, m.Key)
	if err != nil {
		return t, fmt.Errorf("find the turn that's running in %s: %w", m.Key, err)
	}
	for _, o := range slices.Backward(open) {
		if o.Parked {
			continue
		}
		t.Turn, t.Person = o.Turn, o.Person
		if o.Agent != "" {
			t.Agent = o.Agent
		}
		if !o.Started.IsZero() {
			t.Since = o.Started.UTC()
		}
		for _, c := range o.Calls {
			t.Calls = append(t.Calls, RunningCall{c.Call, c.Tool, c.Since.UTC()})
		}
		break
	}
	return t, nil
}

// whoDecides returns the people who may answer an ask, by the rules of [bus.Ask.MayAnswer].
func whoDecides(a bus.Ask) []string {
	if a.Kind == bus.AskQuestion {
		return []string{a.Person, "owners"}
	}
	who := []string{"owners"}
	for _, at := range append([]bus.Address{a.At}, a.Asked...) {
		if approvers := "approvers of " + at.Channel; at.Channel != "" && !slices.Contains(who, approvers) {
			who = append(who, approvers)
		}
	}
	return who
}
