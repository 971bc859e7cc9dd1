package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// slack is Slack's mrkdwn. It has no escapes but for & < >, so a star or an
// underscore that is meant as such may be read as a mark.
type slack struct{}

func (slack) size(text string) size { return inUnits(text) }

func (slack) most(limit int) size { return limitedByLength(limit) }

func (slack) links(s document.Span, limit int) bool { return isShort(s, limit) }

func (slack) form(table document.Block) form { return columnsUpTo(deskWidth, table) }

func (x slack) block(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock:
		return "```\n" + partTicks(escapeSlack(strings.Join(b.Lines, "\n"))) + "\n```"
	case document.Table:
		return "```\n" + partTicks(escapeSlack(layout(b))) + "\n```"
	case document.Rule:
		return ruleText
	case document.Heading:
		text = inlineText(x, inBold(b.Spans))
	default:
		text = inlineText(x, b.Spans)
	}
	if isQuoted(b) {
		return quoted(text)
	}
	return text
}

// rich writes a block for a markdown block. A table is written as code too, for where
// there may not be another table.
func (slack) rich(b document.Block) richText {
	x := marks{slackBlock}
	switch b.Kind {
	case document.Table:
		return richText{text: x.fenced("", layout(b)), table: richTable(b)}
	case document.Heading:
		return richText{text: x.block(b), better: true}
	case document.CodeBlock:
		return richText{text: x.block(b), better: b.Info != ""}
	}
	return richText{text: x.block(b)}
}

const (
	// mostRich is what Slack takes in the markdown blocks of a message, in UTF-16 units.
	mostRich = 12_000
	// mostExpanded is somewhat less than the blocks that Slack takes in a message: it
	// makes several of a markdown block.
	mostExpanded = 40
	// A table of Slack's has no more rows, the header among them, and columns.
	mostRichRows, mostRichColumns = 100, 20
)

// joinRich makes a table of the longest of a piece's tables.
func (slack) joinRich(frags []frag) string {
	var parts []richPart
	longest := -1
	better := false
	for i := 0; i < len(frags); {
		p := richPart{frag: frags[i], of: 1}
		if rows := recordsOfOneTable(frags[i:]); len(rows) > 0 {
			p.rich.table = richTable(tableOf(rows))
			p.of = len(rows)
		}
		if n := len(p.rich.table); n > 0 && (longest < 0 || n > len(parts[longest].rich.table)) {
			longest = len(parts)
		}
		for _, f := range frags[i+1 : i+p.of] {
			p.rich.text += "\n\n" + f.rich.text
		}
		better = better || p.rich.better || p.rich.table != ""
		parts = append(parts, p)
		i += p.of
	}
	if !better || len(parts) > mostExpanded {
		return ""
	}
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == 0:
		case p.within != nil && parts[i-1].within != nil && !p.gap:
			b.WriteString("\n")
		default: // or one would go on with the other
			b.WriteString("\n\n")
		}
		if i == longest {
			b.WriteString(p.rich.table)
		} else {
			b.WriteString(p.rich.text)
		}
	}
	if units(b.String()) > mostRich {
		return ""
	}
	return b.String()
}

// A richPart is a block of a piece: one frag, or the records of a table.
type richPart struct {
	frag
	of int // so many frags
}

// richTable is a table as Slack makes one of it; "" if it does not.
func richTable(b document.Block) string {
	if len(b.Rows) >= mostRichRows || len(b.Head) > mostRichColumns {
		return ""
	}
	return marks{slackBlock}.table(b)
}

// recordsOfOneTable are the rows of the table with whose record frags begin; none if it
// is no record, or part of one.
func recordsOfOneTable(frags []frag) (rows []*document.Block) {
	for _, f := range frags {
		if f.record == nil || len(rows) > 0 && &f.record.Head[0] != &rows[0].Head[0] {
			break
		}
		rows = append(rows, f.record)
	}
	return rows
}

// tableOf is a table of such rows.
func tableOf(rows []*document.Block) document.Block {
	table := *rows[0]
	table.Rows = nil
	for _, row := range rows {
		table.Rows = append(table.Rows, row.Rows...)
	}
	return table
}

func (slack) join(to *strings.Builder, frags []frag) { joinLines(to, frags) }

func (slack) harmless(plain string) string {
	return neutral(strings.ReplaceAll(plain, "<!", "<"+zeroWidth+"!"))
}

func (slack) linksInside() bool { return true }

func (slack) shown(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

func (m mark) slackMark() string {
	switch m.style {
	case document.Bold:
		return "*"
	case document.Italic:
		return "_"
	}
	return "~"
}

// open parts a mark from a word before it: within one Slack sees none.
func (slack) open(b *strings.Builder, m mark) {
	if m.url != "" {
		b.WriteString("<" + escapeSlack(m.url) + "|")
		return
	}
	if last, _ := utf8.DecodeLastRuneInString(b.String()); unicode.IsLetter(last) || unicode.IsDigit(last) {
		b.WriteString(zeroWidth)
	}
	b.WriteString(m.slackMark())
}

func (slack) close(b *strings.Builder, m mark, next rune) {
	if m.url != "" {
		b.WriteString(">")
		return
	}
	b.WriteString(m.slackMark())
	if unicode.IsLetter(next) || unicode.IsDigit(next) {
		b.WriteString(zeroWidth)
	}
}

// text leaves an emoji its name: it is the workspace's.
func (slack) text(b *strings.Builder, s document.Span, _ bool) {
	if s.Emoji != "" {
		b.WriteString(":" + s.Emoji + ":")
		return
	}
	text := escapeSlack(s.Text)
	if s.Style&document.Code != 0 && !strings.Contains(text, "`") && s.URL == "" {
		b.WriteString("`" + text + "`")
		return
	}
	b.WriteString(neutral(apart(text)))
}

// apart parts a ~ that is meant as such from the word behind it, if another would
// end what it begins: for Slack one ~ strikes out.
func apart(s string) string {
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

// startsStrike tells whether a ~ could begin what is struck out: it is at a word's
// beginning.
func startsStrike(s string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+1:])
	return !unicode.IsLetter(before) && !unicode.IsDigit(before) && before != '~' && !unicode.IsSpace(after) && after != '~'
}

// endOfStrike is the next ~ of a line, if it is at a word's end, else -1.
func endOfStrike(s string, from int) int {
	line, _, _ := strings.Cut(s[from:], "\n")
	i := strings.IndexByte(line, '~')
	if i < 1 || line[i-1] == ' ' {
		return -1
	}
	return from + i
}

// bare leaves it to Slack to make a link of a mailbox.
func (slack) bare(b *strings.Builder, s document.Span) {
	if s.IsMail() {
		b.WriteString(escapeSlack(s.Text))
		return
	}
	b.WriteString("<" + escapeSlack(s.Text) + ">")
}

func escapeSlack(s string) string { return escape(s, "&<>") }

// neutral keeps words that call everybody from doing so.
func neutral(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	for _, all := range []string{"everyone", "here", "channel"} {
		s = strings.ReplaceAll(s, "@"+all, "@"+zeroWidth+all)
	}
	return s
}

// partTicks keeps a fence within a code block from ending it.
func partTicks(s string) string {
	return strings.ReplaceAll(s, "```", "``"+zeroWidth+"`")
}
