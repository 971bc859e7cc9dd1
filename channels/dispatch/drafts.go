package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

const (
	// draftDelay spares the turns that are answered sooner a draft.
	draftDelay   = time.Second
	draftTimeout = 10 * time.Second // of one call
	draftsAtOnce = 16               // calls
	draftTries   = 3                // to close one
	draftPause   = 50 * time.Millisecond
	draftBytes   = 16 << 10 // of an answer; no platform shows more in one message
	// A turn of which nothing is heard is forgotten, the later if it has a draft.
	draftIdle = 10 * time.Minute
	draftKept = 24 * time.Hour
	draftLine = 80 // runes about what a tool does
)

// textBlock is the kind of a block that people are to read.
const textBlock = "text"

// drafts shows answers while they are being made: as one message for each
// turn, posted once the turn has taken a moment, edited in place, and replaced by
// the first message of the turn that goes to the same address. It does its best
// and no more: it makes room for whatever is to be sent, in order and in pace.
//
// One goroutine decides what to show, a few call the platform. Work on a mailbox
// and a call for a draft exclude each other, address by address.
type drafts struct {
	*run
	editor channels.Editor
	// previewer is what shows answers otherwise than as messages; nil shows none so.
	previewer channels.Previewer
	alarm     alarm // rings where the earliest time may have changed

	mu         sync.Mutex
	turns      map[string]*draft
	quietUntil map[string]time.Time     // chats that are shown nothing before
	calls      map[string]chan struct{} // addresses for which a call is under way
	working    map[string]int           // addresses whose mail is worked on
	leftOver   map[string]bool          // addresses where mail is left over
	keptBack   map[string]bool          // addresses where one of these keeps a draft back
	wakesAt    time.Time                // when plan wakes by itself; zero is never
}

// A draft is what one turn shows before it has answered.
type draft struct {
	turn string
	to   bus.Address
	key  string // the address's mailbox

	said      []saidBlock // by the model, in its newest answer
	omitted   int         // characters of it that are not kept
	answers   int         // that were begun before it
	openBlock int         // the block that is being said; -1 is none
	steps     int         // tools that were begun
	toolText  string      // what the newest tool call is about
	toolLine  string      // the same as Markdown, on one line
	toolRan   bool        // a tool, since the model said something
	todo      todoList    // what the turn is about to do
	lastHeard time.Time

	// previews is how often it is shown by previews, of which nothing has to be kept; 0 is
	// as a message.
	previews time.Duration
	again    time.Time // when a preview has to be shown again, lest it fade

	platformID string // the platform's; "" while nothing is posted
	shown      string // as it was rendered
	nextCall   time.Time
	state      draftState
	phase      turnPhase
	dirty      bool // there is something that is not shown
	tries      int  // to show the last edit of a turn that has ended without a word
}

type saidBlock struct {
	block int
	text  string
}

// A draftState is whether what a turn says may be shown by its draft.
type draftState int

const (
	draftShown   draftState = iota // or about to be, once there is something to show
	draftUnknown                   // an earlier process may have posted it: that is found out first
	draftClosed                    // nothing new is shown of this turn any more
)

// A turnPhase is what is known of the turn itself.
type turnPhase int

const (
	turnRuns   turnPhase = iota
	turnOver             // it has ended or waits for somebody: the draft is left to be replaced
	turnSilent           // it has ended without a word, so nothing will replace the draft
)

// newDrafts is nil where a channel has no drafts.
func newDrafts(p *run) *drafts {
	e, can := channels.AsEditor(p.Channel)
	if !can || p.limits.DraftEvery <= 0 || p.Drafts == nil || p.policy.Stream == StreamOff {
		return nil
	}
	d := &drafts{run: p, editor: e, alarm: newAlarm()}
	if p.policy.Stream != StreamEdit {
		d.previewer, _ = channels.AsPreviewer(p.Channel)
	}
	return d
}

func newDraft(turn string, to bus.Address) *draft {
	return &draft{turn: turn, to: to, key: to.String(), openBlock: -1}
}

// Missed forgets what the answers said so far, as they would be shown with gaps.
func (d *drafts) Missed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.turns {
		x.said, x.omitted, x.openBlock = nil, 0, -1
	}
}

func (d *drafts) Heard(e bus.Event) {
	if e.Turn == "" || e.Route.Chat == "" {
		return
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.turns[e.Turn]
	if x == nil {
		switch e.Type {
		case bus.TurnStart, bus.BlockStart, bus.ToolStart:
			x = newDraft(e.Turn, e.Route)
			x.nextCall = now.Add(draftDelay)
			if d.previewer != nil {
				x.previews = d.previewer.Previews(d.moved.current(e.Route.Chat))
			}
			d.turns[e.Turn] = x
		default:
			return
		}
	}
	x.lastHeard = now
	switch e.Type {
	case bus.TurnComplete, bus.TurnError, bus.TurnParked:
		d.ended(x, e)
	default:
		x.apply(e)
	}
	d.wakeFor(x)
}

// ended leaves a draft to what the turn has to say; one that has nothing to say
// takes its draft back itself.
func (d *drafts) ended(x *draft, e bus.Event) {
	x.phase = turnOver
	if e.Type == bus.TurnError && (e.Error == nil || e.Error.Message == "") {
		x.phase, x.nextCall = turnSilent, time.Now()
	}
	d.forgetIfDone(x)
}

// forgetIfDone forgets a turn that is over and has no draft to be replaced.
func (d *drafts) forgetIfDone(x *draft) {
	if x.phase != turnRuns && x.platformID == "" && x.state != draftUnknown && d.calls[x.key] == nil {
		delete(d.turns, x.turn)
	}
}

// apply keeps up with what a turn does.
func (x *draft) apply(e bus.Event) {
	x.phase = turnRuns // it goes on if it was parked
	switch e.Type {
	case bus.TurnStart:
		x.said, x.omitted, x.openBlock = nil, 0, -1
		return
	case bus.BlockStart:
		x.openBlock = -1
		if e.Kind == textBlock {
			x.openBlock = e.Block
		}
		return
	case bus.BlockDelta:
		if e.Block != x.openBlock {
			return
		}
		x.appendText(e.Block, e.Delta)
	case bus.BlockReset:
		x.openBlock, x.omitted = -1, 0
		x.said = slices.DeleteFunc(x.said, func(s saidBlock) bool { return s.block >= e.Block })
	case bus.ToolStart, bus.ToolProgress:
		if e.Type == bus.ToolStart {
			x.steps++
		}
		x.toolRan, x.toolText = true, e.Tool+" "+x.todo.heard(e)
		x.toolLine = brief(x.toolText)
	default:
		return
	}
	x.dirty = true
}

// appendText notes what the model says. What is too long to be shown is counted. What it
// says after a tool has run is an answer of its own.
func (x *draft) appendText(block int, text string) {
	if x.toolRan {
		x.said, x.omitted, x.toolRan, x.toolText, x.toolLine = nil, 0, false, "", ""
		x.answers++
	}
	size := 0
	for _, s := range x.said {
		size += len(s.text)
	}
	if size > draftBytes {
		x.omitted += utf8.RuneCountInString(text)
		return
	}
	if n := len(x.said); n == 0 || x.said[n-1].block != block {
		x.said = append(x.said, saidBlock{block: block})
	}
	x.said[len(x.said)-1].text += text
}

// length is how many characters the model has said.
func (x *draft) length() int {
	n := x.omitted
	for _, s := range x.said {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// texts are what the model has said, block by block.
func (x *draft) texts() (texts []string) {
	for _, s := range x.said {
		if text := strings.TrimSpace(strings.ToValidUTF8(s.text, "")); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// growth is the same for a message that grows.
func (x *draft) growth() channels.Growth {
	return channels.Growth{Turn: x.turn, Answer: x.answers, Text: strings.Join(x.texts(), "\n\n"), Step: x.steps, Doing: x.toolLine, Title: markup.OneLine(x.toolText, draftLine)}
}

// blockAddress keeps drafts away from an address whose mail is to be worked on, and
// waits for the call under way, so that people see the mail below the draft.
func (d *drafts) blockAddress(key string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.working[key]++
	under := d.calls[key]
	d.mu.Unlock()
	if under != nil {
		<-under
	}
}

// unblockAddress lets drafts in again, unless mail is left over: that comes first.
func (d *drafts) unblockAddress(key string, leftOver bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.working[key]--; d.working[key] == 0 {
		delete(d.working, key)
	}
	delete(d.leftOver, key)
	if leftOver {
		d.leftOver[key] = true
	}
	d.releaseHeld(key)
}

// releaseHeld wakes what was kept back at an address.
func (d *drafts) releaseHeld(key string) {
	if d.keptBack[key] {
		delete(d.keptBack, key)
		d.alarm.ring()
	}
}

// wakeFor wakes the planning goroutine if a draft is due before it would wake.
func (d *drafts) wakeFor(x *draft) {
	at, due := d.dueAt(x)
	if due && (d.wakesAt.IsZero() || at.Before(d.wakesAt)) {
		d.alarm.ring()
	}
}

// wantsCall tells whether there is something to do about a draft at all.
func (x *draft) wantsCall() bool {
	switch {
	case x.state == draftUnknown:
		return true
	case x.phase == turnSilent && x.platformID != "":
		return true // even a closed draft is told that the turn has stopped
	case x.previews > 0:
		return (x.dirty || x.shown != "") && x.phase == turnRuns && x.state == draftShown
	}
	return x.dirty && x.phase == turnRuns && x.state == draftShown
}

// dueAt is when the platform is to be called for a draft; false if it is not.
func (d *drafts) dueAt(x *draft) (time.Time, bool) {
	if !x.wantsCall() {
		return time.Time{}, false
	}
	if d.working[x.key] > 0 || d.leftOver[x.key] || d.calls[x.key] != nil {
		d.keptBack[x.key] = true
		return time.Time{}, false
	}
	at := x.nextCall
	if x.previews > 0 && !x.dirty {
		at = x.again
	}
	for _, later := range []time.Time{d.quietUntil[x.to.Chat], d.pace.Until(d.moved.current(x.to.Chat))} {
		if later.After(at) {
			at = later
		}
	}
	return at, true
}

// draftSuffix makes a turn's id the id of its draft in the book.
const draftSuffix = "#draft"

func (d *drafts) update(x *draft, how func(*draft)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	how(x)
}

// mark writes into the book what became of a draft. If that fails, the next process
// finds the draft as it was before.
func (d *drafts) mark(work context.Context, x *draft, now channels.SentPart) {
	err := d.writeToBook(work, nil, func(ctx context.Context) error {
		err := d.Book.Mark(ctx, x.turn+draftSuffix, 0, now)
		if errors.Is(err, channels.ErrNoSend) { // it was erased
			return nil
		}
		return err
	})
	if err != nil {
		d.Log.Error("draft was not noted", slog.String("channel", d.Name), slog.String("turn", x.turn), slog.Any("error", err))
	}
}

// closeDraft ends a draft that is not to be replaced any more.
func (d *drafts) closeDraft(work context.Context, x *draft, id string) {
	d.mark(work, x, channels.SentPart{State: channels.Sent, PlatformID: id})
	d.point("draft:closed")
	d.update(x, func(x *draft) { x.platformID, x.state = "", draftClosed })
}
