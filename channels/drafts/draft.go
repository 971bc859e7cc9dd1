package drafts

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

const (
	textBlock  = "text"   // the kind of a block that holds text for people
	draftBytes = 16 << 10 // how many bytes of one answer are kept; no platform shows more in one message
	draftLine  = 80       // how many characters a draft shows about what a tool is doing
)

// A draft is what one turn shows before it has answered.
type draft struct {
	turn    string
	session string // "" for a draft from an earlier process
	to      bus.Address
	key     string // the key of the address's mailbox

	blocks         []saidBlock // what the model has said in its newest answer, block by block
	omittedLength  int         // how many characters of that answer are not kept
	earlierAnswers int         // how many answers the turn had begun before this one
	openBlock      int         // the block that the model is writing; -1 means none
	toolCalls      int         // how many tool calls the turn has started
	toolText       string      // what the newest tool call does
	toolLine       string      // toolText as Markdown, on one line
	toolHasRun     bool        // whether a tool has run since the model last wrote something
	todo           todoList    // the turn's list of tasks
	lastHeard      time.Time

	// previewInterval is the minimum time between two previews, which are not recorded; 0 means that the draft is a
	// message.
	previewInterval time.Duration
	repeatPreviewAt time.Time // when to repeat a preview so that it does not fade

	platformID      string // the platform's id of the draft; "" while nothing is posted
	shown           string // the rendered text that the platform shows
	nextCall        time.Time
	state           draftState
	phase           turnPhase
	mustKeepPreview bool // whether a message must still be posted to keep what a preview has shown of a turn that was stopped
	hasNews         bool // whether something new is not shown yet
	closeAttempts   int  // how many times the last edit was attempted, for a turn that ended without an answer
}

// A saidBlock is the text of one block of the model's answer.
type saidBlock struct {
	block int
	text  string
}

// A draftState says whether new text from a turn may be shown in its draft.
type draftState int

const (
	draftShown   draftState = iota // the draft shows new text, as soon as there is some
	draftUnknown                   // this process must first find out whether an earlier one has posted the draft
	draftClosed                    // nothing new from this turn will be shown
)

// A turnPhase says how far the turn itself has come.
type turnPhase int

const (
	turnRunning       turnPhase = iota
	turnEnded                   // it has ended or waits for people: its message will replace the draft
	turnEndedSilently           // it has ended without an answer, so no message will replace the draft
)

func newDraft(turn string, to bus.Address) *draft {
	return &draft{turn: turn, to: to, key: to.String(), openBlock: -1}
}

// apply updates the draft with an event from its turn.
func (x *draft) apply(e bus.Event) {
	x.phase = turnRunning // if the turn was parked, it has continued
	switch e.Type {
	case bus.TurnStart:
		x.blocks, x.omittedLength, x.openBlock = nil, 0, -1
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
		x.openBlock, x.omittedLength = -1, 0
		x.blocks = slices.DeleteFunc(x.blocks, func(s saidBlock) bool { return s.block >= e.Block })
	case bus.ToolStart, bus.ToolProgress:
		if e.Type == bus.ToolStart {
			x.toolCalls++
		}
		x.toolHasRun, x.toolText = true, e.Tool+" "+x.todo.update(e)
		x.toolLine = briefLine(x.toolText)
	default:
		return
	}
	x.hasNews = true
}

// appendText adds a piece of the model's answer. Text that is too long to be shown is only counted. What the model
// writes after a tool has run begins a new answer.
func (x *draft) appendText(block int, text string) {
	if x.toolHasRun {
		x.blocks, x.omittedLength, x.toolHasRun, x.toolText, x.toolLine = nil, 0, false, "", ""
		x.earlierAnswers++
	}
	size := 0
	for _, s := range x.blocks {
		size += len(s.text)
	}
	if size > draftBytes {
		x.omittedLength += utf8.RuneCountInString(text)
		return
	}
	if n := len(x.blocks); n == 0 || x.blocks[n-1].block != block {
		x.blocks = append(x.blocks, saidBlock{block: block})
	}
	x.blocks[len(x.blocks)-1].text += text
}

// length returns how many characters the model has written.
func (x *draft) length() int {
	n := x.omittedLength
	for _, s := range x.blocks {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// texts returns what the model has written, block by block.
func (x *draft) texts() (texts []string) {
	for _, s := range x.blocks {
		if text := strings.TrimSpace(strings.ToValidUTF8(s.text, "")); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// growth returns the answer so far, for channels on which a message grows with it.
func (x *draft) growth() channels.Growth {
	return channels.Growth{Turn: x.turn, Answer: x.earlierAnswers, Text: strings.Join(x.texts(), "\n\n"), Step: x.toolCalls, Doing: x.toolLine, Title: markup.OneLine(x.toolText, draftLine)}
}

// needsCall reports whether the platform must be called for a draft.
func (x *draft) needsCall() bool {
	switch {
	case x.state == draftUnknown:
		return true
	case x.mustKeepPreview:
		return x.state == draftShown
	case x.phase == turnEndedSilently && x.platformID != "":
		return true // even a closed draft must show that the turn was stopped
	case x.previewInterval > 0:
		return (x.hasNews || x.shown != "") && x.phase == turnRunning && x.state == draftShown
	}
	return x.hasNews && x.phase == turnRunning && x.state == draftShown
}

// markdown returns what a draft should show, as Markdown; "" while there is nothing.
func (x *draft) markdown() string {
	texts := x.texts()
	switch {
	case x.phase == turnEndedSilently && len(texts) > 0:
		texts = append(texts, "_(Stopped.)_")
	case x.phase == turnEndedSilently: // whoever stopped it is told "Stopped." in a message
		if x.toolLine != "" {
			texts = append(texts, "· "+x.toolLine)
		}
		texts = append(texts, "_(Stopped before there was an answer.)_")
	case x.toolLine != "":
		texts = append(append(texts, x.todo.markdown()...), "· "+x.toolLine)
	case len(texts) > 0:
		texts = append(texts, "…")
	}
	return strings.Join(texts, "\n\n")
}

// briefLine returns a short description of a tool call on one line, as Markdown.
func briefLine(about string) string {
	if utf8.RuneCountInString(about) > draftLine {
		about = string([]rune(about)[:draftLine]) + "…"
	}
	return markup.Verbatim(about)
}

// todoTool is the name of the tool whose progress text is the turn's list of tasks: a first line that says how far
// it has come, and one line for each task.
const todoTool = "todo_write"

// A todoList is a turn's newest list of tasks from todoTool; its text may arrive in pieces.
type todoList struct{ toolCall, text string }

// update adds a progress event from todoTool to the list, and returns how far the list is. For any other event, it
// returns the event's own text. The draft shows that on the line about the tool.
func (l *todoList) update(e bus.Event) string {
	if e.Tool != todoTool || e.Type != bus.ToolProgress {
		return e.Delta
	}
	if e.Call != l.toolCall {
		l.toolCall, l.text = e.Call, ""
	}
	l.text += e.Delta
	far, _, _ := strings.Cut(l.text, "\n")
	return far
}

// markdown returns the list of tasks as one paragraph, or nothing if it has no items.
func (l *todoList) markdown() []string {
	lines := strings.Split(l.text, "\n")[1:]
	if len(lines) == 0 {
		return nil
	}
	for i, line := range lines {
		lines[i] = "- " + markup.Verbatim(line)
	}
	return []string{strings.Join(lines, "\n")}
}
