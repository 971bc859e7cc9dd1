// Package markup renders one Markdown text for each platform, split to its limit.
//
// Package document reads the text; here it is written. markup.go names the dialects, and
// render.go is the way of a text: parsed, and put into pieces by split.go, tables by
// rows.go, cut at the places of cuts.go where a piece is full, as size.go counts.
// dialect.go is what each dialect has to do, and how styles and links nest; plain.go,
// markdown.go, slack.go, telegram.go, html.go and terminal.go do it, with tables.go for
// tables where there are none. characters.go knows of single characters: those that nobody
// sees, and the emoji.
//
// TestShow prints what becomes of a file, for eyes: go test ./channels/markup -run TestShow
// -v -show FILE.
package markup

import "parley/channels/markup/document"

// A Dialect is how a platform writes formatted text.
type Dialect string

// The dialects, with the unit in which their platforms count length.
const (
	// Plain is the text without markup, as it would be typed. UTF-16 units.
	Plain Dialect = "plain"
	// Markdown is passed on as it is. UTF-16 units.
	Markdown Dialect = "markdown"
	// TelegramHTML is Telegram's HTML, counted in UTF-16 units of what remains
	// when the tags are parsed.
	TelegramHTML Dialect = "telegram"
	// SlackMrkdwn is Slack's own markup. UTF-16 units.
	SlackMrkdwn Dialect = "slack"
	// DiscordMarkdown is Discord's. UTF-16 units.
	DiscordMarkdown Dialect = "discord"
	// HTML is for pages: its links lead to the web or to a mailbox, it loads nothing and
	// runs nothing. UTF-16 units of what is seen.
	HTML Dialect = "html"
	// Terminal is text with the escape sequences of a terminal's styles. UTF-16 units.
	Terminal Dialect = "terminal"
)

// A Piece is one message's worth of text.
type Piece struct {
	Text  string // in the dialect
	Plain string // the same without markup
	// Markdown, of SlackMrkdwn alone, is the same for a markdown block; "" where that
	// would show nothing better.
	Markdown string
}

// A Renderer renders; it may be used by many goroutines at once.
type Renderer struct {
	parser *document.Parser
}

// New makes a Renderer. That costs more than rendering a short text, so it is
// worth keeping.
func New() *Renderer { return &Renderer{parser: document.NewParser()} }
