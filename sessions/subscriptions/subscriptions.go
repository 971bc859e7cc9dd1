// Package subscriptions stores what happens on the server for programs that want to be posted it.
//
// An event is written for each subscription that wants it, in the write that makes it happen: the append to a
// session's log, the row of an ask. A subscription's events wait in a queue until whoever posts them has heard that
// the subscriber accepts them. So no event is lost, and one may be posted twice, under the same id.
//
// This file says which events there are and who wants them, log.go which a session's log has, queue.go is the queue,
// trim.go keeps it from growing without end, and words.go reads the texts that belong to an event.
package subscriptions

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
)

// The types of events.
const (
	MessageReceived   = "message.received"
	TurnBegun         = "turn.begun"
	TurnWaiting       = "turn.waiting"
	TurnResumed       = "turn.resumed"
	TurnEnded         = "turn.ended"
	ToolCompleted     = "tool.completed"
	AskOpened         = "ask.opened"
	AskDecided        = "ask.decided"
	JobBegun          = "job.begun"
	JobEnded          = "job.ended"
	ScheduleAdded     = "schedule.added"
	ScheduleChanged   = "schedule.changed"
	ScheduleCancelled = "schedule.cancelled"
	ScheduleFired     = "schedule.fired"
	ScheduleFailed    = "schedule.failed"
	ChannelUp         = "channel.up"
	ChannelDown       = "channel.down"
	TaskBegun         = "task.begun"
	TaskEnded         = "task.ended"

	DeadLetterBuried   = "dead_letter.buried"
	DeadLetterReplayed = "dead_letter.replayed"
	DeadLetterDropped  = "dead_letter.dropped"
	// EventsDropped says that events of this subscription were dropped. Every subscription gets it.
	EventsDropped = "events.dropped"
)

// Types returns the types that a subscription may name.
func Types() []string {
	return []string{
		MessageReceived, TurnBegun, TurnWaiting, TurnResumed, TurnEnded, ToolCompleted, AskOpened, AskDecided, JobBegun, JobEnded, TaskBegun, TaskEnded,
		ScheduleAdded, ScheduleChanged, ScheduleCancelled, ScheduleFired, ScheduleFailed, ChannelUp, ChannelDown, DeadLetterBuried, DeadLetterReplayed, DeadLetterDropped,
	}
}

// Select returns the types that a pattern names: a type, or a group such as turn.*. There are none if the pattern is
// neither.
func Select(pattern string) (types []string) {
	group, whole := strings.CutSuffix(pattern, ".*")
	for _, t := range Types() {
		if t == pattern || whole && strings.HasPrefix(t, group+".") {
			types = append(types, t)
		}
	}
	return types
}

// An Event is something that has happened.
type Event struct {
	// ID is the same whoever records the event and however often it is posted.
	ID   string
	Type string
	At   time.Time
	Data Data
	// Entry is the number of the entry of the session's log that the event comes from; 0 if it comes from elsewhere.
	Entry int64
}

// Data says what an event is about. It has ids, kinds and states, and never what people or models have said, except
// for Text. Programs read it.
type Data struct {
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Turn    string `json:"turn,omitempty"`
	ID      string `json:"id,omitempty"`
	Kind    string `json:"kind,omitempty"`
	State   string `json:"state,omitempty"`
	Code    string `json:"code,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Call    string `json:"call,omitempty"`
	Topic   string `json:"topic,omitempty"`
	// TaskSession is the session in which a sub-agent works on a task of Session. A release that doesn't know it posts
	// the event without it.
	TaskSession string    `json:"task_session,omitempty"`
	Count       int64     `json:"count,omitempty"`
	From        time.Time `json:"from,omitzero"`
	To          time.Time `json:"to,omitzero"`
	// Text is not stored: it is added when the event is posted, if the subscription asks for texts.
	Text string `json:"text,omitempty"`
	Cut  bool   `json:"cut,omitempty"` // Text is longer than what is shown
}

// NewID returns an event's id, which is made from what tells the event from all others.
func NewID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "evt_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// Migration is the SQL that adds the tables; {id} is replaced by the type of a number that the database counts up, and
// {bytes} by a text type that sorts by bytes. Times are microseconds since 1970; 0 means none.
const Migration = `
CREATE TABLE subscriptions (
	name       {bytes} PRIMARY KEY,
	fence      BIGINT NOT NULL,  -- of the process that posts
	failing    BIGINT NOT NULL,  -- since when nothing was accepted although something waits
	tries      BIGINT NOT NULL,  -- how often the first event was refused
	retry_at   BIGINT NOT NULL,  -- when it is posted again
	problem    TEXT NOT NULL,    -- why it was refused
	accepted   BIGINT NOT NULL,  -- when an event was accepted last
	dropped    BIGINT NOT NULL,  -- how many events were dropped
	dropped_at BIGINT NOT NULL   -- when that was last
);
CREATE TABLE subscription_events (
	n            {id} PRIMARY KEY,  -- the order in which they are posted
	subscription {bytes} NOT NULL,
	id           {bytes} NOT NULL,
	type         TEXT NOT NULL,
	session      {bytes} NOT NULL,  -- its key; empty for none
	entry        BIGINT NOT NULL,
	at           BIGINT NOT NULL,
	data         TEXT NOT NULL      -- JSON
);
CREATE INDEX subscription_events_in_order ON subscription_events (subscription, n);
CREATE INDEX subscription_events_by_session ON subscription_events (session) WHERE session <> '';
`

// PlaceMigration is the SQL that adds who has refused the first event. The release before leaves it as it is.
const PlaceMigration = "ALTER TABLE subscriptions ADD COLUMN place TEXT NOT NULL DEFAULT '';"

// A Subscription says which events are posted to a program, and where.
type Subscription struct {
	Name   string
	URL    string
	Secret string // of the signature
	Events string // the patterns of the events, separated by spaces
	Text   bool   // whether events have what was said
}

// Key returns the key that a secret stands for: the bytes whose Base64 follows whsec_, or else its characters. It reports
// whether the secret can be read: after whsec_ there must be Base64.
func Key(secret string) (key []byte, ok bool) {
	coded, isCoded := strings.CutPrefix(secret, "whsec_")
	if !isCoded {
		return []byte(secret), true
	}
	key, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return []byte(secret), false
	}
	return key, true
}

// A Table stores the events. Several processes may use the same one at a time. It records events only for the
// subscriptions that Want has named.
type Table struct {
	db               *sqldb.DB
	wanted           atomic.Pointer[wantedTypes]
	addedCount       atomic.Int64           // how many events this process has added since it last looked how many wait
	onAdded          atomic.Pointer[func()] // called when events were added; nil if nobody wants to know
	unstoredChannels sync.Map               // the last event of each channel, by name, if it may not be stored
}

// wantedTypes says which subscriptions want which types.
type wantedTypes struct {
	names  []string
	byType map[string][]string // the names of the subscriptions
}

// NewTable returns the Table of one process, which records nothing yet.
func NewTable(db *sqldb.DB) *Table { return &Table{db: db} }

// Want sets which subscriptions there are. All processes of a fleet need the same ones, because each records what it does
// itself.
func (t *Table) Want(subscriptions ...Subscription) {
	w := &wantedTypes{byType: map[string][]string{}}
	for _, s := range subscriptions {
		w.names = append(w.names, s.Name)
		var types []string
		for pattern := range strings.FieldsSeq(s.Events) {
			types = append(types, Select(pattern)...)
		}
		slices.Sort(types)
		for _, one := range slices.Compact(types) {
			w.byType[one] = append(w.byType[one], s.Name)
		}
	}
	slices.Sort(w.names)
	for _, names := range w.byType {
		slices.Sort(names)
	}
	t.wanted.Store(w)
}

// Wants reports whether any subscription wants events of one of the types. If none does, nothing needs to be recorded.
func (t *Table) Wants(types ...string) bool {
	w := t.wanted.Load()
	return w != nil && slices.ContainsFunc(types, func(one string) bool { return len(w.byType[one]) > 0 })
}

// Names returns the names of the subscriptions that there are.
func (t *Table) Names() []string {
	if w := t.wanted.Load(); w != nil {
		return w.names
	}
	return nil
}

// OnAdded has ring called after this process has recorded events. It must not wait.
func (t *Table) OnAdded(ring func()) { t.onAdded.Store(&ring) }
