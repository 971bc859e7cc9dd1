package console

import (
	"context"
	"io"
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

// A block is a piece of text of a turn, as far as it was shown.
type block struct {
	n    int
	text strings.Builder
}

// A turn is what has been shown of one.
type turn struct {
	blocks []*block
	over   bool // nothing more of it is news
}

// A screen shows a conversation as it goes on.
type screen struct {
	mu     sync.Mutex
	out    io.Writer
	line   *prompter // of a terminal that is being typed at; nil elsewhere
	begun  bool      // the line has something on it
	dim    bool      // the text is dimmed
	call   string    // the tool call whose line is open
	busy   bool      // an answer is awaited
	mine   map[string]bool
	turns  map[string]*turn
	latest string        // the turn that was last heard of
	change chan struct{} // closed when a turn is over
	err    error         // the first of out
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, mine: make(map[string]bool), turns: make(map[string]*turn), change: make(chan struct{})}
}

// attach makes the screen share its lines with what is typed; nil ends that.
func (s *screen) attach(p *prompter, out io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line, s.out, s.begun = p, out, false
}

// asked notes that a line was typed, and its id; a command is answered without
// a turn.
func (s *screen) asked(id string, command bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[id] = command
}

// typed notes that a line was ended by the person.
func (s *screen) typed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.call = false, ""
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
	s.fresh()
	s.print(bullet + text + "\n")
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
		s.undim()
	case bus.BlockReset:
		s.reset(t, e.Block)
	case bus.ToolStart:
		s.fresh()
		s.print(strings.TrimRight(bullet+oneLine(e.Tool)+" "+oneLine(e.Delta), " ") + " …")
		s.call = e.Call
	case bus.ToolEnd:
		s.toolEnd(e)
	case bus.TurnParked:
		s.fresh()
		s.await(false)
	case bus.TurnComplete, bus.TurnError:
		s.end(t, e)
	}
}

// say shows text as it comes, what the model only thinks dimmed.
func (s *screen) say(t *turn, e bus.Event) {
	if e.Kind != "text" && e.Kind != "thinking" {
		return
	}
	if e.Type == bus.BlockStart {
		s.fresh()
		if e.Kind == "text" {
			t.blocks = append(t.blocks, &block{n: e.Block})
		}
		return
	}
	if e.Kind == "thinking" {
		if s.line == nil {
			return // not where it might be taken for the answer
		}
		if !s.dim {
			s.fresh()
			s.dim = true
			s.write(dimOn)
		}
		s.print(clean(e.Delta))
		return
	}
	if n := len(t.blocks); n == 0 || t.blocks[n-1].n != e.Block { // its beginning was missed
		s.fresh()
		t.blocks = append(t.blocks, &block{n: e.Block})
	}
	if s.call != "" {
		s.fresh()
	}
	t.blocks[len(t.blocks)-1].text.WriteString(e.Delta)
	s.print(clean(e.Delta))
}

// reset takes back what was shown from a block on: the model is asked again.
func (s *screen) reset(t *turn, from int) {
	kept := t.blocks[:0]
	void := false
	for _, b := range t.blocks {
		if b.n < from {
			kept = append(kept, b)
		} else if b.text.Len() > 0 {
			void = true
		}
	}
	t.blocks = kept
	s.fresh()
	if void {
		s.print(bullet + "the answer broke off and begins again\n")
	}
}

func (s *screen) toolEnd(e bus.Event) {
	outcome := " ok"
	if e.Error != nil {
		outcome = " failed: " + oneLine(e.Error.Code)
	}
	if s.call != e.Call || e.Call == "" {
		s.fresh()
		s.print(bullet + oneLine(e.Tool) + " …")
	}
	s.print(outcome + "\n")
	s.call = ""
}

// end notes that a turn is over. Its answer is still to be sent, unless it has none.
func (s *screen) end(t *turn, e bus.Event) {
	t.over = true
	s.undim()
	close(s.change)
	s.change = make(chan struct{})
	if e.Type == bus.TurnError && (e.Error == nil || e.Error.Message == "") {
		s.fresh()
		s.await(false)
	}
}

// send shows what was sent, without what was shown of it already.
func (s *screen) send(ctx context.Context, part channels.Part) error {
	s.settle(ctx, part)
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, _ := strings.Cut(part.Key, "#")
	t := s.turns[id]
	rest := part.Text
	if t != nil && id != part.Key {
		rest = t.unseen(part.Text)
	}
	if rest == part.Text {
		s.fresh()
	}
	s.print(clean(strings.TrimRight(rest, "\n")))
	s.fresh()
	_, mine := s.mine[id]
	if !mine && t == nil { // said by the way
		return s.err
	}
	s.turns[id] = &turn{over: true} // late news of it is none
	delete(s.mine, id)
	if last := s.turns[s.latest]; last == nil || last.over {
		s.forget()
		s.await(false)
	}
	return s.err
}

// forget drops what nothing will ask for, but for the latest turns.
func (s *screen) forget() {
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
	for i := range t.blocks {
		var seen strings.Builder
		for _, b := range t.blocks[i:] {
			seen.WriteString(b.text.String())
		}
		if bones(seen.String()) == "" {
			break
		}
		if rest, ok := beyond(text, seen.String()); ok {
			return rest
		}
	}
	return text
}

// settle waits a moment until the news of the turn that a part answers has been shown.
func (s *screen) settle(ctx context.Context, part channels.Part) {
	id, _, answers := strings.Cut(part.Key, "#")
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

// await tells the prompt whether an answer is awaited. s.mu is held, here as below.
func (s *screen) await(busy bool) {
	if s.busy == busy {
		return
	}
	s.busy = busy
	if s.line == nil {
		return
	}
	if busy {
		s.line.hide()
	} else {
		s.line.show()
	}
}

// fresh goes to the beginning of a line.
func (s *screen) fresh() {
	s.undim()
	if s.begun {
		s.print("\n")
	}
	s.call = ""
}

func (s *screen) undim() {
	if s.dim {
		s.dim = false
		s.write(dimOff)
	}
}

// print writes a text that is clean.
func (s *screen) print(text string) {
	if text != "" {
		s.begun = !strings.HasSuffix(text, "\n")
		s.write(text)
	}
}

func (s *screen) write(text string) {
	if _, err := io.WriteString(s.out, text); err != nil && s.err == nil {
		s.err = err
	}
}
