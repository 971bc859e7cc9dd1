package slack

import (
	"bytes"
	"context"
	"errors"
	"strings"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/assistant"
	"parley/channels/slack/stream"
)

// partEvent is the event type in the metadata of every message that the bot sends. The metadata also contains the
// part's key, by which FindSent finds the message.
const partEvent = "parley_part"

// A sender sends and edits messages and files.
type sender struct {
	api           *slackgo.Client
	identity      *identity
	reachability  *channels.Reachability
	conversations *conversations
	speakers      *speakers
	surfaces      *assistant.Surfaces
	streams       *stream.Streams
	markdown      markdownBlocks
}

// Send posts one part to a chat and returns the ts of the message. If the thread of the message that the part
// belongs to is gone, it posts to the chat itself.
func (s *sender) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	ts, err := s.postMessage(ctx, to.Chat, threadFor(to, part), part)
	if to.Thread == "" && part.Under != "" && isThreadGone(err) {
		ts, err = s.postMessage(ctx, to.Chat, "", part)
	}
	return ts, err
}

// postMessage posts one message, as a growing one if the part grows, and returns its ts. Its errors are
// *channels.SendError.
func (s *sender) postMessage(ctx context.Context, chat, thread string, part channels.Part) (string, error) {
	if ts, err := s.startStream(ctx, chat, thread, part); ts != "" || err != nil {
		return ts, err
	}
	ctx, t, done := startCall(ctx)
	defer done()
	var where, ts string
	err := s.callWithBlocks(part, func(shown []slackgo.MsgOption) (err error) {
		options := append(textOptions(part), shown...)
		if thread != "" {
			options = append(options, slackgo.MsgOptionTS(thread))
		}
		where, ts, err = s.api.PostMessageContext(ctx, chat, options...)
		return err
	})
	if err != nil {
		e := sendError(err, t)
		if e.Code == "missing_scope" {
			e.Fault = channels.Stop // without it, no message at all can be sent
			e.Remedy = e.Err.Error() + ": add it under OAuth & Permissions and install the app again"
		}
		s.reachability.Note(e)
		return "", e
	}
	s.reachability.Note(nil)
	if ts == "" || where == "" {
		return "", &channels.SendError{Fault: channels.Unknown, Code: "unreadable", Err: errors.New("the answer is not what Slack gives")}
	}
	if where != chat {
		s.conversations.noteDirectChat(chat, where)
	}
	s.surfaces.NoteSent(where, thread)
	return ts, nil
}

// startStream starts a message that grows and returns its ts; "" if an ordinary message should be posted instead.
func (s *sender) startStream(ctx context.Context, chat, thread string, part channels.Part) (string, error) {
	if part.Growing == nil || thread == "" || chat == "" || !strings.ContainsAny(chat[:1], "CDG") {
		return "", nil
	}
	at := stream.Place{Chat: chat, Thread: thread}
	if chat[0] != 'D' {
		me, err := s.identity.current(ctx)
		if err != nil {
			return "", nil //nolint:nilerr // the message that is sent instead will get the same error
		}
		if at.User, at.Team = s.speakers.find(ctx, me, chat, thread, part.Growing.Turn), me.Team; at.User == "" {
			return "", nil
		}
	}
	ts, err := s.streams.Start(ctx, at, *part.Growing)
	switch {
	case err != nil:
		s.reachability.Note(channels.FaultOf(err))
	case ts != "":
		s.reachability.Note(nil)
		s.surfaces.NoteSent(chat, thread)
	}
	return ts, err
}

// Whisper implements channels.Whisperer: it shows a message in a chat to only one user, until that user reloads
// Slack.
func (s *sender) Whisper(ctx context.Context, to bus.Address, user string, part channels.Part) error {
	ctx, t, done := startCall(ctx)
	defer done()
	options := textOptions(channels.Part{Text: part.Text})
	if to.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(to.Thread))
	}
	if _, err := s.api.PostEphemeralContext(ctx, to.Chat, user, options...); err != nil {
		return sendError(err, t)
	}
	return nil
}

// callWithBlocks makes a call that shows a part: as a markdown block if the part has Markdown and the workspace
// accepts such blocks, and otherwise as its text. If Slack refuses the blocks, it has shown nothing, and the call
// is made once more without the markdown block.
func (s *sender) callWithBlocks(part channels.Part, call func(shown []slackgo.MsgOption) error) error {
	if part.Markdown == "" || !s.markdown.shouldTry() {
		return call(blockOptions(part, false))
	}
	err := call(blockOptions(part, true))
	refusal, ok := errors.AsType[slackgo.SlackErrorResponse](err)
	if !ok || !isAboutBlocks(refusal.Err) {
		s.markdown.recordOutcome(err == nil, false)
		return err
	}
	s.markdown.recordOutcome(false, refusal.Err == "invalid_blocks")
	return call(blockOptions(part, false))
}

// textOptions returns the options for a message with the part's text and key. They keep Slack from adding mentions
// and from showing link previews.
func textOptions(part channels.Part) []slackgo.MsgOption {
	options := []slackgo.MsgOption{
		slackgo.MsgOptionText(part.Text, false), // the text is already escaped
		slackgo.MsgOptionParse(false),
		slackgo.MsgOptionLinkNames(false),
		slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionDisableMediaUnfurl(),
	}
	if part.Key != "" {
		options = append(options, slackgo.MsgOptionMetadata(slackgo.SlackMetadata{
			EventType: partEvent, EventPayload: map[string]any{"key": part.Key},
		}))
	}
	return options
}

// threadFor returns the ts of the thread that a part goes into: the address's own, or that of the message to which
// the part belongs; "" if there is neither.
func threadFor(to bus.Address, part channels.Part) string {
	if to.Thread != "" || !isTS(part.Under) {
		return to.Thread
	}
	return part.Under
}

// isTS reports whether an id is the ts of a message, as opposed to the id of a file.
func isTS(id string) bool {
	return id != "" && strings.Trim(id, "0123456789.") == ""
}

// isThreadGone reports whether a call failed because its thread does not exist.
func isThreadGone(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && (refusal.Code == "thread_not_found" || refusal.Code == "invalid_thread_ts")
}

// Edit replaces the text of a message, or lets it grow. Writing the same text twice does no harm, so an edit whose
// outcome is unknown may be repeated.
func (s *sender) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	if !isTS(id) {
		return &channels.SendError{Fault: channels.Rejected, Code: "bad_id", Err: errors.New("this is not a message")}
	}
	chat, err := s.conversations.chatID(ctx, to)
	if err != nil {
		return err
	}
	if part.Growing != nil {
		if grown, err := s.streams.Append(ctx, chat, id, *part.Growing); grown || err != nil {
			return err
		}
	}
	if err := repeatableOrNil(s.streams.Stop(ctx, chat, id)); err != nil {
		return err
	}
	err = s.updateMessage(ctx, chat, id, part)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Code == "streaming_state_conflict" {
		// A process that has ended in the meantime has left the stream open.
		if err := repeatableOrNil(s.streams.End(ctx, chat, id)); err != nil {
			return err
		}
		err = s.updateMessage(ctx, chat, id, part)
	}
	if err != nil {
		return err
	}
	_ = s.surfaces.ClearStatus(ctx, chat, to.Thread) // after an error, Slack removes the status itself a little later
	return nil
}

// updateMessage replaces the text of a message that isn't growing.
func (s *sender) updateMessage(ctx context.Context, chat, id string, part channels.Part) error {
	ctx, t, done := startCall(ctx)
	defer done()
	err := s.callWithBlocks(part, func(shown []slackgo.MsgOption) error {
		options := append(append(textOptions(part), clearBlocks()...), shown...)
		_, _, _, err := s.api.UpdateMessageContext(ctx, chat, id, options...)
		return err
	})
	if err != nil {
		return asRepeatable(sendError(err, t))
	}
	return nil
}

// repeatableOrNil does what asRepeatable does, for an error that may be nil.
func repeatableOrNil(err error) error {
	if err == nil {
		return nil
	}
	return asRepeatable(channels.FaultOf(err))
}

// SendFile uploads a file and shows it together with the part's text. Nobody sees the file before the last of its
// three calls, so only that call can have an unknown outcome. It returns the file's id, because Slack does not
// return the message's.
func (s *sender) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	if len(file.Data) == 0 || file.Name == "" {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "empty_file", Err: errors.New("a file needs a name and a content")}
	}
	chat, err := s.conversations.chatID(ctx, to)
	if err != nil {
		return "", err
	}
	ctx, t := withRequestTrace(ctx)
	up, err := s.api.GetUploadURLExternalContext(ctx, slackgo.GetUploadURLExternalParameters{FileName: file.Name, FileSize: len(file.Data)})
	if err != nil {
		return "", asRepeatable(sendError(err, t))
	}
	err = s.api.UploadToURL(ctx, slackgo.UploadToURLParameters{UploadURL: up.UploadURL, Reader: bytes.NewReader(file.Data), Filename: file.Name})
	if err != nil {
		return "", asRepeatable(sendError(err, t))
	}
	ctx, t = withRequestTrace(ctx)
	_, err = s.api.CompleteUploadExternalContext(ctx, slackgo.CompleteUploadExternalParameters{
		Files:   []slackgo.FileSummary{{ID: up.FileID, Title: file.Name}},
		Channel: chat, ThreadTimestamp: threadFor(to, part), InitialComment: part.Text,
	})
	if err != nil {
		return "", sendError(err, t)
	}
	return up.FileID, nil
}
