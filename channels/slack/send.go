package slack

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/slack/assistant"
	"parley/channels/slack/stream"
)

// partEvent is the event type in the metadata of every message that the bot sends; with it comes
// the key of the part, by which FindSent finds the message.
const partEvent = "parley_part"

// Send writes one part into a chat and returns the ts of the message. If the thread of the
// message that the part belongs to is gone, it writes into the chat itself.
func (c *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	ts, err := c.postMessage(ctx, to.Chat, threadFor(to, part), part)
	if to.Thread == "" && part.Under != "" && isThreadGone(err) {
		ts, err = c.postMessage(ctx, to.Chat, "", part)
	}
	return ts, err
}

// postMessage posts one message, as a growing one if the part grows, and returns its ts.
// Its errors are *channels.SendError.
func (c *Channel) postMessage(ctx context.Context, chat, thread string, part channels.Part) (string, error) {
	if ts, err := c.startStream(ctx, chat, thread, part); ts != "" || err != nil {
		return ts, err
	}
	ctx, t, done := startCall(ctx)
	defer done()
	var where, ts string
	err := c.callWithBlocks(part, func(shown []slackgo.MsgOption) (err error) {
		options := append(textOptions(part), shown...)
		if thread != "" {
			options = append(options, slackgo.MsgOptionTS(thread))
		}
		where, ts, err = c.api.PostMessageContext(ctx, chat, options...)
		return err
	})
	if err != nil {
		e := sendError(err, t)
		if e.Code == "missing_scope" {
			e.Fault = channels.Stop // no message at all can be sent without it
			e.Remedy = e.Err.Error() + ": add it under OAuth & Permissions and install the app again"
		}
		c.reachability.Note(e)
		return "", e
	}
	c.reachability.Note(nil)
	if ts == "" || where == "" {
		return "", &channels.SendError{Fault: channels.Unknown, Code: "unreadable", Err: errors.New("the answer is not what Slack gives")}
	}
	if where != chat {
		c.directChats.put(chat, where)
	}
	c.surfaces.NoteSent(where, thread)
	return ts, nil
}

// startStream begins a message that grows and returns its ts; "" if an ordinary message is
// to be posted instead.
func (c *Channel) startStream(ctx context.Context, chat, thread string, part channels.Part) (string, error) {
	if part.Growing == nil || thread == "" || chat == "" || !strings.ContainsAny(chat[:1], "CDG") {
		return "", nil
	}
	at := stream.Place{Chat: chat, Thread: thread}
	if chat[0] != 'D' {
		me, err := c.identity(ctx)
		if err != nil {
			return "", nil //nolint:nilerr // what is sent instead meets the same
		}
		if at.User, at.Team = c.findSpeaker(ctx, me, chat, thread, part.Growing.Turn), me.Team; at.User == "" {
			return "", nil
		}
	}
	ts, err := c.streams.Start(ctx, at, *part.Growing)
	switch {
	case err != nil:
		c.reachability.Note(channels.FaultOf(err))
	case ts != "":
		c.reachability.Note(nil)
		c.surfaces.NoteSent(chat, thread)
	}
	return ts, err
}

// threadKey returns the key under which lastSpeakers has a thread.
func threadKey(chat, thread string) string { return chat + " " + thread }

// Whisper implements channels.Whisperer: it shows a message to one user of a chat only,
// until that user reloads Slack.
func (c *Channel) Whisper(ctx context.Context, to bus.Address, user string, part channels.Part) error {
	ctx, t, done := startCall(ctx)
	defer done()
	options := textOptions(channels.Part{Text: part.Text})
	if to.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(to.Thread))
	}
	if _, err := c.api.PostEphemeralContext(ctx, to.Chat, user, options...); err != nil {
		return sendError(err, t)
	}
	return nil
}

// Alone implements channels.Whisperer: it returns the address of a person's own chat with the bot.
func (c *Channel) Alone(ctx context.Context, person string) (bus.Address, error) {
	_, user, _ := strings.Cut(person, ":")
	chat, err := c.chatID(ctx, bus.Address{Channel: c.name, Chat: user})
	return bus.Address{Channel: c.name, Chat: chat}, err
}

// textOptions returns the options of a message with the part's text and key. They keep
// Slack from adding mentions and from showing previews of links.
func textOptions(part channels.Part) []slackgo.MsgOption {
	options := []slackgo.MsgOption{
		slackgo.MsgOptionText(part.Text, false), // the text is escaped already
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

// threadFor returns the ts of the thread to which a part goes: the address's own, or that
// of the message to which the part belongs.
func threadFor(to bus.Address, part channels.Part) string {
	if to.Thread != "" || !isTS(part.Under) {
		return to.Thread
	}
	return part.Under
}

// isTS reports whether an id is the ts of a message, and not the id of a file.
func isTS(id string) bool {
	return id != "" && strings.Trim(id, "0123456789.") == ""
}

// isThreadGone reports whether a call failed because its thread does not exist.
func isThreadGone(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && (refusal.Code == "thread_not_found" || refusal.Code == "invalid_thread_ts")
}

// Edit replaces the text of a message, or lets it grow. Writing the same text twice does
// no harm, so an edit of unknown outcome may be repeated.
func (c *Channel) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	if !isTS(id) {
		return &channels.SendError{Fault: channels.Rejected, Code: "bad_id", Err: errors.New("this is not a message")}
	}
	chat, err := c.chatID(ctx, to)
	if err != nil {
		return err
	}
	if part.Growing != nil {
		if grown, err := c.streams.Append(ctx, chat, id, *part.Growing); grown || err != nil {
			return err
		}
	}
	if err := repeatableOrNil(c.streams.Stop(ctx, chat, id)); err != nil {
		return err
	}
	err = c.updateMessage(ctx, chat, id, part)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Code == "streaming_state_conflict" {
		// A process that has ended since has left the stream open.
		if err := repeatableOrNil(c.streams.End(ctx, chat, id)); err != nil {
			return err
		}
		err = c.updateMessage(ctx, chat, id, part)
	}
	if err != nil {
		return err
	}
	_ = c.surfaces.ClearStatus(ctx, chat, to.Thread) // after an error Slack removes the status itself, a little later
	return nil
}

// updateMessage replaces the text of a message that is not growing.
func (c *Channel) updateMessage(ctx context.Context, chat, id string, part channels.Part) error {
	ctx, t, done := startCall(ctx)
	defer done()
	err := c.callWithBlocks(part, func(shown []slackgo.MsgOption) error {
		options := append(append(textOptions(part), clearBlocks()...), shown...)
		_, _, _, err := c.api.UpdateMessageContext(ctx, chat, id, options...)
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

// chatID returns the id of an address's Slack channel. Posting accepts a user's id in its
// place, but every other call needs the id of the chat with that user.
func (c *Channel) chatID(ctx context.Context, to bus.Address) (string, error) {
	if !strings.HasPrefix(to.Chat, "U") && !strings.HasPrefix(to.Chat, "W") {
		return to.Chat, nil
	}
	if chat, ok := c.directChats.get(to.Chat); ok {
		return chat, nil
	}
	ctx, t, done := startCall(ctx)
	defer done()
	open, _, _, err := c.api.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{to.Chat}})
	if err != nil {
		return "", asRepeatable(sendError(err, t))
	}
	if open == nil || open.ID == "" {
		return "", &channels.SendError{Fault: channels.Retry, Code: "unreadable", Err: errors.New("the answer is not what Slack gives")}
	}
	c.directChats.put(to.Chat, open.ID)
	return open.ID, nil
}

// describeChat returns the name that people see of a chat, and whether the bot is in it
// and may write there.
func (c *Channel) describeChat(ctx context.Context, chat string) (name string, takesPart bool, err error) {
	if chat == "" {
		return "", false, nil
	}
	var info *slackgo.Channel
	err = callRepeatable(ctx, func(ctx context.Context) (err error) {
		info, err = c.api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: chat})
		return err
	})
	if err == nil {
		return markup.OneLine(info.Name, maxName), info.IsIM || info.IsMember, nil
	}
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Code == "channel_not_found" {
		return "", false, nil // a private channel, or a chat between other people
	}
	return "", false, err
}

// SendFile uploads a file and shows it with the part's text beside it. Nobody sees the
// file before the last of its three calls, so only that call's outcome can be unknown. It
// returns the file's id, because Slack does not return the message's.
func (c *Channel) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	if len(file.Data) == 0 || file.Name == "" {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "empty_file", Err: errors.New("a file needs a name and a content")}
	}
	chat, err := c.chatID(ctx, to)
	if err != nil {
		return "", err
	}
	ctx, t := withRequestTrace(ctx)
	up, err := c.api.GetUploadURLExternalContext(ctx, slackgo.GetUploadURLExternalParameters{FileName: file.Name, FileSize: len(file.Data)})
	if err != nil {
		return "", asRepeatable(sendError(err, t))
	}
	err = c.api.UploadToURL(ctx, slackgo.UploadToURLParameters{UploadURL: up.UploadURL, Reader: bytes.NewReader(file.Data), Filename: file.Name})
	if err != nil {
		return "", asRepeatable(sendError(err, t))
	}
	ctx, t = withRequestTrace(ctx)
	_, err = c.api.CompleteUploadExternalContext(ctx, slackgo.CompleteUploadExternalParameters{
		Files:   []slackgo.FileSummary{{ID: up.FileID, Title: file.Name}},
		Channel: chat, ThreadTimestamp: threadFor(to, part), InitialComment: part.Text,
	})
	if err != nil {
		return "", sendError(err, t)
	}
	return up.FileID, nil
}

// Seen marks a person's message as received, with a reaction.
func (c *Channel) Seen(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "eyes")
}

// Answered marks a person's message as answered.
func (c *Channel) Answered(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "white_check_mark")
}

// Failed marks a person's message as one that gets no answer.
func (c *Channel) Failed(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "warning")
}

// react adds the bot's reaction to a person's message, named by its id on the bus. A slash
// command or a shortcut has no message, and gets no reaction.
func (c *Channel) react(ctx context.Context, at bus.Address, message, name string) error {
	ctx, t, done := startCall(ctx)
	defer done()
	// A message's id on the bus ends with its ts, which contains no colon.
	ts := message[strings.LastIndex(message, ":")+1:]
	if !isTS(ts) {
		return nil // it is not a message, but a slash command or a shortcut
	}
	err := c.api.AddReactionContext(ctx, name, slackgo.NewRefToMessage(at.Chat, ts))
	if err == nil {
		return nil
	}
	e := asRepeatable(sendError(err, t))
	if e.Code == "already_reacted" {
		return nil
	}
	return e
}

// Typing shows in the thread of an answer that the bot is at work, and returns for how long Slack
// shows it. Outside of threads, and for apps made with an older manifest, Slack has no such
// display; then Typing returns an hour, so that it is not called again soon.
func (c *Channel) Typing(ctx context.Context, to bus.Address) (fades time.Duration, err error) {
	const never = time.Hour
	if to.Thread == "" {
		return never, nil
	}
	chat, err := c.chatID(ctx, to)
	if err != nil {
		return 0, err
	}
	fades, err = c.surfaces.ShowWorking(ctx, chat, to.Thread)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
		return never, nil
	}
	return fades, err
}

// Welcome shows a person in the app's home what the bot may do for them, and in a pane
// what they may ask. To a person who is not admitted a pane shows nothing.
func (c *Channel) Welcome(ctx context.Context, opened bus.Inbound, w channels.Welcome) error {
	_, user, _ := strings.Cut(opened.From.ID, ":")
	switch {
	case opened.At.Thread == "":
		return c.surfaces.ShowHome(ctx, user, w.Text)
	case !w.Admitted:
		return nil
	}
	prompts := []assistant.Prompt{
		{Title: "What can you do?", Message: "What can you do for me here, and what can you not?"},
		{Title: "Help me with a text", Message: "Help me with a text. First ask me for it, and for whom it is."},
		{Title: "Look into a file", Message: "Which files do you have of ours, and what is in them?"},
	}
	if name, takesPart, err := c.describeChat(ctx, opened.Args); err == nil && takesPart && name != "" {
		prompts = append(prompts, assistant.Prompt{
			Title: "Write to #" + name, Message: "Help me write a message for #" + name + ". First ask me what it is to say.",
		})
	}
	return c.surfaces.SuggestPrompts(ctx, opened.At.Chat, opened.At.Thread, "What shall we do?", prompts)
}

// Refusal implements channels.RefusalReader: it says why a send was refused, by Slack's
// error code; "" if the code says nothing about the place.
func (c *Channel) Refusal(code string) channels.Refusal {
	switch code {
	case "channel_not_found":
		return channels.NoSuchChat
	case "not_in_channel":
		return channels.NotInChat
	case "is_archived":
		return channels.ChatArchived
	case "thread_not_found", "invalid_thread_ts", "restricted_action",
		"user_not_found", "user_disabled", "cannot_dm_bot", "ekm_access_denied":
		return channels.PlaceRefused
	}
	return ""
}

// ReplyAddress implements channels.Replier: it returns the address of replies to a sent
// message. In a channel that is the message's thread; for a message to a person it is the
// chat with them.
func (c *Channel) ReplyAddress(ctx context.Context, to bus.Address, id string) (bus.Address, error) {
	chat, err := c.chatID(ctx, to)
	if err != nil {
		return bus.Address{}, err
	}
	to.Chat = chat
	if to.Thread == "" && isTS(id) && (&message{Channel: chat}).isGroup() {
		to.Thread = id
	}
	return to, nil
}
