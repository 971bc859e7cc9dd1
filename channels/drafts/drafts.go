// Package drafts shows people what a turn is doing and writing before its answer is sent.
//
// Read drafts.go first: what a channel's drafts consist of. draft.go decides what one turn shows, and events.go
// follows the events of turns. addresses.go lets an address's mail go first, schedule.go decides what to show when,
// and calls.go calls the platform; hold.go finds out for a call whether this process may still make it. replace.go
// lets a message replace a draft. left.go reads the drafts that earlier processes have left, and unknown.go finds
// out whether a draft was posted when the book does not say.
package drafts

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/pacing"
)

const (
	// draftDelay is the age of a turn at which its draft appears; turns that are faster don't need one.
	draftDelay         = time.Second
	draftTimeout       = 10 * time.Second // the maximum time that one call to the platform may take
	maxConcurrentCalls = 16               // how many calls to the platform may run at the same time
	maxCloseAttempts   = 3                // how many times closing a draft is attempted
	bookRetryDelay     = 5 * time.Second  // how long a draft waits after an error from the book
	schedulePause      = 50 * time.Millisecond
	// A turn without events is forgotten after idleTurnLifetime, or after idleDraftLifetime if it has a draft.
	idleTurnLifetime  = 10 * time.Minute
	idleDraftLifetime = 24 * time.Hour
)

// Config says which channel the drafts are for, and what they need.
type Config struct {
	Name    string // the channel's name in the configuration
	Channel channels.Channel
	Book    channels.Sends
	// RecordedDrafts lists the drafts that the book has recorded, including those from earlier processes. If it is nil,
	// no drafts are shown.
	RecordedDrafts channels.Drafts
	// Write repeats a write to the book until it succeeds or there is no time left for it.
	Write func(work context.Context, write func(context.Context) error) error
	// Mail reports whether messages are waiting for an address.
	Mail interface {
		HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error)
	}
	Pace     *pacing.Pacer
	Renderer *markup.Renderer
	// CurrentChat returns the current id of a chat that may have moved.
	CurrentChat func(chat string) string
	// EditOnly shows drafts as messages that are edited, even if the platform has something better: previews, or
	// messages that grow.
	EditOnly bool
	// MayGrow, if set, reports whether a draft may start as a message that grows.
	MayGrow func(ctx context.Context) bool
	// Workers is the number of addresses to which mail is sent at the same time.
	Workers int
	Log     *slog.Logger
	// Point, if set, is called with a name at each line where a crash would matter.
	Point func(name string)
}

// Drafts shows unfinished answers: one message for each turn, posted once the turn has taken a moment, edited in
// place, and replaced by the turn's first message to the same address. It shows them only if that delays no
// message: ordinary mail always comes first.
//
// One goroutine decides what to show, and a few others call the platform. For each address, either its mail is
// being sent or a draft call is running, never both.
type Drafts struct {
	conf   Config
	limits channels.Limits
	log    *slog.Logger // names the channel
	editor channels.Editor
	// previewer shows answers as previews instead of messages; nil if the channel can't or shouldn't.
	previewer channels.Previewer
	alarm     pacing.Alarm // rings when a call may be due earlier than the schedule expects

	mu              sync.Mutex
	turns           map[string]*draft
	quietUntil      map[string]time.Time     // by chat: until when no draft is shown there
	callsInProgress map[string]chan struct{} // addresses with a call in progress
	sendingMail     map[string]int           // addresses whose mail is being sent, with the number of goroutines that are sending it
	mailLeftOver    map[string]bool          // addresses with mail that could not be sent yet
	draftsWaiting   map[string]bool          // addresses where a draft waits because of mail or a call
	wakesAt         time.Time                // when the schedule wakes by itself; zero means never
}

// New returns nil if the channel shows no drafts. On a nil Drafts, all methods may be called except Start, Heard
// and Missed.
func New(c Config) *Drafts {
	limits := c.Channel.Limits()
	e, can := channels.AsEditor(c.Channel)
	if !can || limits.DraftEvery <= 0 || c.RecordedDrafts == nil {
		return nil
	}
	d := &Drafts{conf: c, limits: limits, log: c.Log.With(slog.String("channel", c.Name)), editor: e, alarm: pacing.NewAlarm()}
	if !c.EditOnly {
		d.previewer, _ = channels.AsPreviewer(c.Channel)
	}
	return d
}

// ID returns the id of a turn's draft in the book.
func ID(turn string) string { return turn + draftSuffix }

// draftSuffix is appended to a turn's id to make the id of its draft.
const draftSuffix = "#draft"

// crashPoint calls Config.Point, if it is set.
func (d *Drafts) crashPoint(name string) {
	if d.conf.Point != nil {
		d.conf.Point(name)
	}
}

// forgetIfDone forgets a turn that has ended and has no draft left to replace. The caller holds d.mu.
func (d *Drafts) forgetIfDone(x *draft) {
	if x.phase != turnRunning && x.platformID == "" && !x.mustKeepPreview && x.state != draftUnknown && d.callsInProgress[x.key] == nil {
		delete(d.turns, x.turn)
	}
}

// update calls change with a draft, holding the mutex.
func (d *Drafts) update(x *draft, change func(*draft)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(x)
}

// mark records a draft's state in the book. If that fails, the next process finds the draft in its earlier state.
func (d *Drafts) mark(work context.Context, x *draft, now channels.SentPart) {
	err := d.conf.Write(work, func(ctx context.Context) error {
		err := d.conf.Book.Mark(ctx, ID(x.turn), 0, now)
		if errors.Is(err, channels.ErrNoSend) || errors.Is(err, channels.ErrFinished) { // the record was erased, or another process has closed the draft
			return nil
		}
		return err
	})
	if err != nil {
		d.log.Error("draft was not noted", slog.String("turn", x.turn), slog.Any("error", err))
	}
}

// closeDraft records that a draft is finished as it is and will not be replaced.
func (d *Drafts) closeDraft(work context.Context, x *draft, id string) {
	d.mark(work, x, channels.SentPart{State: channels.Sent, PlatformID: id})
	d.crashPoint("draft:closed")
	d.update(x, func(x *draft) { x.platformID, x.state = "", draftClosed })
}
