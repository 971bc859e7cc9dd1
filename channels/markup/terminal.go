package markup

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"

	"parley/channels/markup/document"
)

// A Screen describes a terminal.
type Screen struct {
	Width int  // in columns; 0 means unknown, and then no line is broken
	Links bool // whether the terminal shows links, with their escape sequence (OSC 8)
}

// RenderTerminal renders Markdown for a terminal: lines are broken between words to fit the terminal's width, and
// the styles of each line are complete.
func (r *Renderer) RenderTerminal(md string, s Screen) string {
	pieces := r.renderIn(md, terminalDialect{screen: s}, 0, 0)
	if len(pieces) == 0 {
		return ""
	}
	return pieces[0].Text
}

// terminalDialect is the dialect of terminals: styles are escape sequences, each ended by its own counterpart, so
// that they may overlap. Other escape sequences are removed, even if they are written as a character reference
// (&#27;).
type terminalDialect struct{ screen Screen }

func (terminalDialect) size(text string) size { return sizeWithMarks(text) }

func (terminalDialect) largest(limit int) size { return limitedByLength(limit) }

func (terminalDialect) rendersLink(s document.Span, limit int) bool { return hasShortTarget(s, limit) }

func (terminalDialect) tableForm(document.Block) form { return formTable }

func (x terminalDialect) renderBlock(b document.Block) string {
	bars := strings.Repeat(quoteBar, b.Quotes())
	width := 0 // the width without what precedes the block
	if x.screen.Width > 0 {
		width = max(x.screen.Width-uniseg.StringWidth(b.Indent+bars), minWidth)
	}
	var lines []string
	switch b.Kind {
	case document.CodeBlock:
		lines = x.renderCode(b, width)
	case document.Table:
		lines = x.renderTable(b, width)
	case document.Rule:
		lines = []string{escFaint + strings.Repeat("─", min(max(width, 3), 40)) + escWeightEnd}
	case document.Heading:
		lines = x.renderParagraph(makeBold(b.Spans), width)
	default:
		lines = x.renderParagraph(b.Spans, width)
	}
	before := b.Indent
	if bars != "" {
		before += escFaint + bars + escWeightEnd
	}
	return before + strings.Join(lines, "\n"+before)
}

const (
	quoteBar = "│ "
	// minWidth is the minimum width, in characters, that a text gets, however narrow the terminal is.
	minWidth = 8
)

// renderCode renders a code block as lines: its language first, then its lines, indented. If a line is broken, its
// second part is indented like its first.
func (x terminalDialect) renderCode(b document.Block, width int) []string {
	const indent = "  "
	var lines []string
	if b.Info != "" {
		lines = append(lines, indent+escFaint+withoutControls(b.Info)+escWeightEnd)
	}
	for _, line := range b.Lines {
		line = withoutControls(strings.ReplaceAll(line, "\t", "    "))
		inner := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if len(inner) > (width-len(indent))/2 {
			inner = ""
		}
		for _, part := range breakCode(line[len(inner):], max(width-len(indent+inner), 0)) {
			lines = append(lines, indent+escCode+inner+part+escCodeEnd)
		}
	}
	return lines
}

// renderParagraph renders a text as lines, broken between words. Lines after a list's marker are indented as far as
// the first one.
func (x terminalDialect) renderParagraph(spans []document.Span, width int) []string {
	var lines []string
	for _, line := range linesOf(x.withTargets(spans)) {
		marker, rest := "", line
		if len(line) > 0 && line[0].Style == document.Marker {
			marker, rest = line[0].Text, line[1:]
		}
		indent := uniseg.StringWidth(marker)
		if indent > width/2 {
			indent = 0
		}
		for i, part := range breakSpans(rest, width-indent) {
			begin := strings.Repeat(" ", indent)
			if i == 0 {
				begin = marker
			}
			lines = append(lines, begin+inlineText(x, part))
		}
	}
	return lines
}

// renderTable renders a table as lines that fit the terminal: the text in wide columns is broken into lines. If
// that leaves too little room for a column, the rows are shown as records.
func (x terminalDialect) renderTable(b document.Block, width int) []string {
	cells := make([][][]document.Span, 0, len(b.Rows)+1)
	natural, words := make([]int, len(b.Head)), make([]int, len(b.Head))
	for i, row := range append([][]document.Cell{b.Head}, b.Rows...) {
		line := make([][]document.Span, len(natural))
		for c, cell := range row[:min(len(row), len(line))] {
			if i == 0 {
				cell = makeBold(cell)
			}
			line[c] = x.withTargets(cell)
			for _, l := range linesOf(line[c]) {
				text := document.Text(l, false)
				natural[c] = max(natural[c], uniseg.StringWidth(text), 1)
				words[c] = max(words[c], min(longestWord(text), maxWord))
			}
		}
		cells = append(cells, line)
	}
	widths, ok := fitColumns(natural, words, width-(len(natural)-1)*uniseg.StringWidth(barGap))
	if width > 0 && !ok {
		return x.renderRecords(b, width)
	}
	if width <= 0 {
		widths = natural
	}
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("─", w)
	}
	between := escFaint + strings.Join(rule, "─┼─") + escWeightEnd
	lines := x.renderRow(cells[0], widths, b.Align)
	lines = append(lines, between)
	for i, row := range cells[1:] {
		if i > 0 && sum(widths) < sum(natural) {
			lines = append(lines, between) // otherwise the end of a row would not be visible
		}
		before := len(lines)
		lines = append(lines, x.renderRow(row, widths, b.Align)...)
		if width > 0 && len(lines)-before > maxRowLines {
			return x.renderRecords(b, width)
		}
	}
	return lines
}

const (
	barGap    = " │ "
	minColumn = 6
	maxWord   = 16 // the length of a word that every column must have room for; longer words may be broken
	// maxRowLines is the maximum height of a row in lines, because the columns of higher rows are hard to follow.
	maxRowLines = 8
)

// renderRow renders a row of a table as as many lines as its highest cell needs.
func (x terminalDialect) renderRow(cells [][]document.Span, widths []int, align []document.Align) []string {
	parts := make([][][]document.Span, len(widths))
	height := 1
	for c, width := range widths {
		for _, line := range linesOf(cells[c]) {
			parts[c] = append(parts[c], breakSpans(line, width)...)
		}
		height = max(height, len(parts[c]))
	}
	lines := make([]string, height)
	for i := range lines {
		var b strings.Builder
		for c, width := range widths {
			var part []document.Span
			if i < len(parts[c]) {
				part = trimStart(trimEnd(parts[c][i]))
			}
			left, right := padding(uniseg.StringWidth(document.Text(part, false)), width, alignOf(align, c))
			b.WriteString(strings.Repeat(" ", left) + inlineText(x, part))
			if c+1 < len(widths) {
				b.WriteString(strings.Repeat(" ", right) + escFaint + barGap + escWeightEnd)
			}
		}
		lines[i] = b.String()
	}
	return lines
}

// renderRecords renders the rows of a table as records, with a line for each cell.
func (x terminalDialect) renderRecords(b document.Block, width int) []string {
	var lines []string
	for i, record := range recordParagraphs(b) {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, x.renderParagraph(recordSpans(record.Fields), width)...)
	}
	return lines
}

// withTargets returns spans with each link's target after its text, if the terminal shows no links.
func (x terminalDialect) withTargets(spans []document.Span) []document.Span {
	if x.screen.Links {
		return spans
	}
	var all []document.Span
	for i, s := range spans {
		s.Text = strings.ReplaceAll(s.Text, "\t", " ")
		all = append(all, s)
		if s.URL != "" && !s.IsBare() && (i+1 == len(spans) || spans[i+1].URL != s.URL) {
			all = append(all, document.Span{Text: " (" + strings.TrimPrefix(s.URL, "mailto:") + ")"})
		}
	}
	return all
}

// linesOf splits spans at line ends.
func linesOf(spans []document.Span) [][]document.Span {
	lines := [][]document.Span{nil}
	for _, s := range spans {
		for i, text := range strings.Split(s.Text, "\n") {
			if i > 0 {
				lines = append(lines, nil)
			}
			if text != "" {
				s.Text = text
				lines[len(lines)-1] = append(lines[len(lines)-1], s)
			}
		}
	}
	return lines
}

// breakSpans breaks spans into lines no wider than width, between words if possible.
func breakSpans(spans []document.Span, width int) [][]document.Span {
	var lines [][]document.Span
	rest := append([]document.Span(nil), spans...)
	for _, line := range breakText(document.Text(spans, false), width) {
		lines = append(lines, trimEnd(spansBefore(rest, len(line))))
		rest = spansFrom(rest, len(line))
	}
	return lines
}

// breakText breaks a text into lines no wider than width, each including the blanks at its end. A word that is
// longer than a line is broken where it has to be. Other words, including URLs, are never broken, because terminals
// recognize only whole URLs. Width 0 means no limit.
func breakText(text string, width int) []string {
	if width <= 0 || text == "" {
		return []string{text}
	}
	var lines []string
	start, used := 0, 0    // the start and the width of the current line
	word, wordUsed := 0, 0 // where the line could last be broken, and its width up to there
	may := false           // whether the line may be broken before the next character
	at, state, rest := 0, -1, text
	for rest != "" {
		var c string
		var bounds int
		c, rest, bounds, state = uniseg.StepString(rest, state)
		const wide = 2 // the width of characters in scripts without blanks
		w := bounds >> uniseg.ShiftWidth
		blank := strings.TrimSpace(c) == ""
		if may && w == wide {
			word, wordUsed = at, used
		}
		if used+w > width && used > 0 && !blank {
			cut, left := at, 0
			if word > start {
				cut, left = word, used-wordUsed
			}
			lines = append(lines, text[start:cut])
			start, used, word = cut, left, 0
		}
		at += len(c)
		used += w
		may = bounds&uniseg.MaskLine != uniseg.LineDontBreak
		if may && (blank || w == wide) {
			word, wordUsed = at, used
		}
	}
	return append(lines, text[start:])
}

func (terminalDialect) join(to *strings.Builder, frags []renderedBlock) { joinLines(to, frags) }

func (terminalDialect) defuse(plain string) string { return plain }

func (terminalDialect) linksInnermost() bool { return false }

func (terminalDialect) shownStyle(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

// Escape sequences that are used in several places.
const (
	escCode      = "\x1b[36m"
	escCodeEnd   = "\x1b[39m"
	escBold      = "\x1b[1m"
	escFaint     = "\x1b[2m"
	escWeightEnd = "\x1b[22m" // neither bold nor faint
	escLink      = "\x1b]8;;"
	escEnd       = "\x1b\\"
)

func (x terminalDialect) openMark(b *strings.Builder, m mark) {
	switch {
	case m.url != "":
		if x.screen.Links {
			b.WriteString(escLink + withoutControls(m.url) + escEnd)
		}
		b.WriteString("\x1b[4m")
	case m.style == document.Bold:
		b.WriteString(escBold)
	case m.style == document.Italic:
		b.WriteString("\x1b[3m")
	default:
		b.WriteString("\x1b[9m")
	}
}

func (x terminalDialect) closeMark(b *strings.Builder, m mark, _ rune) {
	switch {
	case m.url != "":
		b.WriteString("\x1b[24m")
		if x.screen.Links {
			b.WriteString(escLink + escEnd)
		}
	case m.style == document.Bold:
		b.WriteString(escWeightEnd)
	case m.style == document.Italic:
		b.WriteString("\x1b[23m")
	default:
		b.WriteString("\x1b[29m")
	}
}

func (terminalDialect) writeText(b *strings.Builder, s document.Span, _ bool) {
	if s.Style&document.Code != 0 {
		b.WriteString(escCode + withoutControls(s.Text) + escCodeEnd)
		return
	}
	b.WriteString(withoutControls(s.Text))
}

func (x terminalDialect) writeBareLink(b *strings.Builder, s document.Span) {
	if !x.screen.Links {
		b.WriteString(withoutControls(s.Text))
		return
	}
	x.openMark(b, mark{url: s.URL})
	b.WriteString(withoutControls(s.Text))
	x.closeMark(b, mark{url: s.URL}, 0)
}

// withoutControls removes control characters except line ends and tabs, because a terminal would act on them.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
