// Package task defines how a turn hands a task to a sub-agent, and what the turn gets back.
//
// A sub-agent works in a session of its own, in a turn that the task begins. A turn that waits for a task is
// parked, like one that waits for people. The sub-agent's answer is its report: it goes to the session that
// handed out the task, and to nobody else.
package task

import (
	"context"
	"fmt"

	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
	"parley/tools/plainjson"
)

// SubAgents stores the tasks that sessions hand out where every process finds them, and delivers the tasks and
// their reports.
type SubAgents interface {
	// Prepare records the task that a call hands out, and puts its files into the sub-agent's workspace. The
	// same call may be prepared again. An error of type *tools.Error says why the call can't hand out a task.
	Prepare(ctx context.Context, call tools.Call, d tools.Task) (sessions.Delegated, error)
	// Start hands out a task that was prepared. It may be called again.
	Start(ctx context.Context, id string) error
	// Begin reports whether a turn for a task may begin: nobody has stopped or erased the task.
	Begin(ctx context.Context, id string) (wanted bool, err error)
	// Report records how a task ended, and reports it to the parent's session. It may be called again; the first
	// report counts.
	Report(ctx context.Context, r Report) error
	// NoteTold records that the parent's session knows how a task ended.
	NoteTold(ctx context.Context, id string) error
	// EndTurn ends the tasks that a turn waits for, or was about to wait for, and those that it was about to
	// hand out.
	EndTurn(ctx context.Context, session, turn string) error
	// StopAll asks all sub-agents of a session to end, and returns how many it asked. A repeated call with the
	// same cause returns the same number.
	StopAll(ctx context.Context, session, cause string) (int, error)
	// Count returns how many sub-agents of a session are working.
	Count(ctx context.Context, session string) (int, error)
	// Drop erases the sessions of a session's sub-agents, except those that a turn waits for.
	Drop(ctx context.Context, session, cause string) error
}

// A Report says how a task ended.
type Report struct {
	ID    string // of the task
	State string // sessions.TurnCompleted, TurnFailed or TurnCancelled
	Text  string
	// Untrusted says that the sub-agent had read text that strangers may have written.
	Untrusted bool
}

// Kind is the kind of the sessions.Ask by which a turn waits for a task.
const Kind = sessions.AskTask

// MailID returns the id of the message that reports how a task ended. The ask by which a turn waits for that
// report has the same id.
func MailID(id string) string { return "task:" + id }

// instruction tells a sub-agent what its role is.
const instruction = "You are a sub-agent of %s, in a session and a workspace of your own. Nobody reads along, and what is said below comes from that agent. " +
	"Do it with what is in your workspace. Your last answer is your report: that agent gets it and nothing else, so say there all that was found or done, and what is missing."

// Notice codes of the log.
const (
	noticeInstruction = "sub_agent"
	NoticeReport      = "task" // a task ended; may begin a turn
)

// Entries returns the first entries of a sub-agent's turn: who handed out the task, what a sub-agent has to
// know, and the task's text. in is the message that hands out the task.
func Entries(turn string, in bus.Inbound) []sessions.Entry {
	tasked := journal.NewEntry(turn, sessions.KindTasked, sessions.Tasked{ID: in.Task.ID, Parent: in.Task.Session})
	notice := journal.NewEntry(turn, sessions.KindNotice, sessions.Notice{Code: noticeInstruction, Text: fmt.Sprintf(instruction, in.Task.Agent)})
	said := journal.NewEntry(turn, sessions.KindUser, sessions.User{Name: "the agent " + in.Task.Agent, Text: in.Text, Sent: in.SentAt, Untrusted: in.Task.Untrusted})
	said.Cause = in.ID
	all := []sessions.Entry{tasked, notice, said}
	for i := range all {
		all[i].Person = in.From.ID
	}
	return all
}

// ReportEntry returns the notice by which a turn of the parent's session reads in, the report of a sub-agent,
// if no turn waits for that report.
func ReportEntry(turn string, in bus.Inbound) sessions.Entry {
	n := sessions.Notice{Code: NoticeReport, Text: fmt.Sprintf("The sub-agent %s (session %s) has ended: %s.", in.Task.Agent, in.Task.Session, in.Task.State)}
	if in.Task.Untrusted {
		n.Text += " Its report is quoted; it had read what strangers may have written."
		n.Quotes = []sessions.Quote{{Kind: bus.Reported, Person: bus.SubAgents + ":" + in.Task.Agent, At: in.SentAt, Text: in.Text}}
	} else {
		n.Text += " Its report:\n\n" + in.Text
	}
	e := journal.NewEntry(turn, sessions.KindNotice, n)
	e.Cause, e.Person = in.ID, in.From.ID
	return e
}

// A reportJSON is the result of a call whose turn waited for a task.
type reportJSON struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	State   string `json:"state"`
	Report  string `json:"report"`
}

// Result returns a report as the result of the call that handed out the task; if the task has failed, as the call's
// failure.
func Result(in bus.Inbound) (tools.Result, *tools.Error) {
	result := tools.Result{Untrusted: in.Task.Untrusted}
	if in.Task.State == sessions.TurnFailed {
		return result, tools.Errorf(tools.ExecutionFailed, "the sub-agent %s (session %s) has failed: %s", in.Task.Agent, in.Task.Session, in.Text)
	}
	raw, err := plainjson.Marshal(reportJSON{in.Task.Agent, in.Task.Session, in.Task.State, in.Text})
	if err != nil { // texts always marshal
		panic(err)
	}
	result.Content = raw
	return result, nil
}
