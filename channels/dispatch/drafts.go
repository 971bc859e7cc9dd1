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
	// draftDelay is the age of a turn at which its draft appears; faster turns need none.
	draftDelay   = time.Second
	draftTimeout = 10 * time.Second // the longest time that one call of the platform may take
	draftsAtOnce = 16               // how many calls of the platform may run at once
	draftTries   = 3                // how many times closing a draft is attempted
	draftPause   = 50 * time.Millisecond
	draftBytes   = 16 << 10 // how many bytes of one answer are kept; no platform shows more in one message
	// A turn without events is forgotten after draftIdle, or after draftKept if it has a
	// draft.
	draftIdle = 10 * time.Minute
	draftKept = 24 * time.Hour
	draftLine = 80 // how many characters a draft shows about what a tool does
)

// textBlock is the kind of a block that holds text for people.
const textBlock = "text"

// drafts shows unfinished answers: one message for each turn, posted once the turn has
// taken a moment, edited in place, and replaced by the turn's first message to the same
// address. It shows them only as far as that delays no message: ordinary mail always comes
// first.
//
// One goroutine decides what to show, a few others call the platform. For each address
// either its mail is worked on or a draft call runs, never both.
type drafts struct {
	*run
	editor channels.Editor
	// previewer shows answers as previews instead of messages; nil if the channel cannot or
	// should not.
	previewer channels.Previewer
	alarm     alarm // rings when a call may be due earlier than the schedule expects

	mu         sync.Mutex
	turns      map[string]*draft
	quietUntil map[string]time.Time     // chats in which no draft is shown before that time
	calls      map[string]chan struct{} // addresses for which a call is under way
	working    map[string]int           // addresses whose mail is being sent, with the number of goroutines that do so
	leftOver   map[string]bool          // addresses with mail that could not be sent yet
	waiting    map[string]bool          // addresses where a draft waits because of mail or a call
	wakesAt    time.Time                // when the schedule wakes by itself; zero means never
}

// A draft is what one turn shows before it has answered.
type draft struct {
	turn    string
	session string // "" for a draft of an earlier process
	to      bus.Address
	key     string // the key of the address's mailbox

	blocks    []saidBlock // what the model has said in its newest answer, block by block
	omitted   int         // how many characters of that answer are not kept
	answers   int         // how many answers the turn had begun before it
	openBlock int         // the block that the model is saying; -1 means none
	steps     int         // how many tool calls the turn has begun
	toolText  string      // what the newest tool call is about
	toolLine  string      // toolText as Markdown, on one line
	toolRan   bool        // a tool has run since the model last said something
	todo      todoList    // the turn's list of tasks
	lastHeard time.Time

	// previews is the least time between two previews, of which nothing is recorded; 0
	// means that the draft is a message.
	previews        time.Duration
	repeatPreviewAt time.Time // when to repeat a preview so that it does not fade

	platformID string // the platform's id of the draft; "" while nothing is posted
	shown      string // the rendered text that the platform shows
	nextCall   time.Time
	state      draftState
	phase      turnPhase
	dirty      bool // whether something new is not shown yet
	tries      int  // how often the last edit of a turn that ended without an answer was attempted
}

// A saidBlock is the text of one block of the model's answer.
type saidBlock struct {
	block int
	text  string
}

// A draftState says whether new text of a turn may be shown in its draft.
type draftState int

const (
	draftShown   draftState = iota // it may, now or as soon as there is something to show
	draftUnknown                   // not yet: first find out whether an earlier process has posted the draft
	draftClosed                    // nothing new of this turn is shown any more
)

// A turnPhase says how far the turn itself is.
type turnPhase int

const (
	turnRuns   turnPhase = iota
	turnOver             // it has ended or waits for people: its message will replace the draft
	turnSilent           // it has ended without an answer, so no message will replace the draft
)

// newDrafts returns nil where the channel shows no drafts; the methods accept that.
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

// Missed implements bus.Listener: after lost events it drops the text of all answers, because it
// would be shown with pieces missing.
func (d *drafts) Missed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.turns {
		x.blocks, x.omitted, x.openBlock = nil, 0, -1
	}
}

// Heard implements bus.Listener: it updates the draft of the event's turn.
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
			x.session = e.Session
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
		d.handleTurnEnd(x, e)
	default:
		x.apply(e)
	}
	d.wakeFor(x)
}

// handleTurnEnd handles the end of a turn: its message will replace the draft, or, if the turn has
// no message, the draft itself says that the turn has stopped.
func (d *drafts) handleTurnEnd(x *draft, e bus.Event) {
	x.phase = turnOver
	if e.Type == bus.TurnError && (e.Error == nil || e.Error.Message == "") {
		x.phase, x.nextCall = turnSilent, time.Now()
	}
	d.forgetIfDone(x)
}

// forgetIfDone forgets a turn that has ended and has no draft to replace.
func (d *drafts) forgetIfDone(x *draft) {
	if x.phase != turnRuns && x.platformID == "" && x.state != draftUnknown && d.calls[x.key] == nil {
		delete(d.turns, x.turn)
	}
}

// apply updates the draft by an event of its turn.
func (x *draft) apply(e bus.Event) {
	x.phase = turnRuns // a parked turn has continued
	switch e.Type {
	case bus.TurnStart:
		x.blocks, x.omitted, x.openBlock = nil, 0, -1
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
		x.blocks = slices.DeleteFunc(x.blocks, func(s saidBlock) bool { return s.block >= e.Block })
	case bus.ToolStart, bus.ToolProgress:
		if e.Type == bus.ToolStart {
			x.steps++
		}
		x.toolRan, x.toolText = true, e.Tool+" "+x.todo.update(e)
		x.toolLine = briefLine(x.toolText)
	default:
		return
	}
	x.dirty = true
}

// appendText adds a piece of the model's answer. Text too long to be shown is only counted.
// What the model says after a tool has run begins a new answer.
func (x *draft) appendText(block int, text string) {
	if x.toolRan {
		x.blocks, x.omitted, x.toolRan, x.toolText, x.toolLine = nil, 0, false, "", ""
		x.answers++
	}
	size := 0
	for _, s := range x.blocks {
		size += len(s.text)
	}
	if size > draftBytes {
		x.omitted += utf8.RuneCountInString(text)
		return
	}
	if n := len(x.blocks); n == 0 || x.blocks[n-1].block != block {
		x.blocks = append(x.blocks, saidBlock{block: block})
	}
	x.blocks[len(x.blocks)-1].text += text
}

// length returns how many characters the model has said.
func (x *draft) length() int {
	n := x.omitted
	for _, s := range x.blocks {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// texts returns what the model has said, block by block.
func (x *draft) texts() (texts []string) {
	for _, s := range x.blocks {
		if text := strings.TrimSpace(strings.ToValidUTF8(s.text, "")); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// growth returns how far the answer has come, for channels on which a message grows with it.
func (x *draft) growth() channels.Growth {
	return channels.Growth{Turn: x.turn, Answer: x.answers, Text: strings.Join(x.texts(), "\n\n"), Step: x.steps, Doing: x.toolLine, Title: markup.OneLine(x.toolText, draftLine)}
}

// blockAddress stops the drafts at an address whose mail is about to be sent, and waits for the
// call under way, so that people see the mail below the draft.
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

// unblockAddress lets drafts continue at an address. If mail is left there (leftOver), that is sent
// first.
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

// releaseHeld wakes the schedule if a draft at the address waits for something that is over now.
func (d *drafts) releaseHeld(key string) {
	if d.waiting[key] {
		delete(d.waiting, key)
		d.alarm.ring()
	}
}

// wakeFor wakes the schedule if a draft is due before the schedule would wake by itself.
func (d *drafts) wakeFor(x *draft) {
	at, due := d.dueAt(x)
	if due && (d.wakesAt.IsZero() || at.Before(d.wakesAt)) {
		d.alarm.ring()
	}
}

// needsCall reports whether the platform has to be called for a draft.
func (x *draft) needsCall() bool {
	switch {
	case x.state == draftUnknown:
		return true
	case x.phase == turnSilent && x.platformID != "":
		return true // even a closed draft shows that the turn has stopped
	case x.previews > 0:
		return (x.dirty || x.shown != "") && x.phase == turnRuns && x.state == draftShown
	}
	return x.dirty && x.phase == turnRuns && x.state == draftShown
}

// dueAt returns when to call the platform for a draft; false if no call is needed, or its address
// is busy.
func (d *drafts) dueAt(x *draft) (time.Time, bool) {
	if !x.needsCall() {
		return time.Time{}, false
	}
	if d.working[x.key] > 0 || d.leftOver[x.key] || d.calls[x.key] != nil {
		d.waiting[x.key] = true
		return time.Time{}, false
	}
	at := x.nextCall
	if x.previews > 0 && !x.dirty {
		at = x.repeatPreviewAt
	}
	for _, later := range []time.Time{d.quietUntil[x.to.Chat], d.pace.PausedUntil(d.moved.current(x.to.Chat))} {
		if later.After(at) {
			at = later
		}
	}
	return at, true
}

// draftSuffix is appended to a turn's id to make the id of its draft in the book.
const draftSuffix = "#draft"

// update calls change with a draft while it holds the mutex.
func (d *drafts) update(x *draft, change func(*draft)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(x)
}

// mark records in the book the state of a draft. If that fails, the next process finds the
// draft as it was before.
func (d *drafts) mark(work context.Context, x *draft, now channels.SentPart) {
	err := d.writeToBook(work, nil, func(ctx context.Context) error {
		err := d.Book.Mark(ctx, x.turn+draftSuffix, 0, now)
		if errors.Is(err, channels.ErrNoSend) || errors.Is(err, channels.ErrFinished) { // the record was erased, or another process has closed it
			return nil
		}
		return err
	})
	if err != nil {
		d.Log.Error("draft was not noted", slog.String("channel", d.Name), slog.String("turn", x.turn), slog.Any("error", err))
	}
}

// closeDraft records that a draft is finished as it is and will not be replaced.
func (d *drafts) closeDraft(work context.Context, x *draft, id string) {
	d.mark(work, x, channels.SentPart{State: channels.Sent, PlatformID: id})
	d.crashPoint("draft:closed")
	d.update(x, func(x *draft) { x.platformID, x.state = "", draftClosed })
}
