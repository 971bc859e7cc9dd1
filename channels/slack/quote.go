package slack

import (
	"cmp"
	"context"
	"strings"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
)

// maxQuotes bounds how many forwarded messages of one message are passed on.
const maxQuotes = 10

// An attachment is what Slack shows below a message: of interest is the message
// of somebody else's that was forwarded with it.
type attachment struct {
	IsShare     bool   `json:"is_share"`
	IsMsgUnfurl bool   `json:"is_msg_unfurl"`
	AuthorID    string `json:"author_id"`
	AuthorName  string `json:"author_name"`
	ChannelID   string `json:"channel_id"`
	ChannelName string `json:"channel_name"`
	Text        string `json:"text"`
	Fallback    string `json:"fallback"`
	TS          string `json:"ts"`
	Files       []file `json:"files"`
}

// sharedIn makes an attachment of one from history, which does not name the chat.
func sharedIn(a slackgo.Attachment) attachment {
	made := attachment{
		IsShare: a.IsShare, IsMsgUnfurl: a.IsMsgUnfurl, AuthorID: a.AuthorID, AuthorName: cmp.Or(a.AuthorName, a.AuthorSubname),
		Text: a.Text, Fallback: a.Fallback, TS: a.Ts.String(),
	}
	for _, f := range a.Files {
		made.Files = append(made.Files, file{Name: f.Name, Title: f.Title})
	}
	return made
}

func (a attachment) isMessage() bool { return a.IsShare || a.IsMsgUnfurl }

// shares tells whether a message forwards others.
func (m *message) shares() bool {
	for _, a := range m.Attachments {
		if a.isMessage() {
			return true
		}
	}
	return false
}

// quotes are the messages that one forwards.
func (c *Channel) quotes(ctx context.Context, m *message, me Account) []bus.Quote {
	var all []bus.Quote
	for _, a := range m.Attachments {
		if !a.isMessage() || len(all) == maxQuotes {
			continue
		}
		q := bus.Quote{
			Kind: bus.Forwarded, Chat: oneLine(cmp.Or(a.ChannelName, a.ChannelID), maxName), At: moment(a.TS),
			Text: strings.TrimSpace(named(a.Files) + " " + c.plain(ctx, cmp.Or(a.Text, a.Fallback), me)),
		}
		q.From.Name = oneLine(a.AuthorName, maxName)
		if a.AuthorID != "" {
			q.From.ID = c.name + ":" + a.AuthorID
			q.From.Name = cmp.Or(q.From.Name, c.people.name(ctx, a.AuthorID))
		}
		all = append(all, q)
	}
	return all
}
