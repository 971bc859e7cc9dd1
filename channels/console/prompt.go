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
	// mostTypedLines is how many lines of a long message are visible while it is typed.
	mostTypedLines = 8
)

// A prompt is the content of the window at the lower end of the terminal: what the turn is doing,
// and the editor of the line that is typed. The editor comes from a library; this file says what
// keys mean in a conversation.
type prompt struct {
	window  *window
	editor  textarea.Model
	history history

	unfinished passage // the text of the turn that is still growing
	question   string  // the question about the request that waits for the person's decision; "" if none does
	status     string  // says what goes on; "" if nothing does
	over       bool    // whether the conversation is over
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
	p.setPrefix(promptText)
	return p
}

// setPrefix sets the text to the left of the typed line.
func (p *prompt) setPrefix(text string) {
	width := len([]rune(text))
	p.editor.SetPromptFunc(width, func(at textarea.PromptInfo) string {
		if at.LineNumber == 0 {
			return text
		}
		return strings.Repeat(" ", width)
	})
	p.editor.SetWidth(int(p.window.width.Load()))
}

// Init implements tea.Model and starts nothing: the terminal itself makes the cursor blink.
func (p *prompt) Init() tea.Cmd { return nil }

// Update implements tea.Model: it handles a key, news of the turn, or a new size.
func (p *prompt) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.window.setSize(msg.Width, msg.Height)
		p.editor.SetWidth(msg.Width)
		return p, nil
	case passage:
		p.unfinished = msg
		return p, nil
	case statusMsg:
		p.status = string(msg)
		return p, nil
	case questionMsg:
		if p.question = string(msg); p.question != "" {
			p.setPrefix(answerText)
		} else {
			p.setPrefix(promptText)
		}
		return p, nil
	case closeMsg:
		p.over = true
		return p, tea.Quit
	case tea.KeyPressMsg:
		if done, cmd := p.handleKey(msg.String()); done {
			return p, cmd
		}
	}
	var cmd tea.Cmd
	p.editor, cmd = p.editor.Update(msg)
	return p, cmd
}

// handleKey does what a key means in a conversation, and reports whether it has done so (done);
// otherwise the editor should handle the key.
func (p *prompt) handleKey(name string) (done bool, cmd tea.Cmd) {
	switch name {
	case "enter":
		p.send()
	case "ctrl+c":
		if p.editor.Length() > 0 {
			p.setText("")
			break
		}
		select {
		case p.window.interrupts <- struct{}{}:
		default: // an interrupt is already on its way
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
			p.setText(line)
		}
	case "down":
		if p.editor.Line() < p.editor.LineCount()-1 || p.editor.LineInfo().RowOffset < p.editor.LineInfo().Height-1 {
			return false, nil
		}
		if line, ok := p.history.next(); ok {
			p.setText(line)
		}
	default:
		return false, nil
	}
	return true, nil
}

// send hands the typed text to the conversation. If the queue is full, the text stays in
// the line.
func (p *prompt) send() {
	text := strings.TrimSpace(p.editor.Value())
	if text == "" {
		return
	}
	select {
	case p.window.lines <- text:
		p.history.add(text)
		p.setText("")
	default:
	}
}

// setText puts a text into the line, for editing.
func (p *prompt) setText(text string) {
	p.editor.SetValue(text)
	p.editor.MoveToEnd()
}

// View implements tea.Model: it draws the window, or nothing once the conversation is over.
func (p *prompt) View() tea.View {
	if p.over {
		return tea.NewView("")
	}
	asked := p.window.linesOf(passage{text: p.question})
	lines := p.window.linesOf(p.unfinished.tail())
	if most := max(int(p.window.height.Load())-p.window.linesPerPrint()-p.editor.Height()-len(asked), 1); len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	if p.status != "" && len(lines) == 0 {
		lines = p.window.linesOf(passage{text: p.status, dim: true})
	}
	lines = append(lines, asked...)
	v := tea.NewView(strings.Join(append(lines, p.editor.View()), "\n"))
	if v.Cursor = p.editor.Cursor(); v.Cursor != nil {
		v.Cursor.Y += len(lines)
	}
	return v
}

// mostRemembered is how many typed lines the arrow keys can bring back.
const mostRemembered = 500

// A history is the lines typed before, the newest last, and the position to which the arrow
// keys have moved.
type history struct {
	lines []string
	at    int    // an index of lines; len(lines) is the line that is being typed
	typed string // the line that was being typed when the arrow keys left it
}

func newHistory(earlier []string) history {
	var h history
	for _, line := range earlier {
		h.add(line)
	}
	return h
}

// add appends a line, unless it repeats the last one.
func (h *history) add(line string) {
	if n := len(h.lines); n == 0 || h.lines[n-1] != line {
		h.lines = append(h.lines, line)
	}
	if len(h.lines) > mostRemembered {
		h.lines = h.lines[1:]
	}
	h.at, h.typed = len(h.lines), ""
}

// previous returns the line before the present position, and false at the first. It keeps
// the line that is being typed, so that next can bring it back.
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

// next returns the line after the present position, at last the one that was being typed.
func (h *history) next() (string, bool) {
	if h.at == len(h.lines) {
		return "", false
	}
	if h.at++; h.at == len(h.lines) {
		return h.typed, true
	}
	return h.lines[h.at], true
}
