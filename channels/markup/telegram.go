package markup

import (
	"strings"

	"parley/channels/markup/document"
)

// telegramDialect is the dialect of Telegram's HTML. Code has no other marks, and quotes contain no code blocks,
// because Telegram can't nest these.
type telegramDialect struct{}

func (telegramDialect) size(text string) size { return telegramSize(text) }

func (telegramDialect) largest(limit int) size {
	return size{limit, telegramBytes, telegramMarks, telegramWeight}
}

// rendersLink allows every link whose target is not too long. It ignores the message's limit, because Telegram does
// not count the targets of links.
func (telegramDialect) rendersLink(s document.Span, _ int) bool {
	return len(s.URL) <= document.MaxLink
}

func (telegramDialect) tableForm(table document.Block) form {
	return columnsOrRecords(phoneWidth, table)
}

func (t telegramDialect) renderBlock(b document.Block) string {
	switch b.Kind {
	case document.Heading:
		return inlineText(t, makeBold(b.Spans))
	case document.Table:
		return "<pre>" + escapeHTML(layoutTable(b)) + "</pre>"
	case document.CodeBlock:
		text := escapeHTML(strings.Join(b.Lines, "\n"))
		if b.Info != "" {
			return `<pre><code class="language-` + escapeHTML(b.Info) + `">` + text + "</code></pre>"
		}
		return "<pre>" + text + "</pre>"
	case document.Rule:
		return ruleText
	}
	return inlineText(t, b.Spans)
}

func (telegramDialect) join(to *strings.Builder, frags []renderedBlock) {
	for i, f := range frags {
		if i > 0 {
			if frags[i-1].isQuote && !f.isQuote {
				to.WriteString("</blockquote>")
			}
			to.WriteString(f.separator())
		}
		if f.isQuote && (i == 0 || !frags[i-1].isQuote) {
			to.WriteString("<blockquote>")
		}
		to.WriteString(f.text)
	}
	if len(frags) > 0 && frags[len(frags)-1].isQuote {
		to.WriteString("</blockquote>")
	}
}

func (telegramDialect) defuse(plain string) string { return plain }

func (telegramDialect) linksInnermost() bool { return false }

func (telegramDialect) shownStyle(s document.Span) document.Style {
	if s.Style&document.Code != 0 {
		return 0
	}
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

// telegramTag returns the name of the tag for a style.
func (m mark) telegramTag() string {
	switch m.style {
	case document.Bold:
		return "b"
	case document.Italic:
		return "i"
	}
	return "s"
}

func (telegramDialect) openMark(b *strings.Builder, m mark) {
	if m.url != "" {
		b.WriteString(`<a href="` + escapeHTML(m.url) + `">`)
		return
	}
	b.WriteString("<" + m.telegramTag() + ">")
}

func (telegramDialect) closeMark(b *strings.Builder, m mark, _ rune) {
	if m.url != "" {
		b.WriteString("</a>")
		return
	}
	b.WriteString("</" + m.telegramTag() + ">")
}

func (telegramDialect) writeText(b *strings.Builder, s document.Span, _ bool) {
	if s.Style&document.Code != 0 && s.URL == "" {
		b.WriteString("<code>" + escapeHTML(s.Text) + "</code>")
		return
	}
	b.WriteString(escapeHTML(s.Text))
}

func (telegramDialect) writeBareLink(b *strings.Builder, s document.Span) {
	b.WriteString(escapeHTML(s.Text))
}

// escapeHTML writes & < > " as entities.
func escapeHTML(s string) string { return escape(s, `&<>"`) }

// escape returns s in which the given characters, some of & < > ", are replaced by entities.
func escape(s, characters string) string {
	i := strings.IndexAny(s, characters)
	if i < 0 {
		return s
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexAny(s, characters) {
		b.WriteString(s[:i])
		switch s[i] {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '"':
			b.WriteString("&quot;")
		}
		s = s[i+1:]
	}
	b.WriteString(s)
	return b.String()
}
