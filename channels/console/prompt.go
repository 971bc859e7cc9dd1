package console

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"parley/channels/console/typedfiles"
)

const (
	promptText  = "› "
	workingText = "… working; Ctrl-C stops it"
	// maxTypedLines is how many lines of a long message are visible while it is being typed.
	maxTypedLines = 8
)

// A prompt is the line that is being typed. Its editor comes from a library; this file defines what keys mean in a
// conversation.
type prompt struct {
	window  *window
	editor  textarea.Model
	history history
	width   int

	commands []string // the commands that Tab completes
	search   *search  // searches previously typed lines; nil while nobody searches
}

func newPrompt(w *window, cfg Config) *prompt {
	e := textarea.New()
	e.ShowLineNumbers = false
	e.SetVirtualCursor(false)
	e.SetStyles(textarea.Styles{Cursor: e.Styles().Cursor})

	e.DynamicHeight, e.MinHeight, e.MaxHeight, e.MaxContentHeight = true, 1, maxTypedLines, 100_000
	e.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("ctrl+j", "alt+enter", "shift+enter"))
	// The terminal's own paste and copy are better than a program's access to a clipboard.
	e.KeyMap.Paste, e.KeyMap.CopySelection = key.NewBinding(key.WithDisabled()), key.NewBinding(key.WithDisabled())
	e.Focus()
	p := &prompt{window: w, editor: e, history: newHistory(cfg.EarlierLines), commands: append(localCommands(), cfg.Commands...)}
	p.width = w.width
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
	p.editor.SetWidth(p.width)
}

// Init implements tea.Model. It starts nothing: the terminal itself makes the cursor blink.
func (p *prompt) Init() tea.Cmd { return nil }

// Update implements tea.Model: it handles a key, or a message to the prompt.
func (p *prompt) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := p.handle(msg)
	rows, cursor := p.rowsAndCursor()
	p.window.showTyped(rows, cursor, p.helpText())
	return p, cmd
}

// rowsAndCursor returns the line as rows of the terminal, and where the cursor is in them.
func (p *prompt) rowsAndCursor() (rows []string, cursor position) {
	rows = strings.Split(p.editor.View(), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	cursor = position{row: len(rows) - 1}
	if c := p.editor.Cursor(); c != nil {
		cursor = position{c.Y, c.X}
	}
	return rows, cursor
}

// helpText returns a text that helps with the line as it is typed now: what it may become, or how the search is
// going; "" if there is none.
func (p *prompt) helpText() string {
	if p.search != nil {
		found := "no match"
		if p.search.foundLine >= 0 {
			found = "Ctrl-R: older match · Enter: use it · Esc: cancel"
		}
		return "search for “" + p.search.words + "” · " + found
	}
	_, may := wordToComplete(p.editor.Value(), p.commands)
	return strings.Join(may, " · ")
}

// handle does what a message to the prompt asks for.
func (p *prompt) handle(msg tea.Msg) (cmd tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg: // the library does not know the size, because it draws nothing
		return nil
	case sizeMsg:
		if width, height, ok := p.window.size(); ok {
			p.width = width
			p.editor.MaxHeight = max(min(maxTypedLines, height/3), 1)
			p.editor.SetWidth(width)
			p.window.resize(width, height)
		}
		return nil
	case questionMsg:
		if msg != "" {
			p.setPrefix(answerText)
		} else {
			p.setPrefix(promptText)
		}
		return nil
	case closeMsg:
		return tea.Quit
	case putBackMsg:
		if p.editor.Length() == 0 {
			p.setText(string(msg))
		}
		return nil
	case tea.PasteMsg:
		p.paste(msg.Content)
		return nil
	case tea.KeyPressMsg:
		if done, cmd := p.handleKey(msg.String()); done {
			return cmd
		}
	}
	p.editor, cmd = p.editor.Update(msg)
	return cmd
}

// handleKey does what a key means in a conversation. done is false if the key has no such meaning; the editor
// should then handle it.
func (p *prompt) handleKey(name string) (done bool, cmd tea.Cmd) {
	if p.search != nil && p.searchKey(name) {
		return true, nil
	}
	switch name {
	case "enter":
		p.send()
	case "tab":
		line := p.editor.Value()
		at, may := wordToComplete(line, p.commands)
		p.setText(line[:at] + complete(line[at:], may))
	case "ctrl+r":
		p.search = &search{foundLine: len(p.history.lines), lineBefore: p.editor.Value()}
		p.showFound(len(p.history.lines))
	case "ctrl+l":
		p.window.clear()
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

// searchKey does what a key means during a search. It returns false for a key that ends the search and has its
// usual meaning.
func (p *prompt) searchKey(name string) bool {
	s := p.search
	switch name {
	case "ctrl+r":
		if s.foundLine >= 0 {
			p.showFound(s.foundLine)
		}
	case "backspace":
		words := []rune(s.words)
		s.words = string(words[:max(len(words)-1, 0)])
		p.showFound(len(p.history.lines))
	case "esc", "ctrl+c", "ctrl+g":
		p.setText(s.lineBefore)
		p.search = nil
	case "enter":
		p.search = nil
	default:
		if name == "space" {
			name = " "
		}
		if len([]rune(name)) != 1 {
			p.search = nil
			return false
		}
		s.words += name
		p.showFound(len(p.history.lines))
	}
	return true
}

// showFound puts the newest line before an index that contains the search's words into the editor. If there is none,
// the editor keeps its text.
func (p *prompt) showFound(before int) {
	s := p.search
	if s.foundLine = s.find(p.history.lines, before); s.foundLine >= 0 && s.words != "" {
		p.setText(p.history.lines[s.foundLine])
	}
}

// paste puts a pasted text into the line. Only a file that was dropped onto the terminal becomes a name of a file;
// see typedfiles.Pasted.
func (p *prompt) paste(text string) {
	text = typedfiles.Pasted(text)
	if strings.HasSuffix(p.editor.Value(), "@") { // typed before a file was dropped
		text = strings.TrimPrefix(text, "@")
	}
	p.editor, _ = p.editor.Update(tea.PasteMsg{Content: text})
}

// send passes the typed text on to the conversation. If the queue is full, the text stays in the line.
func (p *prompt) send() {
	typed := p.editor.Value()
	text := strings.TrimSpace(typed)
	if text == "" {
		return
	}
	p.setText("")
	rows, cursor := p.rowsAndCursor()
	if !p.window.send(text, rows, cursor) {
		p.setText(typed)
		return
	}
	p.history.add(text)
}

// setText puts a text into the line, for editing.
func (p *prompt) setText(text string) {
	p.editor.SetValue(text)
	p.editor.MoveToEnd()
}

// View implements tea.Model. It shows nothing, because the window draws itself.
func (p *prompt) View() tea.View { return tea.NewView("") }

// maxRemembered is the maximum number of typed lines that the arrow keys can bring back.
const maxRemembered = 500

// A history holds the previously typed lines, newest last, and the position to which the arrow keys have moved.
type history struct {
	lines      []string
	current    int    // an index of lines; len(lines) means the line that is being typed
	unsentLine string // the line that was being typed when the arrow keys left it
}

func newHistory(earlier []string) history {
	var h history
	for _, line := range earlier {
		h.add(line)
	}
	return h
}

// add appends a line, unless it repeats the last one, and moves to the end. Of too many lines, it forgets the
// oldest.
func (h *history) add(line string) {
	if n := len(h.lines); n == 0 || h.lines[n-1] != line {
		h.lines = append(h.lines, line)
	}
	if len(h.lines) > maxRemembered {
		h.lines = h.lines[1:]
	}
	h.current, h.unsentLine = len(h.lines), ""
}

// previous returns the line before the current position, and false at the first line. It keeps the line that is
// being typed, so that next can bring it back.
func (h *history) previous(typing string) (string, bool) {
	if h.current == 0 {
		return "", false
	}
	if h.current == len(h.lines) {
		h.unsentLine = typing
	}
	h.current--
	return h.lines[h.current], true
}

// next moves on to the next line and returns it; the last one is the line that was being typed. It returns false if
// there is no next line.
func (h *history) next() (string, bool) {
	if h.current == len(h.lines) {
		return "", false
	}
	if h.current++; h.current == len(h.lines) {
		return h.unsentLine, true
	}
	return h.lines[h.current], true
}
