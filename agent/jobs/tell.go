package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/tools/jobs"
)

// The reasons that are recorded when a job is stopped. If a person's command stops it, the command's id is
// recorded instead.
const (
	causeOperator  = "operator"  // an operator stopped it through the HTTP API
	causeTool      = "job_stop"  // the model stopped it, and learns of it from the call's result
	causeForgotten = "forgotten" // its session was erased, and nobody is told
)

// A route says where the end of a job is reported, and on whose behalf the job runs. The store
// keeps it with the job as JSON.
type route struct {
	At   bus.Address `json:"at"`
	Name string      `json:"name,omitempty"`
	// Offline says that the job can't reach any network. It is false for a job that an older release started,
	// because that release didn't record it.
	Offline bool `json:"offline,omitempty"`
	nodeRoute
}

// tellEnd publishes to the job's session how the job ended, as recorded in the store, and retries until that
// succeeds. A repeated report is the same message, so it is handled only once.
func (r *Runner) tellEnd(ctx context.Context, id string, log *slog.Logger) {
	err := r.retryUntilDone(ctx, log, func() error {
		j, err := r.cfg.Store.Job(ctx, id)
		if errors.Is(err, sessions.ErrNotFound) || err == nil && (j.Told || j.State == sessions.JobRunning) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.publishEnd(ctx, j); err != nil {
			return err
		}
		r.cfg.Point("job:told")
		return r.cfg.Store.NoteJobTold(ctx, id)
	})
	if err != nil {
		log.Error("the end of a job could not be told; whoever gets its hold does", slog.Any("error", err))
	}
}

// publishEnd publishes the end of a job to its session, where it starts a turn in which the model reacts. If
// somebody stopped the job, or its person may no longer talk to the bot, it is published as a notice instead.
// Nothing is published for a job that the model itself stopped, or whose session was erased.
func (r *Runner) publishEnd(ctx context.Context, j sessions.Job) error {
	if j.Stop == causeForgotten || j.State == sessions.JobStopped && j.Stop == causeTool {
		return nil
	}
	var to route
	if err := json.Unmarshal(j.Route, &to); err != nil {
		return fmt.Errorf("decode the route of job %s: %w", j.ID, err)
	}
	who := bus.Person{ID: j.Person, Name: to.Name}
	in := bus.Inbound{ID: "job:" + j.ID, Kind: bus.JobEnded, At: to.At, SentAt: j.Ended, Text: endText(j)}
	caller, admitted, err := r.cfg.Admit(ctx, who, to.At)
	if err != nil {
		return fmt.Errorf("judge for whom job %s ran: %w", j.ID, err)
	}
	if admitted && j.State != sessions.JobStopped {
		in = caller.Mail(in)
	} else {
		in.Kind, in.From = bus.Notice, who
	}
	err = bus.PublishInbound(ctx, r.cfg.Bus, j.Session, in, true)
	if errors.Is(err, bus.ErrInvalid) {
		return nil // no bus would ever accept it
	}
	return err
}

// endText returns the message that says how a job ended. It contains no output of the job, because strangers
// may have written that, and no command that strangers may have influenced.
func endText(j sessions.Job) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The job %s", j.ID)
	if node := routeOf(j).Node; node != "" {
		fmt.Fprintf(&b, " on the node %s", node)
	}
	if !j.Untrusted && j.State != sessions.JobStopped {
		fmt.Fprintf(&b, " (%s: %s)", j.Tool, strings.Join(strings.Fields(j.Command), " "))
	}
	fmt.Fprintf(&b, textStartedAndEnded, j.Started.UTC().Format("2006-01-02 15:04"), endingText(j), max(0, j.Ended.Sub(j.Started)).Round(time.Second))
	switch j.State {
	case sessions.JobStopped:
		return b.String()
	case sessions.JobLost:
		b.WriteString(textLost)
	}
	fmt.Fprintf(&b, textPrinted, j.Printed, jobs.File(j.ID), jobs.Folder(j.ID))
	b.WriteString(textAboutJob)
	return b.String()
}

// endingText returns words that say how a job ended, to be put after its name in a sentence.
func endingText(j sessions.Job) string {
	switch j.State {
	case sessions.JobExited:
		code := 0
		if j.ExitCode != nil {
			code = *j.ExitCode
		}
		return fmt.Sprintf("ended with exit code %d", code)
	case sessions.JobStopped:
		return "was stopped"
	case sessions.JobKilled:
		return "was killed (" + j.Detail + ")"
	case sessions.JobFailed:
		return "couldn't be run (" + j.Detail + ")"
	case sessions.JobLost:
		return "is lost (" + j.Detail + ")"
	}
	return "is " + j.State
}

// tellWatchers tells those who watch the server which state a job is in now.
func (r *Runner) tellWatchers(j sessions.Job) {
	r.cfg.Bus.Emit(bus.Event{Type: bus.JobMoved, Session: j.Session, Turn: j.Turn, News: &bus.News{ID: j.ID, State: j.State}})
}
