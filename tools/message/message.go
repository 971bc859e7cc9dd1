// Package message provides the tool that sends a message to another chat than the one in which the agent answers.
//
// The tool knows no channels. The function passed to New decides which chats may be reached, and publishes the
// message under its id, so that a repeated call sends no second one.
package message

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/tools"
)

// A Request is a message that an agent wants to send to another chat.
type Request struct {
	// ID is the same for every attempt of one call and differs from that of every other call.
	ID      string
	Session string
	Turn    string
	From    string // the address of the conversation in which the agent was asked
	Person  string // the person who asked: CHANNEL:USER
	Called  string // the person's name on their platform; it proves nothing
	Owner   bool   // whether that person owns the bot
	// Untrusted says that the model that wrote the message had read something that strangers may have written, so
	// that the words may be theirs.
	Untrusted bool
	// Channel and Chat are the arguments as the model gave them: a channel and a chat in it; or, in Channel, the
	// name of a target or a whole address.
	Channel string
	Chat    string
	Content string
	Files   []string // paths in the session's workspace
	Attempt int      // the number of this attempt of the call, from 1
}

// New makes the tool message. The function deliver stores the message durably, once for each ID, or refuses it with
// a *tools.Error: permission_denied for a chat that may not be reached, which lists those that this person may
// reach; invalid_args for a chat that doesn't exist, or if there is neither a file nor a text with visible
// characters. Files are sent as they are at the time of the call.
func New(deliver func(ctx context.Context, r Request) error) tools.Tool {
	return tools.New(tools.Spec{
		Name:   "message",
		Effect: tools.Idempotent,
		// If the bus does not answer, deliver waits for it: an error would leave it unknown whether the message was
		// sent.
		Timeout: time.Minute, MaxTimeout: time.Minute,
		Touches: tools.Touches(args.touch),
		Shows:   tools.Shows(args.shown),
		Description: "Send a message to another chat than this one: to one that this person may reach, or to a target's name in channel. " +
			"It is shown there as told on behalf of the person who asks, and quoted, so give the text alone. " +
			"With files, files of the workspace go with it, as they are now; a chart arrives as a picture. " +
			"Your answer to this chat is delivered by itself, so do not send it with this tool. The status sent confirms that the message was handed over, not that it was delivered.",
	}, sender{deliver}.send)
}

type sender struct {
	deliver func(context.Context, Request) error
}

type args struct {
	Channel string `json:"channel" jsonschema:"a channel's name such as telegram, a target's name such as oncall, or an address such as slack:C0123"`
	ChatID  string `json:"chat_id,omitempty" jsonschema:"the chat in that channel; left out where channel is a target or an address"`
	Content string `json:"content" jsonschema:"the text, as Markdown; may be empty where files go with it"`

	Files []string `json:"files,omitempty" jsonschema:"paths of files in the workspace that go with it, at most 10"`
}

// touch says what a call touches: the readers of the message, and the files that go with it.
func (a args) touch() tools.Touch {
	return tools.Touch{
		Subject: tools.Chat{Channel: a.Channel, Chat: a.ChatID}, Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Passes: a.Files, Outward: tools.NothingOutward{},
	}
}

// shown returns what the approver is shown: the recipient of the message, and its text.
func (a args) shown() tools.Showing {
	to := a.Channel
	if a.ChatID != "" {
		to += " " + a.ChatID
	}
	return tools.Showing{Text: "To " + tools.WholeLine(to) + ":\n\n" + a.Content, ShownArgs: []string{"channel", "chat_id", "content"}}
}

// A sendResult is what the model is told about a message that was handed over.
type sendResult struct {
	Status        string `json:"status"`
	Channel       string `json:"channel"`
	ChatID        string `json:"chat_id"`
	ContentLength int    `json:"content_length"`
	Files         int    `json:"files,omitempty"`
}

func (s sender) send(ctx context.Context, call tools.Call, a args) (any, error) {
	a.Channel, a.ChatID = strings.TrimSpace(a.Channel), strings.TrimSpace(a.ChatID)
	if a.Channel == "" {
		return nil, tools.Errorf(tools.InvalidArgs, "channel is empty: give a channel's or a target's name")
	}
	content := stripControls(a.Content)
	if strings.TrimSpace(content) == "" && len(a.Files) == 0 {
		return nil, tools.Errorf(tools.InvalidArgs, "content is empty: give the text to send, or files")
	}
	err := s.deliver(ctx, Request{
		ID: call.Key, Session: call.Session, Turn: call.Turn, From: call.Address, Person: call.Person, Called: call.PersonName, Owner: call.Owner, Untrusted: call.Untrusted,
		Channel: a.Channel, Chat: a.ChatID, Content: content, Files: a.Files, Attempt: call.Attempt,
	})
	if err != nil {
		if refused, ok := errors.AsType[*tools.Error](err); ok {
			return nil, refused
		}
		return nil, err
	}
	return sendResult{"sent", a.Channel, a.ChatID, len(content), len(a.Files)}, nil
}

// stripControls removes the control characters, which no chat shows, except tabs and line ends.
func stripControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0x7f || r < 0x20 && r != '\n' && r != '\r' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
