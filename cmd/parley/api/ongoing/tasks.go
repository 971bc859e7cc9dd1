package ongoing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/sessions/subagents"
)

// Tasks knows the tasks that agents have handed to sub-agents.
type Tasks struct {
	Kept  KeptTasks
	Turns sessions.TurnReader
	// Redact removes secrets from a text.
	Redact func(text string) string
}

// KeptTasks are the stored tasks; see [subagents.Table].
type KeptTasks interface {
	// Newest returns the newest task of a sub-agent's session.
	Newest(ctx context.Context, session string) (subagents.Task, error)
	GetVisible(ctx context.Context, id string) (subagents.Task, error)
	// Of returns the newest tasks that a session has handed out.
	Of(ctx context.Context, parent string, limit int) ([]subagents.Task, error)
	// UsageOf returns the usage of tasks by their ids. Tasks without usage may be missing.
	UsageOf(ctx context.Context, tasks ...subagents.Task) (map[string]subagents.Usage, error)
}

// TaskRoutes returns the routes for tasks.
func TaskRoutes(tasks Tasks, may Readable) []exchange.Route {
	s := tasksHandler{tasks, may}
	return []exchange.Route{
		{Pattern: "GET /v1/tasks", May: exchange.Caller.MayWatch, Serve: s.list},
		{Pattern: "GET /v1/tasks/{id}", May: exchange.Caller.MayWatch, Serve: s.show},
	}
}

// Parent returns the key of the session that a sub-agent's session works for; "" if it is not a sub-agent's, or if
// that is unknown.
func (k Tasks) Parent(ctx context.Context, session string) (string, error) {
	if k.Kept == nil {
		return "", nil
	}
	t, err := k.Kept.Newest(ctx, session)
	if errors.Is(err, subagents.ErrNone) {
		return "", nil
	}
	return t.Parent, err
}

// tasksHandler serves the tasks.
type tasksHandler struct {
	Tasks
	may Readable
}

const (
	maxTasks       = 50      // how many tasks a list contains at most, because the usage of each is summed up
	maxReportBytes = 8 << 10 // how many bytes of a report are shown
)

// A ListedTask is a task in the API's JSON.
type ListedTask struct {
	ID      string `json:"id"`
	Parent  string `json:"parent"`  // the session that handed it out
	Session string `json:"session"` // the session in which the sub-agent works
	Turn    string `json:"turn"`    // the parent's turn that handed it out
	Call    string `json:"call"`    // the call in that turn
	Agent   string `json:"agent"`   // the sub-agent
	Title   string `json:"title"`
	Awaited bool   `json:"awaited"` // whether the parent's turn waits for it
	// State is prepared (not begun yet), running, waiting (for people), or how it ended: done, failed, cancelled or
	// lost.
	State    string     `json:"state"`
	Stopping bool       `json:"stopping"` // whether somebody has asked it to end, and it has not ended yet
	Started  time.Time  `json:"started"`
	Ended    *time.Time `json:"ended,omitempty"`
	// Tools are the names of the tools that are running now.
	Tools []string `json:"tools,omitempty"`
	Usage taskUsed `json:"usage"`
	// Report is the sub-agent's answer, or why it failed. Cut says that it is longer than shown.
	Report string `json:"report,omitempty"`
	Cut    bool   `json:"cut,omitempty"`
}

// A taskUsed is what a task has used so far.
type taskUsed struct {
	Calls  int64 `json:"calls"` // calls of models
	Input  int64 `json:"input"` // tokens
	Output int64 `json:"output"`
}

// list answers with the newest tasks of a session.
func (s tasksHandler) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	limit = min(limit, maxTasks)
	session := r.URL.Query().Get("session")
	if session == "" {
		return exchange.BadRequest("bad_query", `"session" must be the key of the session whose tasks you want`)
	}
	if err := s.may(r.Context(), w.Caller, session); err != nil {
		return err
	}
	found, err := s.Kept.Of(r.Context(), session, limit+1)
	if err != nil {
		return err
	}
	page := struct {
		Tasks []ListedTask `json:"tasks"`
		More  bool         `json:"more"`
	}{More: len(found) > limit}
	if page.Tasks, err = s.listed(r.Context(), found[:min(len(found), limit)]...); err != nil {
		return err
	}
	return w.JSON(http.StatusOK, page)
}

// show answers with a task; a task that the caller may not see doesn't exist for it.
func (s tasksHandler) show(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	t, err := s.Kept.GetVisible(r.Context(), w.ID)
	if err == nil {
		err = s.may(r.Context(), w.Caller, t.Parent)
	}
	if errors.Is(err, subagents.ErrNone) || exchange.IsRefusal(err) {
		return exchange.NotFound("there's no such task: GET /v1/tasks lists those of a session")
	}
	if err != nil {
		return err
	}
	one, err := s.listed(r.Context(), t)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, one[0])
}

// listed returns tasks in the API's JSON.
func (s tasksHandler) listed(ctx context.Context, tasks ...subagents.Task) ([]ListedTask, error) {
	list := []ListedTask{}
	used, err := s.Kept.UsageOf(ctx, tasks...)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		one := s.listedTaskOf(t)
		one.Usage = taskUsed(used[t.ID])
		if t.State == subagents.Running {
			if err := s.addCourse(ctx, &one); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// listedTaskOf returns a task in the API's JSON, without its current work and its usage.
func (s tasksHandler) listedTaskOf(t subagents.Task) ListedTask {
	one := ListedTask{
		ID: t.ID, Parent: t.Parent, Session: t.Session, Turn: t.Turn, Call: t.Call, Agent: t.Agent, Title: s.Redact(t.Title), Awaited: t.Awaited,
		State: t.State, Stopping: t.IsOpen() && t.Stop != "", Started: t.Started.UTC(), Ended: exchange.SomeTime(t.Ended), Report: s.Redact(t.Report),
	}
	if one.Cut = len(one.Report) > maxReportBytes; one.Cut {
		one.Report = strings.ToValidUTF8(one.Report[:maxReportBytes], "")
	}
	return one
}

// addCourse adds what a sub-agent is doing now: the tools that are running, or that it waits for people.
func (s tasksHandler) addCourse(ctx context.Context, one *ListedTask) error {
	open, err := s.Turns.OpenTurns(ctx, one.Session)
	if err != nil {
		return fmt.Errorf("find out what task %s is doing: %w", one.ID, err)
	}
	if len(open) == 0 {
		return nil
	}
	t := open[len(open)-1]
	if t.Parked {
		one.State = bus.StateWaiting
	}
	for _, c := range t.Calls {
		if !t.Parked && !slices.Contains(one.Tools, c.Tool) {
			one.Tools = append(one.Tools, c.Tool)
		}
	}
	return nil
}
