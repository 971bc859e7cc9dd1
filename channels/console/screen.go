package console

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

const (
	bullet = "· "
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[0m"
	// newsLag is how long what is sent waits for the news of its turn, so that
	// the end of the text is not printed before its middle.
	newsLag = 250 * time.Millisecond
)

// A block is a piece of what a turn says, as far as it is known.
type block struct {
	n    int
	kind string
	text strings.Builder
}

func (b *block) passage() passage {
	return passage{text: b.text.String(), markdown: b.kind == blockText, dim: b.kind != blockText}
}

const (
	blockText     = "text"
	blockThinking = "thinking"
)

// A turn is what has been shown of one.
type turn struct {
	texts []*block // its blocks of text, the one that is growing included
	over  bool     // nothing more of it is news
}

// A display is what a screen shows things on.
type display interface {
	print(passage) // what is finished
	now(passage)   // what is going on, in its place; the empty passage ends that
	wait(busy bool)
	ask(question string) // what waits for the person's word, in its place; "" ends that
}

// A screen shows a conversation as it goes on.
type screen struct {
	mu      sync.Mutex
	on      display
	growing *block   // what the model is saying
	calls   []toolAt // those that run
	busy    bool     // an answer is awaited
	mine    map[string]bool
	turns   map[string]*turn
	latest  string        // the turn that was last heard of
	change  chan struct{} // closed when a turn is over

	here     bus.Address
	requests requests
}

// A toolAt is the line of a tool call that runs.
type toolAt struct{ call, line string }

func newScreen(on display, here bus.Address) *screen {
	return &screen{on: on, here: here, mine: make(map[string]bool), turns: make(map[string]*turn), change: make(chan struct{})}
}

// attach shows everything on another display from now on.
func (s *screen) attach(on display) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

// typed shows what the person has sent off; on a page it was never seen.
func (s *screen) typed(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, window := s.on.(*window); window {
		s.on.print(passage{text: promptText + text})
	}
}

// asked notes the id of what was typed; a command is answered without a turn.
func (s *screen) asked(id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[id] = isCommand(text)
	s.await(true)
}

func (s *screen) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

// tell shows a line that is nobody's answer.
func (s *screen) tell(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on.print(passage{text: text})
}

// event shows one piece of news.
func (s *screen) event(e bus.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[e.Turn]
	if t == nil {
		t = new(turn)
		s.turns[e.Turn] = t
	}
	if t.over {
		return
	}
	s.latest = e.Turn
	switch e.Type {
	case bus.TurnStart:
		s.await(true)
	case bus.BlockStart, bus.BlockDelta:
		s.say(t, e)
	case bus.BlockStop:
		s.finish()
	case bus.BlockReset:
		s.reset(t, e.Block)
	case bus.ToolStart:
		s.finish()
		s.calls = append(s.calls, toolAt{e.Call, strings.TrimRight(bullet+oneLine(e.Tool)+" "+oneLine(e.Delta), " ") + " …"})
		s.running()
	case bus.ToolProgress:
		s.toolProgress(e)
	case bus.ToolEnd:
		s.toolEnd(e)
	case bus.Asked:
		s.requests.add(e.Ask, s.here)
		s.on.ask(s.requests.question())
	case bus.AskResolved:
		if e.Ask != nil {
			s.requests.drop(e.Ask.ID)
		}
		s.on.ask(s.requests.question())
	case bus.Compacted:
		if c := e.Compaction; c != nil {
			s.finish()
			s.on.print(passage{text: fmt.Sprintf("%sless of the past is shown to the model: about %d tokens in place of %d", bullet, c.After, c.Before)})
		}
	case bus.TurnParked:
		s.finish()
		s.await(false)
	case bus.TurnComplete, bus.TurnError:
		s.end(t, e)
	}
}

// say shows a block as it grows, what the model only thinks dimmed.
func (s *screen) say(t *turn, e bus.Event) {
	if e.Kind != blockText && e.Kind != blockThinking {
		return
	}
	if b := s.growing; b == nil || b.n != e.Block || b.kind != e.Kind || e.Type == bus.BlockStart {
		s.finish()
		s.growing = &block{n: e.Block, kind: e.Kind}
		if e.Kind == blockText {
			t.texts = append(t.texts, s.growing)
		}
	}
	s.growing.text.WriteString(e.Delta)
	s.on.now(s.growing.passage())
}

// toolProgress shows beside a call that runs how far it is.
func (s *screen) toolProgress(e bus.Event) {
	for i := range s.calls {
		if s.calls[i].call == e.Call && s.growing == nil {
			line, _, _ := strings.Cut(s.calls[i].line, " … ")
			s.calls[i].line = strings.TrimSuffix(line, " …") + " … " + oneLine(e.Delta)
			s.running()
		}
	}
}

// finish prints the block that was growing.
func (s *screen) finish() {
	b := s.growing
	if b == nil {
		return
	}
	s.growing = nil
	s.on.now(passage{})
	s.on.print(b.passage())
}

// reset takes back what was shown from a block on: the model is asked again.
func (s *screen) reset(t *turn, from int) {
	kept := t.texts[:0]
	void := false
	for _, b := range t.texts {
		if b.n < from {
			kept = append(kept, b)
		} else if b.text.Len() > 0 {
			void = true
		}
	}
	t.texts = kept
	if s.growing != nil && s.growing.n >= from {
		void = void || s.growing.text.Len() > 0
		s.growing = nil
		s.on.now(passage{})
	}
	if void {
		s.on.print(passage{text: bullet + "the answer broke off and begins again"})
	}
}

// running shows the calls that run.
func (s *screen) running() {
	lines := make([]string, len(s.calls))
	for i, c := range s.calls {
		lines[i] = c.line
	}
	s.on.now(passage{text: strings.Join(lines, "\n")})
}

func (s *screen) toolEnd(e bus.Event) {
	outcome := " ok"
	if e.Error != nil {
		outcome = " failed: " + oneLine(e.Error.Code)
	}
	line := bullet + oneLine(e.Tool) + " …" // of a call whose beginning was missed
	for i, c := range s.calls {
		if c.call == e.Call {
			line = c.line
			s.calls = slices.Delete(s.calls, i, i+1)
			break
		}
	}
	s.running()
	s.on.print(passage{text: line + outcome})
}

// end notes that a turn is over. Its answer is still to be sent, unless it has none.
func (s *screen) end(t *turn, e bus.Event) {
	t.over = true
	// A text whose end was not heard of is in the answer: printed now it would be in two.
	if s.growing == nil || s.growing.kind != blockText || e.Type == bus.TurnError {
		s.finish()
		s.on.now(passage{})
	}
	s.calls = nil
	close(s.change)
	s.change = make(chan struct{})
	if e.Type == bus.TurnError && (e.Error == nil || e.Error.Message == "") {
		s.await(false)
	}
}

// send shows what was sent, without what was shown of it already.
func (s *screen) send(ctx context.Context, part channels.Part) {
	s.settle(ctx, part)
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := bus.Cause(part.Key)
	t := s.turns[id]
	rest := part.Text
	if t != nil && id != part.Key {
		s.dropShownBlock(t)
		rest = t.unseen(part.Text)
	}
	s.on.print(passage{text: rest, markdown: true})
	_, mine := s.mine[id]
	if !mine && t == nil { // said by the way
		return
	}
	s.turns[id] = &turn{over: true} // late news of it is none
	delete(s.mine, id)
	if last := s.turns[s.latest]; last == nil || last.over {
		s.forgetOldTurns()
		s.await(false)
	}
}

// dropShownBlock forgets the block that was growing when the whole answer came: it is in there.
func (s *screen) dropShownBlock(t *turn) {
	n := len(t.texts)
	if s.growing == nil || n == 0 || t.texts[n-1] != s.growing {
		return
	}
	t.texts = t.texts[:n-1]
	s.growing = nil
	s.on.now(passage{})
}

// forgetOldTurns drops what nothing will ask for, but for the latest turns.
func (s *screen) forgetOldTurns() {
	const most = 64
	for id, t := range s.turns {
		if len(s.turns) <= most {
			return
		}
		if t.over && id != s.latest {
			delete(s.turns, id)
		}
	}
}

// unseen is what of a text was not shown while the turn went on.
func (t *turn) unseen(text string) string {
	for i := range t.texts {
		var seen strings.Builder
		for _, b := range t.texts[i:] {
			seen.WriteString(b.text.String())
		}
		if visibleCharacters(seen.String()) == "" {
			break
		}
		if rest, ok := afterShown(text, seen.String()); ok {
			return rest
		}
	}
	return text
}

// settle waits a moment until the news of the turn that a part answers has been shown.
func (s *screen) settle(ctx context.Context, part channels.Part) {
	id, answers := bus.Cause(part.Key)
	timer := time.NewTimer(newsLag)
	defer timer.Stop()
	for {
		s.mu.Lock()
		t, change := s.turns[id], s.change
		command, mine := s.mine[id]
		awaited := (t != nil && !t.over) || (t == nil && mine && !command)
		s.mu.Unlock()
		if !answers || !awaited {
			return
		}
		select {
		case <-change:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// await says whether an answer is awaited. s.mu is held.
func (s *screen) await(busy bool) {
	if s.busy != busy {
		s.busy = busy
		s.on.wait(busy)
	}
}

// A plainOutput is a display that is no terminal: what is finished is written to it, as
// it came, and what the model only thinks is not, lest it be taken for the answer.
type plainOutput struct {
	mu  sync.Mutex
	out io.Writer
	err error // the first of out
}

func (p *plainOutput) print(text passage) {
	if text.dim || strings.TrimSpace(text.text) == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := printLine(p.out, text.text); err != nil && p.err == nil {
		p.err = err
	}
}

func (*plainOutput) now(passage) {}

func (*plainOutput) wait(bool) {}

func (p *plainOutput) ask(question string) { p.print(passage{text: question}) }

// failed is why the page could not be written to.
func (p *plainOutput) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
