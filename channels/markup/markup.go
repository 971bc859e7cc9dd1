// Package markup renders one Markdown text for each platform, split to its limit.
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
	// Terminal is text with the escape sequences of a terminal's styles. UTF-16 units.
	Terminal Dialect = "terminal"
)

// A Piece is one message's worth of text.
type Piece struct {
	Text  string // in the dialect
	Plain string // the same without markup
}

// A Renderer renders; it may be used by many goroutines at once.
type Renderer struct {
	parser *document.Parser
}

// New makes a Renderer. That costs more than rendering a short text, so it is
// worth keeping.
func New() *Renderer { return &Renderer{parser: document.NewParser()} }
