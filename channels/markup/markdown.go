package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// markdownDialect is the dialect of Markdown, in one of its flavors.
type markdownDialect struct{ flavor flavor }

// A flavor is a variant of Markdown that some reader understands.
type flavor uint8

const (
	flavorCommonMark flavor = iota
	// flavorDiscord has no tables, only three levels of headings, and no character references; the text must not notify
	// everyone.
	flavorDiscord
	// flavorSlackBlock is the Markdown in Slack's markdown blocks. There, <!here> notifies everyone too.
	flavorSlackBlock
)

func (markdownDialect) size(text string) size { return sizeWithMarks(text) }

func (markdownDialect) largest(limit int) size { return limitedByLength(limit) }

func (markdownDialect) rendersLink(s document.Span, limit int) bool { return hasShortTarget(s, limit) }

func (x markdownDialect) tableForm(table document.Block) form {
	if x.flavor == flavorDiscord {
		return columnsOrRecords(phoneWidth, table)
	}
	return formTable
}

func (x markdownDialect) renderBlock(b document.Block) string {
	text := x.renderUnindented(b)
	if x.flavor == flavorCommonMark || x.flavor == flavorSlackBlock && isQuoted(b) {
		return indented(b.Indent, text)
	}
	return text // quotes and code blocks must start at the beginning of a line
}

// renderUnindented renders a block without the indent of the list item around it.
func (x markdownDialect) renderUnindented(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock:
		return x.renderCode(b.Info, strings.Join(b.Lines, "\n"))
	case document.Table:
		if x.flavor == flavorDiscord {
			return x.renderCode("", layoutTable(b))
		}
		return x.renderTable(b)
	case document.Rule:
		if x.flavor == flavorDiscord {
			return ruleText
		}
		return "***"
	case document.Heading:
		text = x.renderHeading(b)
	default:
		text = inlineText(x, b.Spans)
		if x.flavor == flavorSlackBlock {
			text = strings.ReplaceAll(text, "\n", "  \n") // a plain line break would become a space
		}
	}
	if isQuoted(b) {
		return quoted(text)
	}
	return text
}

// renderHeading renders a heading; on a platform with three levels, deeper headings are bold text.
func (x markdownDialect) renderHeading(b document.Block) string {
	most := 6
	if x.flavor == flavorDiscord {
		most = 3
	}
	if b.Level > most || len(b.Spans) > 0 && b.Spans[0].Style == document.Marker {
		return inlineText(x, makeBold(b.Spans))
	}
	text := strings.ReplaceAll(inlineText(x, b.Spans), "\n", " ")
	if strings.HasSuffix(text, "#") {
		text = text[:len(text)-1] + `\#` // otherwise the # would count as one of the heading's marks
	}
	return strings.Repeat("#", b.Level) + " " + text
}

// renderCode renders a code block whose language is info. In flavors that may not understand a longer fence, it
// breaks up fences inside the code.
func (x markdownDialect) renderCode(info, code string) string {
	fence := "```"
	if x.flavor != flavorCommonMark {
		return fence + info + "\n" + breakFences(x.fitCode(code)) + "\n" + fence
	}
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + info + "\n" + code + "\n" + fence
}

// renderTable returns a table's rows as lines.
func (x markdownDialect) renderTable(b document.Block) string {
	var t strings.Builder
	row := func(cells []document.Cell) {
		for i := range b.Head {
			t.WriteString("| ")
			if i < len(cells) {
				t.WriteString(strings.ReplaceAll(inlineText(x, escapeCell(cells[i])), "\n", " "))
			}
			t.WriteString(" ")
		}
		t.WriteString("|")
	}
	row(b.Head)
	t.WriteString("\n")
	for i := range b.Head {
		t.WriteString("|" + [...]string{" --- ", " :-- ", " :-: ", " --: "}[alignOf(b.Align, i)])
	}
	t.WriteString("|")
	for _, cells := range b.Rows {
		t.WriteString("\n")
		row(cells)
	}
	return t.String()
}

// escapeCell escapes each | in the code of a cell, because it would end the cell even there.
func escapeCell(c document.Cell) []document.Span {
	spans := make([]document.Span, len(c))
	for i, s := range c {
		if s.Style&document.Code != 0 {
			s.Text = strings.ReplaceAll(s.Text, "|", `\|`)
		}
		spans[i] = s
	}
	return spans
}

func (markdownDialect) join(to *strings.Builder, frags []renderedBlock) { joinLines(to, frags) }

func (x markdownDialect) defuse(plain string) string {
	if x.flavor == flavorDiscord {
		return defuseMentions(plain)
	}
	return plain
}

func (markdownDialect) linksInnermost() bool { return false }

func (markdownDialect) shownStyle(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

// markdownMark returns the characters that begin and end a style.
func (m mark) markdownMark() string {
	switch m.style {
	case document.Bold:
		return "**"
	case document.Italic:
		return "*"
	}
	return "~~"
}

func (markdownDialect) openMark(b *strings.Builder, m mark) {
	if m.url != "" {
		b.WriteString("[")
		return
	}
	b.WriteString(m.markdownMark())
}

func (x markdownDialect) closeMark(b *strings.Builder, m mark, _ rune) {
	if m.url == "" {
		b.WriteString(m.markdownMark())
		return
	}
	target := strings.NewReplacer("(", "%28", ")", "%29").Replace(m.url)
	if x.flavor == flavorCommonMark {
		target = strings.ReplaceAll(target, "&", "&amp;")
	}
	b.WriteString("](" + target + ")")
}

func (x markdownDialect) writeText(b *strings.Builder, s document.Span, lineStart bool) {
	switch {
	case s.Style == document.Marker:
		b.WriteString(strings.ReplaceAll(s.Text, "•", "-"))
	case s.Style&document.Code != 0:
		writeCode(b, x.fitCode(s.Text))
	case s.Emoji != "" && x.flavor == flavorSlackBlock:
		b.WriteString(":" + s.Emoji + ":")
	default:
		text := s.Text
		if x.flavor != flavorCommonMark {
			text = defuseMentions(text)
		}
		x.escape(b, text, lineStart, s.URL != "")
	}
}

// fitCode returns the text of a code span. For Slack it defuses the mentions in it, because Slack would notify
// people even from within code.
func (x markdownDialect) fitCode(text string) string {
	if x.flavor != flavorSlackBlock || !strings.Contains(text, "<") {
		return text
	}
	for _, call := range []string{"!channel", "!here", "!everyone", "!subteam", "@", "#"} {
		text = strings.ReplaceAll(text, "<"+call, "<"+zeroWidth+call)
	}
	return text
}

func (x markdownDialect) writeBareLink(b *strings.Builder, s document.Span) {
	switch {
	case s.IsMail() && x.flavor != flavorCommonMark:
		x.escape(b, s.Text, false, false)
	case x.flavor == flavorSlackBlock:
		x.openMark(b, mark{url: s.URL})
		x.escape(b, s.Text, false, true)
		x.closeMark(b, mark{url: s.URL}, 0)
	case needsBrackets(b.String(), s.Text):
		b.WriteString("<" + s.Text + ">")
	default:
		b.WriteString(s.Text)
	}
}

// needsBrackets reports whether a link whose text is its target would be misread without brackets around it. before
// is the text in front of the link.
func needsBrackets(before, link string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return strings.Contains(link, ":") &&
		(unicode.IsLetter(last) || unicode.IsDigit(last) || strings.Contains(link, "__") || strings.ContainsAny(link, "*~[]()") ||
			!strings.HasPrefix(link, "http"))
}

// writeCode writes a code span with more backticks in a row than the text contains.
func writeCode(b *strings.Builder, text string) {
	ticks := "`"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	padded := strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") && strings.Trim(text, " ") != ""
	if len(ticks) > 1 || padded {
		text = " " + text + " "
	}
	b.WriteString(ticks + text + ticks)
}

// escape writes the text s with backslashes, so that no character in it is read as a mark. lineStart says that s
// begins a line, inLink that it is the text of a link.
func (x markdownDialect) escape(b *strings.Builder, s string, lineStart, inLink bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '_' && x.flavor != flavorDiscord && i > 0 && i+1 < len(s) && isWord(s[i-1]) && isWord(s[i+1]):
			// Inside a word, an underscore is not a mark, and may belong to an emoji's name.
		case strings.IndexByte("\\*_~`|[", c) >= 0, inLink && c == ']':
			b.WriteByte('\\')
		case lineStart && (c == '#' || c == '>' || c == '-' || c == '+'):
			b.WriteByte('\\')
		case lineStart && isDigit(c):
			j := i
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			b.WriteString(s[i:j])
			if j < len(s) && (s[j] == '.' || s[j] == ')') {
				b.WriteByte('\\')
				b.WriteByte(s[j])
				j++
			}
			i, lineStart = j-1, false
			continue
		case x.flavor != flavorDiscord && x.escapeReference(b, s[i:], lineStart):
			lineStart = false
			continue
		}
		b.WriteByte(c)
		lineStart = c == '\n' || lineStart && c == ' '
	}
}

// escapeReference writes the first character of s, escaped, if s would otherwise be read as a tag, a character
// reference, the line below a heading or below a table's header, or an emoji's name. It returns false if it wrote
// nothing.
func (x markdownDialect) escapeReference(b *strings.Builder, s string, lineStart bool) bool {
	switch c := s[0]; {
	case c == '<' && x.flavor == flavorSlackBlock:
		b.WriteString("&lt;")
	case c == '&' && len(s) > 1 && (s[1] == '#' || isWord(s[1])):
		if x.flavor == flavorSlackBlock {
			b.WriteString("&amp;")
			break
		}
		b.WriteString(`\&`)
	case c == '<', lineStart && c == '=', lineStart && c == ':' && strings.HasPrefix(s, ":-"):
		b.WriteByte('\\')
		b.WriteByte(c)
	case c == ':' && x.flavor == flavorCommonMark:
		_, _, named := document.ReadEmoji(0, s)
		if !named {
			return false
		}
		b.WriteString(`\:`)
	default:
		return false
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
