package console

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
)

const (
	promptText  = "› "
	workingText = "… working; Ctrl-C stops it"
	// mostTypedLines is how much of a long message is in sight while it is typed.
	mostTypedLines = 8
)

// A prompt is the window's content: what is going on, and the editor of the line
// that is typed. The editor is a library's; here stands what the keys of a
// conversation mean.
type prompt struct {
	window  *window
	editor  textarea.Model
	history history

	now      passage
	question string // what waits for the person's word
	busy     bool
	over     bool
}

func newPrompt(w *window, earlier []string) *prompt {
	e := textarea.New()
	e.ShowLineNumbers = false
	e.SetVirtualCursor(false)
	e.SetStyles(textarea.Styles{Cursor: e.Styles().Cursor})
	e.DynamicHeight, e.MinHeight, e.MaxHeight, e.MaxContentHeight = true, 1, mostTypedLines, 100_000
	e.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("ctrl+j", "alt+enter", "shift+enter"))
	// The terminal's own paste and copy are better than a program's view of a clipboard.
	e.KeyMap.Paste, e.KeyMap.CopySelection = key.NewBinding(key.WithDisabled()), key.NewBinding(key.WithDisabled())
	e.Focus()
	p := &prompt{window: w, editor: e, history: newHistory(earlier)}
	p.label(promptText)
	return p
}

// label sets what stands before the line that is typed.
func (p *prompt) label(text string) {
	width := len([]rune(text))
	p.editor.SetPromptFunc(width, func(at textarea.PromptInfo) string {
		if at.LineNumber == 0 {
			return text
		}
		return strings.Repeat(" ", width)
	})
	p.editor.SetWidth(int(p.window.width.Load()))
}

// Init starts nothing: a cursor that blinks is the terminal's own.
func (p *prompt) Init() tea.Cmd { return nil }

// Update takes in a key, news of the turn, or a new size.
func (p *prompt) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.window.resized(msg.Width, msg.Height)
		p.editor.SetWidth(msg.Width)
		return p, nil
	case passage:
		p.now = msg
		return p, nil
	case waiting:
		p.busy = bool(msg)
		return p, nil
	case asking:
		if p.question = string(msg); p.question != "" {
			p.label(answerText)
		} else {
			p.label(promptText)
		}
		return p, nil
	case closing:
		p.over = true
		return p, tea.Quit
	case tea.KeyPressMsg:
		if done, cmd := p.key(msg.String()); done {
			return p, cmd
		}
	}
	var cmd tea.Cmd
	p.editor, cmd = p.editor.Update(msg)
	return p, cmd
}

// key does what a key means to the conversation; false leaves it to the editor.
func (p *prompt) key(name string) (done bool, cmd tea.Cmd) {
	switch name {
	case "enter":
		p.send()
	case "ctrl+c":
		if p.editor.Length() > 0 {
			p.show("")
			break
		}
		select {
		case p.window.interrupts <- struct{}{}:
		default: // one is on its way
		}
	case "ctrl+d":
		if p.editor.Length() > 0 {
			return false, nil
		}
		p.over = true
		return true, tea.Quit
	case "up":
		if p.editor.Line() > 0 || p.editor.LineInfo().RowOffset > 0 {
			return false, nil
		}
		if line, ok := p.history.previous(p.editor.Value()); ok {
			p.show(line)
		}
	case "down":
		if p.editor.Line() < p.editor.LineCount()-1 || p.editor.LineInfo().RowOffset < p.editor.LineInfo().Height-1 {
			return false, nil
		}
		if line, ok := p.history.next(); ok {
			p.show(line)
		}
	default:
		return false, nil
	}
	return true, nil
}

// send hands over what was typed. If nobody takes it now it stays in the line.
func (p *prompt) send() {
	text := strings.TrimSpace(p.editor.Value())
	if text == "" {
		return
	}
	select {
	case p.window.lines <- text:
		p.history.add(text)
		p.show("")
	default:
	}
}

// show puts a text into the line, to be edited.
func (p *prompt) show(text string) {
	p.editor.SetValue(text)
	p.editor.MoveToEnd()
}

// View draws the window. At its end nothing of it stays.
func (p *prompt) View() tea.View {
	if p.over {
		return tea.NewView("")
	}
	asked := p.window.linesOf(passage{text: p.question})
	lines := p.window.linesOf(p.now.end())
	if most := max(int(p.window.height.Load())-p.window.mostAbove()-p.editor.Height()-len(asked), 1); len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	if p.busy && len(lines) == 0 {
		lines = []string{dimOn + workingText + dimOff}
	}
	lines = append(lines, asked...)
	v := tea.NewView(strings.Join(append(lines, p.editor.View()), "\n"))
	if v.Cursor = p.editor.Cursor(); v.Cursor != nil {
		v.Cursor.Y += len(lines)
	}
	return v
}

// mostRemembered is how many lines can be called back.
const mostRemembered = 500

// A history is what was typed before, the newest last, and the place in it to
// which the arrow keys have gone.
type history struct {
	lines []string
	at    int    // an index of lines; len(lines) is the line that is being typed
	typed string // that line
}

func newHistory(earlier []string) history {
	var h history
	for _, line := range earlier {
		h.add(line)
	}
	return h
}

// add remembers a line, but for repetitions.
func (h *history) add(line string) {
	if n := len(h.lines); n == 0 || h.lines[n-1] != line {
		h.lines = append(h.lines, line)
	}
	if len(h.lines) > mostRemembered {
		h.lines = h.lines[1:]
	}
	h.at, h.typed = len(h.lines), ""
}

// previous is the line before; what is being typed is kept for the way forth.
func (h *history) previous(typing string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.lines) {
		h.typed = typing
	}
	h.at--
	return h.lines[h.at], true
}

// next is the line after, in the end what was being typed.
func (h *history) next() (string, bool) {
	if h.at == len(h.lines) {
		return "", false
	}
	if h.at++; h.at == len(h.lines) {
		return h.typed, true
	}
	return h.lines[h.at], true
}
