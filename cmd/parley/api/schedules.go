package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/channels/console"
	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/sessions/schedules"
)

// Schedules knows what people have told the agent to do later.
type Schedules struct {
	Kept  KeptSchedules
	Maker ScheduleMaker
	// Runs returns the newest turns that a schedule has begun, at most limit of them.
	Runs func(ctx context.Context, s schedules.Schedule, limit int) ([]schedules.Run, error)
}

// KeptSchedules are the stored schedules; see [schedules.Table].
type KeptSchedules interface {
	Page(ctx context.Context, session, after string, limit int) ([]schedules.Schedule, error)
	Get(ctx context.Context, id string) (schedules.Schedule, error)
	OfPerson(ctx context.Context, person string) ([]schedules.Schedule, error)
}

// A ScheduleMaker makes, changes, runs and cancels schedules, by the rules that also apply to the agent's tool. If
// the caller can do something about an error, it is one of package schedules.
type ScheduleMaker interface {
	// Added returns the schedule with that id if the same request has already made it; false if there is none.
	Added(ctx context.Context, id, request string) (schedules.Schedule, bool, error)
	Add(ctx context.Context, s schedules.Schedule) (schedules.Schedule, error)
	Change(ctx context.Context, id string, to schedules.Change) (schedules.Schedule, error)
	// Say sends a schedule's text to its agent now, and returns the id of the message. Another call for the same run
	// sends nothing.
	Say(ctx context.Context, id, run string) (message string, s schedules.Schedule, err error)
	Cancel(ctx context.Context, id string) error
}

// A Schedule is a schedules.Schedule in the API's JSON.
type Schedule struct {
	ID      string     `json:"id"`
	When    string     `json:"when"`
	Text    string     `json:"text"`
	Next    *time.Time `json:"next,omitempty"`   // when it is due next; left out if it is paused or over
	Paused  *time.Time `json:"paused,omitempty"` // since when it is paused
	Zone    string     `json:"time_zone"`
	Session string     `json:"session"`
	Person  string     `json:"person"`
	Made    time.Time  `json:"made"`
}

// scheduleOf returns a schedule in the API's JSON.
func scheduleOf(s schedules.Schedule) Schedule {
	return Schedule{s.ID, s.When, s.Text, exchange.SomeTime(s.DueSince()), exchange.SomeTime(s.PausedAt), s.Zone, s.Session, s.Person, s.MadeAt.UTC()}
}

// maxRuns is how many past runs of a schedule are shown at most.
const maxRuns = 100

// A scheduleRun is a turn that a schedule has begun, in the API's JSON.
type scheduleRun struct {
	ID    string     `json:"id"`            // the id of the message that began it
	Due   *time.Time `json:"due,omitempty"` // left out if somebody asked for the run
	Turn  string     `json:"turn"`
	Begun time.Time  `json:"begun"`
	State string     `json:"state"`
	Code  string     `json:"code,omitempty"`
	Ended *time.Time `json:"ended,omitempty"`
}

func scheduleRunOf(r schedules.Run) scheduleRun {
	one := scheduleRun{ID: r.ID, Turn: r.Turn, Begun: r.Begun.UTC(), State: r.State, Code: r.Code, Ended: exchange.SomeTime(r.Ended)}
	if due, ok := r.Slot(); ok {
		one.Due = exchange.SomeTime(due)
	}
	if one.State == "" {
		one.State = bus.StateRunning
	}
	return one
}

// schedulesHandler serves what people have told the agent to do later.
type schedulesHandler struct {
	Schedules
	agents messages // knows which agents exist
	scopes readScopes
}

// mayReadSchedules reports whether the caller may see any schedules at all.
func mayReadSchedules(c exchange.Caller) bool { return c.IsAdmin() || c.MayReadOwn() }

// list answers with what people have told the agent to do later.
func (p schedulesHandler) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	find := p.Kept.Page
	if !w.Caller.IsAdmin() {
		seen, err := p.scopes.ownScope(r.Context(), w.Caller)
		if err != nil {
			return err
		}
		find = func(ctx context.Context, session, after string, limit int) ([]schedules.Schedule, error) {
			return p.ownPage(ctx, seen, session, after, limit)
		}
	}
	found, err := find(r.Context(), r.URL.Query().Get("session"), r.URL.Query().Get("after"), limit+1)
	if err != nil {
		return scheduleRefusal(err)
	}
	page := struct {
		Schedules []Schedule `json:"schedules"`
		Next      string     `json:"next,omitempty"`
	}{Schedules: []Schedule{}}
	if len(found) > limit {
		found = found[:limit]
		page.Next = found[limit-1].Cursor()
	}
	for _, s := range found {
		page.Schedules = append(page.Schedules, scheduleOf(s))
	}
	return w.JSON(http.StatusOK, page)
}

// ownPage is like [schedules.Table.Page], for the schedules of the people and the sessions in seen. A person has
// few schedules, so it reads all of them.
func (p schedulesHandler) ownPage(ctx context.Context, seen readScope, session, after string, limit int) (list []schedules.Schedule, err error) {
	if at, id, ok := strings.Cut(after, "."); after != "" && (!ok || id == "" || strings.Trim(at, "0123456789") != "") {
		return nil, schedules.Invalid("after", `give the previous page's "next"`)
	}
	for _, person := range seen.people {
		found, err := p.Kept.OfPerson(ctx, person)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if seen.hasKey(s.Session) && (session == "" || s.Session == session) && (after == "" || byCursor(s.Cursor(), after) > 0) {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b schedules.Schedule) int { return byCursor(a.Cursor(), b.Cursor()) })
	return list[:min(len(list), limit)], nil
}

// byCursor compares two cursors, NUMBER.ID, in the order in which schedules are listed: by number, and then by id.
func byCursor(a, b string) int {
	x, first, _ := strings.Cut(a, ".")
	y, second, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(first, second))
}

// show answers with a schedule and its newest runs.
func (p schedulesHandler) show(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	s, err := p.visible(r.Context(), w.Caller, w.ID)
	if err != nil {
		return scheduleRefusal(err)
	}
	found, err := p.Runs(r.Context(), s, min(limit, maxRuns))
	if err != nil {
		return err
	}
	runs := []scheduleRun{}
	for _, one := range found {
		runs = append(runs, scheduleRunOf(one))
	}
	return w.JSON(http.StatusOK, struct {
		Schedule
		Runs []scheduleRun `json:"runs"`
	}{scheduleOf(s), runs})
}

// visible returns a schedule that the caller may see; others don't exist for it.
func (p schedulesHandler) visible(ctx context.Context, c exchange.Caller, id string) (schedules.Schedule, error) {
	s, err := p.Kept.Get(ctx, id)
	if err != nil || c.IsAdmin() {
		return s, err
	}
	seen, err := p.scopes.ownScope(ctx, c)
	if err == nil && (!slices.Contains(seen.people, s.Person) || !seen.hasKey(s.Session)) {
		err = schedules.ErrNone
	}
	return s, err
}

// add creates a schedule.
func (p schedulesHandler) add(w *exchange.Answer, r *http.Request) error {
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	raw, err := w.ReadJSON(r, 64<<10)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	s := schedules.Schedule{ID: scheduleID(w.Caller.Name, key), Request: hex.EncodeToString(sum[:])}
	_, err = exchange.Decode(raw,
		exchange.Field{Name: "session", Into: &s.Session, Want: "a string"}, exchange.Field{Name: "person", Into: &s.Person, Want: "a string"},
		exchange.Field{Name: "when", Into: &s.When, Want: "a string"}, exchange.Field{Name: "text", Into: &s.Text, Want: "a string"},
		exchange.Field{Name: "time_zone", Into: &s.Zone, Want: "a string"})
	if err != nil {
		return err
	}
	made, err := p.makeOnce(r.Context(), s)
	if err != nil {
		return scheduleRefusal(err)
	}
	w.ID, w.Subject = made.ID, made.ID
	return w.JSON(http.StatusCreated, scheduleOf(made))
}

// makeOnce makes the schedule that a request describes, or returns the one that the same request made before. It
// checks nothing about that one again: it may be over, and its person may have lost access.
func (p schedulesHandler) makeOnce(ctx context.Context, s schedules.Schedule) (schedules.Schedule, error) {
	if made, ok, err := p.Maker.Added(ctx, s.ID, s.Request); err != nil || ok {
		return made, err
	}
	if err := p.place(ctx, &s); err != nil {
		return s, err
	}
	return p.Maker.Add(ctx, s)
}

// place fills in the address and the person of a schedule from its session. It refuses a session that doesn't exist
// or has no agent to answer, and a person whom the session doesn't belong to; a session that people share needs a
// person.
func (p schedulesHandler) place(ctx context.Context, s *schedules.Schedule) error {
	key, err := parseKey(s.Session)
	if err != nil {
		return exchange.Unprocessable("bad_session", `"session" must be a session's key: GET /v1/sessions lists them`)
	}
	if err := p.agents.checkAgent(key.agent); err != nil {
		return err
	}
	s.Address = key.at.String()
	own := "" // the person who has the session alone
	switch {
	case key.at.Channel == console.Name:
		own = console.Owner
	case key.at.Channel == web.Name:
		own = web.Person(key.at.Chat)
	default: // a session in which nobody has said anything may not be a place on the platform
		if _, err := p.agents.log.Info(ctx, s.Session); errors.Is(err, sessions.ErrNotFound) {
			return exchange.Unprocessable("unknown_session", "there's no such session yet: GET /v1/sessions lists them")
		} else if err != nil {
			return err
		}
		if key.user != "" {
			own = key.at.Channel + ":" + key.user
		}
	}
	switch {
	case s.Person == "" && own == "":
		return exchange.Unprocessable("missing_field", `field "person" is missing: say on whose behalf to do it, as CHANNEL:USER`)
	case s.Person != "" && own != "" && s.Person != own:
		return exchange.Unprocessable("bad_person", "this session belongs to %s alone", own)
	case s.Person == "":
		s.Person = own
	}
	return nil
}

// scheduleID returns the id of the schedule that a request makes: the same for each request from a caller with that
// key, and a new one for each request without a key.
func scheduleID(caller, key string) string {
	sum := sha256.Sum256([]byte("request\x00" + caller + "\x00" + runName(caller, key)))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
}

// runName returns the name of a run that a request asks for: the same for each request from a caller with that key,
// and a new one for each request without a key.
func runName(caller, key string) string {
	if key == "" {
		return strings.ToLower(rand.Text())
	}
	sum := sha256.Sum256([]byte(caller + "\x00" + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// change changes a schedule.
func (p schedulesHandler) change(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	raw, err := w.ReadJSON(r, 64<<10)
	if err != nil {
		return err
	}
	var to schedules.Change
	given, err := exchange.Decode(raw,
		exchange.Field{Name: "when", Into: &to.When, Want: "a string"}, exchange.Field{Name: "text", Into: &to.Text, Want: "a string"},
		exchange.Field{Name: "time_zone", Into: &to.Zone, Want: "a string"}, exchange.Field{Name: "paused", Into: &to.Paused, Want: "true or false"})
	if err != nil {
		return err
	}
	if len(given) == 0 {
		return exchange.Unprocessable("missing_field", "say what to change: when, text, time_zone or paused")
	}
	s, err := p.Maker.Change(r.Context(), w.ID, to)
	if err != nil {
		return scheduleRefusal(err)
	}
	return w.JSON(http.StatusOK, scheduleOf(s))
}

// run sends a schedule's text to its agent now.
func (p schedulesHandler) run(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	message, s, err := p.Maker.Say(r.Context(), w.ID, runName(w.Caller.Name, key))
	if err != nil {
		return scheduleRefusal(err)
	}
	return w.JSON(http.StatusAccepted, struct {
		ID      string `json:"id"`
		Session string `json:"session"`
	}{message, s.Session})
}

// cancel removes a schedule.
func (p schedulesHandler) cancel(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("id")
	if err := p.Maker.Cancel(r.Context(), w.ID); err != nil {
		return scheduleRefusal(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// scheduleRefusal returns the refusal for an error of package schedules that a caller can do something about, and any
// other error unchanged.
func scheduleRefusal(err error) error {
	if invalid, ok := errors.AsType[*schedules.InvalidError](err); ok {
		return exchange.Unprocessable("bad_"+invalid.Field, "%v", invalid)
	}
	switch {
	case errors.Is(err, schedules.ErrNone):
		return exchange.NotFound("there's no such schedule: parley schedule list, or GET /v1/schedules, lists them")
	case errors.Is(err, schedules.ErrOver):
		return exchange.Conflict("over", "this schedule has ended: make another one")
	case errors.Is(err, schedules.ErrTooMany):
		return exchange.Conflict("too_many", "this person already has as many schedules as \"most\" in [schedule] allows: cancel one first")
	case errors.Is(err, schedules.ErrOtherRequest):
		return exchange.Conflict("other_body", "an earlier request used this Idempotency-Key with another body: use a new key for a new schedule")
	case errors.Is(err, schedules.ErrNotAdmitted):
		return exchange.Conflict("not_admitted", "this person isn't allowed to talk to the bot there right now, and a schedule runs with their rights")
	case errors.Is(err, schedules.ErrNotNow):
		return exchange.Unavailable("not_now", err.Error())
	}
	return err
}
