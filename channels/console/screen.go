package console

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/console/past"
)

const (
	bullet = "· "
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[0m"
	// eventWait is how long a sent message waits for its turn's events, so that the end of a text is not printed
	// before its middle.
	eventWait = 250 * time.Millisecond
)

// A block is one part of a turn's output (text or thinking), as much of it as has arrived.
type block struct {
	n    int // its number in the turn
	kind string
	text strings.Builder
}

// passage returns the block in the form in which the screen shows it; blocks that are not text are dimmed.
func (b *block) passage() passage {
	return passage{text: b.text.String(), isMarkdown: b.kind == blockText, isDimmed: b.kind != blockText}
}

const (
	blockText     = "text"
	blockThinking = "thinking"
)

// A turn holds what the screen has shown of one turn.
type turn struct {
	texts  []*block  // its blocks of text, including the one that is growing
	isOver bool      // whether the turn is over, so that its later events are ignored
	usage  bus.Usage // what all its model calls have used together
}

// A display is where a screen shows its passages.
type display interface {
	print(passage)                // prints a finished passage
	grow(passage)                 // shows an unfinished passage, which begins with the text it had before
	finish()                      // prints the part of that passage that has not been printed yet
	showCalls(lines string)       // replaces the lines of the running tool calls
	showStatus(line string)       // replaces the line that says what is going on; "" removes it
	showQuestion(question string) // replaces the question that the person has to decide; "" removes it
}

// A screen shows a conversation as it happens.
type screen struct {
	mu             sync.Mutex
	display        display
	growing        *block           // the block that the model is writing
	calls          []callLine       // the tool calls that are running
	answerExpected bool             // whether an answer is expected
	status         string           // the line that says what is going on
	ownMessages    map[string]bool  // the ids of the person's messages; see recordSent
	turns          map[string]*turn // the turns, by id
	latestTurn     string           // the id of the turn that the last event belongs to
	turnEnded      chan struct{}    // closed and replaced when a turn ends

	address  bus.Address
	requests approvalRequests
}

// A callLine is the line that shows one running tool call.
type callLine struct{ call, line string }

func newScreen(on display, here bus.Address) *screen {
	return &screen{display: on, address: here, ownMessages: make(map[string]bool), turns: make(map[string]*turn), turnEnded: make(chan struct{})}
}

// attach makes the screen use another display from now on.
func (s *screen) attach(on display) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.display = on
}

// showTyped prints what the person has sent, if a window is drawn, because the window clears the typed line;
// without a window, the typed text stays visible anyway.
func (s *screen) showTyped(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, window := s.display.(*window); window {
		s.display.print(passage{text: promptText + text})
	}
}

// clear clears the screen, if a window is drawn.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, window := s.display.(*window); window {
		w.clear()
	}
}

// putBack says why a text can't be sent and, if a window is drawn, puts the text back into the line.
func (s *screen) putBack(text, wrong string) {
	s.mu.Lock()
	w, window := s.display.(*window)
	s.mu.Unlock()
	s.printNote(wrong)
	if window {
		w.putBack(text)
	}
}

// recordSent records the id of one of the person's messages, and whether the message is a command, which is
// answered without a turn.
func (s *screen) recordSent(id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ownMessages[id] = isCommand(text)
	s.setBusy(true)
}

// isBusy reports whether an answer is expected.
func (s *screen) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answerExpected
}

// printNote prints a line that is not part of an answer.
func (s *screen) printNote(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.display.print(passage{text: text})
}

// printPast prints, dimmed, the end of the conversation as the person left it.
func (s *screen) printPast(all []past.Exchange) {
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.display.print(passage{text: bullet + "earlier in this conversation:", isDimmed: true})
	for _, e := range past.Shorten(all) {
		s.display.print(passage{text: promptText + e.Said, isDimmed: true})
		s.display.print(passage{text: e.Answer, isMarkdown: true, isDimmed: true})
	}
	s.display.print(passage{text: bullet + "now:", isDimmed: true})
}

// handleEvent shows one event of a turn.
func (s *screen) handleEvent(e bus.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turns[e.Turn]
	if t == nil {
		t = new(turn)
		s.turns[e.Turn] = t
	}
	if t.isOver && e.Type != bus.Compacted { // the reply to /compact does not wait for its event, and may come first
		return
	}
	s.latestTurn = e.Turn
	switch e.Type {
	case bus.TurnStart:
		s.setBusy(true)
	case bus.BlockStart, bus.BlockDelta:
		s.growBlock(t, e)
	case bus.BlockStop:
		if s.growing != nil && s.growing.n == e.Block {
			s.finishBlock()
		}
	case bus.BlockReset:
		s.withdrawBlocks(t, e.Block)
	case bus.ToolStart:
		s.finishBlock()
		s.calls = append(s.calls, callLine{e.Call, strings.TrimRight(bullet+oneLine(e.Tool)+" "+oneLine(e.Delta), " ") + " …"})
		s.showRunningCalls()
	case bus.ToolProgress:
		s.showCallProgress(e)
	case bus.ToolEnd:
		s.finishCall(e)
	case bus.Asked:
		s.requests.add(e.Ask, s.address)
		s.display.showQuestion(s.requests.question())
	case bus.AskResolved:
		if e.Ask != nil {
			s.requests.remove(e.Ask.ID)
		}
		s.display.showQuestion(s.requests.question())
	case bus.Retried, bus.Compacted, bus.Used:
		s.showModelNews(t, e)
	case bus.TurnParked:
		s.finishBlock()
		s.setBusy(false)
	case bus.TurnComplete, bus.TurnError:
		s.endTurn(t, e)
	}
}

// growBlock shows a growing block of the model's output; thinking is dimmed.
func (s *screen) growBlock(t *turn, e bus.Event) {
	if e.Kind != blockText && e.Kind != blockThinking {
		return
	}
	if b := s.growing; b == nil || b.n != e.Block || b.kind != e.Kind || e.Type == bus.BlockStart {
		s.finishBlock()
		s.growing = &block{n: e.Block, kind: e.Kind}
		if e.Kind == blockText {
			t.texts = append(t.texts, s.growing)
		}
	}
	s.growing.text.WriteString(e.Delta)
	s.display.grow(s.growing.passage())
}

// showCallProgress shows the progress of a running tool call in the call's line.
func (s *screen) showCallProgress(e bus.Event) {
	for i := range s.calls {
		if s.calls[i].call == e.Call && s.growing == nil {
			line, _, _ := strings.Cut(s.calls[i].line, " … ")
			s.calls[i].line = strings.TrimSuffix(line, " …") + " … " + oneLine(e.Delta)
			s.showRunningCalls()
		}
	}
}

// finishBlock prints the rest of the block that was growing.
func (s *screen) finishBlock() {
	if s.growing != nil {
		s.growing = nil
		s.display.finish()
	}
}

// withdrawBlocks forgets an answer's blocks with the number from or higher, because the model is asked for them
// again. What the person has read of them stays, and is marked.
func (s *screen) withdrawBlocks(t *turn, from int) {
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
		s.finishBlock()
	}
	if void {
		s.display.print(passage{text: bullet + "the answer was cut off and is starting over"})
	}
}

// showRunningCalls shows the lines of the running tool calls.
func (s *screen) showRunningCalls() {
	lines := make([]string, len(s.calls))
	for i, c := range s.calls {
		lines[i] = c.line
	}
	s.display.showCalls(strings.Join(lines, "\n"))
}

// finishCall prints a finished tool call with its outcome.
func (s *screen) finishCall(e bus.Event) {
	outcome := " ok"
	if e.Error != nil {
		outcome = " failed: " + oneLine(e.Error.Code)
	}
	line := bullet + oneLine(e.Tool) + " …" // for a call whose start was missed
	for i, c := range s.calls {
		if c.call == e.Call {
			line = c.line
			s.calls = slices.Delete(s.calls, i, i+1)
			break
		}
	}
	s.showRunningCalls()
	s.display.print(passage{text: line + outcome})
}

// endTurn records that a turn has ended. If it has an answer, that is sent later.
func (s *screen) endTurn(t *turn, e bus.Event) {
	t.isOver = true
	// A text whose end was missed continues in the answer.
	if s.growing == nil || s.growing.kind != blockText || e.Type == bus.TurnError {
		s.finishBlock()
	}
	if e.Type == bus.TurnError && len(t.texts) > 0 {
		s.display.print(passage{text: bullet + "stopped here: the answer isn't complete", isDimmed: true})
	}
	s.calls = nil
	s.showRunningCalls()
	close(s.turnEnded)
	s.turnEnded = make(chan struct{})
	if e.Type == bus.TurnError && (e.Error == nil || e.Error.Message == "") {
		s.setBusy(false)
	}
}

// send waits for the events that precede a sent message and prints what has not been shown of the message yet. If
// the message is an answer, it marks the answer's turn as over.
func (s *screen) send(ctx context.Context, part channels.Part) {
	s.waitForEvents(ctx, part)
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := bus.Cause(part.Key)
	t := s.turns[id]
	rest := part.Text
	if t != nil && id != part.Key {
		rest = t.unseenRest(part.Text)
		rest = s.completeBlock(t, part.Text, rest)
	}
	s.display.print(passage{text: rest, isMarkdown: true})
	_, mine := s.ownMessages[id]
	if !mine && t == nil { // the message answers nothing
		return
	}
	s.turns[id] = &turn{isOver: true} // later events from this turn are ignored
	delete(s.ownMessages, id)
	if last := s.turns[s.latestTurn]; last == nil || last.isOver {
		s.forgetOldTurns()
		s.setBusy(false)
	}
}

// completeBlock ends the block that is growing. If the block is the beginning of a complete answer whose rest has
// not been shown, it first adds the rest to the block. It returns what must still be printed.
func (s *screen) completeBlock(t *turn, answer, rest string) string {
	n := len(t.texts)
	if s.growing != nil && n > 0 && t.texts[n-1] == s.growing && len(rest) < len(answer) {
		s.growing.text.WriteString(rest)
		s.display.grow(s.growing.passage())
		rest = ""
	}
	s.finishBlock()
	return rest
}

// forgetOldTurns removes ended turns until at most 64 are left.
func (s *screen) forgetOldTurns() {
	const most = 64
	for id, t := range s.turns {
		if len(s.turns) <= most {
			return
		}
		if t.isOver && id != s.latestTurn {
			delete(s.turns, id)
		}
	}
}

// unseenRest returns the rest of an answer that was not shown while the turn was running.
func (t *turn) unseenRest(text string) string {
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

// waitForEvents waits for at most eventWait until the events of the turn that a part answers have been shown.
func (s *screen) waitForEvents(ctx context.Context, part channels.Part) {
	id, answers := bus.Cause(part.Key)
	timer := time.NewTimer(eventWait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		t, change := s.turns[id], s.turnEnded
		command, mine := s.ownMessages[id]
		awaited := (t != nil && !t.isOver) || (t == nil && mine && !command)
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

// A plainOutput is a display for output that does not go to a terminal. It prints finished passages without
// rendering them. It leaves out dimmed ones, such as the model's thinking, which could be mistaken for the answer.
type plainOutput struct {
	mu      sync.Mutex
	out     io.Writer
	err     error // the first error of writing to out
	growing passage
}

func (p *plainOutput) print(text passage) {
	if text.isDimmed || strings.TrimSpace(text.text) == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := printLine(p.out, text.text); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *plainOutput) grow(text passage) { p.growing = text }

func (p *plainOutput) finish() {
	p.print(p.growing)
	p.growing = passage{}
}

func (*plainOutput) showCalls(string) {}

func (*plainOutput) showStatus(string) {}

func (p *plainOutput) showQuestion(question string) { p.print(passage{text: question}) }

// writeError returns the first error from writing.
func (p *plainOutput) writeError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
