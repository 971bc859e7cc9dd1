package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// slackDialect is the dialect of Slack's mrkdwn. It can escape only & < >, so a literal star or underscore may be
// read as a mark.
type slackDialect struct{}

func (slackDialect) size(text string) size { return sizeWithMarks(text) }

func (slackDialect) largest(limit int) size { return limitedByLength(limit) }

func (slackDialect) rendersLink(s document.Span, limit int) bool { return hasShortTarget(s, limit) }

func (slackDialect) tableForm(table document.Block) form { return columnsOrRecords(deskWidth, table) }

func (x slackDialect) renderBlock(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock:
		return "```\n" + breakFences(escapeSlack(strings.Join(b.Lines, "\n"))) + "\n```"
	case document.Table:
		return "```\n" + breakFences(escapeSlack(layoutTable(b))) + "\n```"
	case document.Rule:
		return ruleText
	case document.Heading:
		text = inlineText(x, makeBold(b.Spans))
	default:
		text = inlineText(x, b.Spans)
	}
	if isQuoted(b) {
		return quoted(text)
	}
	return text
}

// renderRich renders a block for Slack's markdown block. It also renders a table as code, for messages that already
// contain a table.
func (slackDialect) renderRich(b document.Block) richText {
	x := markdownDialect{flavorSlackBlock}
	switch b.Kind {
	case document.Table:
		return richText{text: x.renderCode("", layoutTable(b)), table: richTable(b)}
	case document.Heading:
		return richText{text: x.renderBlock(b), isBetter: true}
	case document.CodeBlock:
		return richText{text: x.renderBlock(b), isBetter: b.Info != ""}
	}
	return richText{text: x.renderBlock(b)}
}

const (
	// maxRichLength is the maximum length of the text in a message's markdown blocks, in UTF-16 units.
	maxRichLength = 12_000
	// maxExpanded is a little less than the number of blocks that Slack accepts in a message, because it turns one
	// markdown block into several.
	maxExpanded = 40
	// maxRichRows and maxRichColumns are the maximum numbers of rows, including the header, and of columns in one
	// of Slack's tables.
	maxRichRows, maxRichColumns = 100, 20
)

// joinRich implements richDialect: it joins the blocks in a piece, with the longest table as a real table.
func (slackDialect) joinRich(frags []renderedBlock) string {
	var parts []richPart
	longest := -1
	better := false
	for i := 0; i < len(frags); {
		p := richPart{renderedBlock: frags[i], count: 1}
		if rows := recordsOfOneTable(frags[i:]); len(rows) > 0 {
			p.rich.table = richTable(tableOf(rows))
			p.count = len(rows)
		}
		if n := len(p.rich.table); n > 0 && (longest < 0 || n > len(parts[longest].rich.table)) {
			longest = len(parts)
		}
		for _, f := range frags[i+1 : i+p.count] {
			p.rich.text += "\n\n" + f.rich.text
		}
		better = better || p.rich.isBetter || p.rich.table != ""
		parts = append(parts, p)
		i += p.count
	}
	if !better || len(parts) > maxExpanded {
		return ""
	}
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == 0:
		case p.container != nil && parts[i-1].container != nil && !p.needsGap:
			b.WriteString("\n")
		default: // otherwise one block would continue the other
			b.WriteString("\n\n")
		}
		if i == longest {
			b.WriteString(p.rich.table)
		} else {
			b.WriteString(p.rich.text)
		}
	}
	if utf16Length(b.String()) > maxRichLength {
		return ""
	}
	return b.String()
}

// A richPart is one block in a piece, or all rows of one table that are shown as records.
type richPart struct {
	renderedBlock
	count int // the number of rendered blocks that it contains
}

// richTable renders a table in the form in which Slack shows tables; "" if it is too large for that.
func richTable(b document.Block) string {
	if len(b.Rows) >= maxRichRows || len(b.Head) > maxRichColumns {
		return ""
	}
	return markdownDialect{flavorSlackBlock}.renderTable(b)
}

// recordsOfOneTable returns the rows of the table whose records are at the beginning of frags; none if the first
// block is not a record, or only a part of one.
func recordsOfOneTable(frags []renderedBlock) (rows []*document.Block) {
	for _, f := range frags {
		if f.record == nil || len(rows) > 0 && &f.record.Head[0] != &rows[0].Head[0] {
			break
		}
		rows = append(rows, f.record)
	}
	return rows
}

// tableOf returns a table with these rows.
func tableOf(rows []*document.Block) document.Block {
	table := *rows[0]
	table.Rows = nil
	for _, row := range rows {
		table.Rows = append(table.Rows, row.Rows...)
	}
	return table
}

func (slackDialect) join(to *strings.Builder, frags []renderedBlock) { joinLines(to, frags) }

func (slackDialect) defuse(plain string) string {
	return defuseMentions(strings.ReplaceAll(plain, "<!", "<"+zeroWidth+"!"))
}

func (slackDialect) linksInnermost() bool { return true }

func (slackDialect) shownStyle(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

// slackMark returns the character that begins and ends a style.
func (m mark) slackMark() string {
	switch m.style {
	case document.Bold:
		return "*"
	case document.Italic:
		return "_"
	}
	return "~"
}

// openMark writes the beginning of a mark. If a word precedes the mark, it puts an invisible character in between,
// because Slack sees no marks inside a word.
func (slackDialect) openMark(b *strings.Builder, m mark) {
	if m.url != "" {
		b.WriteString("<" + escapeSlack(m.url) + "|")
		return
	}
	if last, _ := utf8.DecodeLastRuneInString(b.String()); unicode.IsLetter(last) || unicode.IsDigit(last) {
		b.WriteString(zeroWidth)
	}
	b.WriteString(m.slackMark())
}

func (slackDialect) closeMark(b *strings.Builder, m mark, next rune) {
	if m.url != "" {
		b.WriteString(">")
		return
	}
	b.WriteString(m.slackMark())
	if unicode.IsLetter(next) || unicode.IsDigit(next) {
		b.WriteString(zeroWidth)
	}
}

// writeText writes a span's text. It writes emojis by their names, because the workspace may have its own pictures
// for them.
func (slackDialect) writeText(b *strings.Builder, s document.Span, _ bool) {
	if s.Emoji != "" {
		b.WriteString(":" + s.Emoji + ":")
		return
	}
	text := escapeSlack(s.Text)
	if s.Style&document.Code != 0 && !strings.Contains(text, "`") && s.URL == "" {
		b.WriteString("`" + text + "`")
		return
	}
	b.WriteString(defuseMentions(separateTildes(text)))
}

// separateTildes puts an invisible character between a literal ~ and the word after it if a later ~ would end the
// mark: Slack strikes out text between single ~.
func separateTildes(s string) string {
	if strings.Count(s, "~") < 2 {
		return s
	}
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '~' || !startsStrike(s, i) {
			continue
		}
		end := endOfStrike(s, i+1)
		if end < 0 {
			continue
		}
		b.WriteString(s[done:i+1] + zeroWidth + s[i+1:end+1])
		done, i = end+1, end
	}
	return b.String() + s[done:]
}

// startsStrike reports whether the ~ at this byte position could begin struck-out text, because it is at the
// beginning of a word.
func startsStrike(s string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+1:])
	return !unicode.IsLetter(before) && !unicode.IsDigit(before) && before != '~' && !unicode.IsSpace(after) && after != '~'
}

// endOfStrike returns the byte position of the next ~ on the line if that is at the end of a word; otherwise -1.
func endOfStrike(s string, from int) int {
	line, _, _ := strings.Cut(s[from:], "\n")
	i := strings.IndexByte(line, '~')
	if i < 1 || line[i-1] == ' ' {
		return -1
	}
	return from + i
}

// writeBareLink writes an email address as text, which Slack itself turns into a link, and any other link in
// brackets.
func (slackDialect) writeBareLink(b *strings.Builder, s document.Span) {
	if s.IsMail() {
		b.WriteString(escapeSlack(s.Text))
		return
	}
	b.WriteString("<" + escapeSlack(s.Text) + ">")
}

func escapeSlack(s string) string { return escape(s, "&<>") }

// defuseMentions puts an invisible character between the @ and words such as here, so that they don't notify
// everybody.
func defuseMentions(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	for _, all := range []string{"everyone", "here", "channel"} {
		s = strings.ReplaceAll(s, "@"+all, "@"+zeroWidth+all)
	}
	return s
}

// breakFences puts invisible characters into each fence (```) inside a code block, between its
// backticks, so that it does not end the block.
func breakFences(s string) string {
	return strings.ReplaceAll(s, "```", "``"+zeroWidth+"`")
}
