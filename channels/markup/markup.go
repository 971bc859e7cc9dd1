// Package markup renders a Markdown text for each platform, split into messages that fit the platform's limit.
//
// Package document parses the text; this package renders it. markup.go names the dialects, and render.go takes a
// text through all steps: parsing, and splitting into pieces (split.go; rows.go for tables), with cuts where a
// piece is full (cuts.go), which depends on its size (size.go). dialect.go says what each dialect must do, and
// nests styles and links; plain.go, markdown.go, slack.go, telegram.go, html.go and terminal.go are the dialects,
// with tables.go for platforms without tables. characters.go handles single characters: invisible ones, and emojis.
//
// TestShow prints how a file is rendered, for people to look at: go test ./channels/markup
// -run TestShow -v -show FILE.
package markup

import "parley/channels/markup/document"

// A Dialect is the form in which a platform wants formatted text.
type Dialect string

// The dialects, with the unit in which their platforms measure length.
const (
	// Plain is the text without markup, as a person would type it. UTF-16 units.
	Plain Dialect = "plain"
	// Markdown is the text itself if there is no limit, and otherwise the same text written anew as Markdown.
	// UTF-16 units.
	Markdown Dialect = "markdown"
	// TelegramHTML is Telegram's HTML. UTF-16 units of the text without tags.
	TelegramHTML Dialect = "telegram"
	// SlackMrkdwn is Slack's own markup. UTF-16 units.
	SlackMrkdwn Dialect = "slack"
	// DiscordMarkdown is Discord's Markdown. UTF-16 units.
	DiscordMarkdown Dialect = "discord"
	// HTML is for pages: its links lead to the web or to email addresses, and it neither loads nor runs anything.
	// UTF-16 units of the visible text.
	HTML Dialect = "html"
	// Terminal is text with a terminal's escape sequences for styles. UTF-16 units.
	Terminal Dialect = "terminal"
)

// A Piece is as much text as fits into one message.
type Piece struct {
	Text  string // the text in the dialect
	Plain string // the text without markup
	// Markdown, set only for SlackMrkdwn, is the same text for a markdown block; "" if that would not look better.
	Markdown string
}

// A Renderer renders Markdown; several goroutines may use it at the same time.
type Renderer struct {
	parser *document.Parser
}

// New makes a Renderer. That takes longer than rendering a short text, so keep the Renderer.
func New() *Renderer { return &Renderer{parser: document.NewParser()} }
