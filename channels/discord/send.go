package discord

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
	"parley/tools/plainjson"
)

// A sender sends and edits messages.
type sender struct {
	*api
	onlySends bool
}

// A post is the JSON of a message to be sent. discordgo's own type lacks the nonce.
type post struct {
	Content         string                            `json:"content"`
	Nonce           string                            `json:"nonce,omitempty"`
	EnforceNonce    bool                              `json:"enforce_nonce,omitempty"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Flags           discordgo.MessageFlags            `json:"flags"`
	Reference       *discordgo.MessageReference       `json:"message_reference,omitempty"`
	// Components are the buttons. An edit in which the pointer is nil leaves the buttons unchanged.
	Components *[]discordgo.MessageComponent `json:"components,omitempty"`
}

// A sentMessage contains the fields that we read from Discord's answer to a sent message.
type sentMessage struct {
	ID    string `json:"id"`
	Nonce any    `json:"nonce"` // a text or a number, as it was sent
}

// Send posts one part to a chat and returns the id of the message.
func (s *sender) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	where, err := channelID(to)
	if err != nil {
		return "", err
	}
	body, err := plainjson.Marshal(newPost(part))
	if err != nil {
		return "", rejectedError("unencodable", err)
	}
	return s.postMessage(ctx, where, request{body: body})
}

// MaxFileBytes returns the size, in bytes, of the largest file that Discord accepts in a server without boosts.
func (s *sender) MaxFileBytes() int64 { return 10_000_000 }

// SendFile sends a file together with the part's text and returns the id of the message.
func (s *sender) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	where, err := channelID(to)
	if err != nil {
		return "", err
	}
	if !bus.IsClean(file.Name) { // the library puts it into a header unchanged
		return "", rejectedError("bad_file_name", errors.New("the file's name has control characters"))
	}
	kind, body, err := discordgo.MultipartBodyWithJSON(newPost(part), []*discordgo.File{{
		Name: file.Name, ContentType: http.DetectContentType(file.Data), Reader: bytes.NewReader(file.Data),
	}})
	if err != nil {
		return "", rejectedError("unencodable", err)
	}
	return s.postMessage(ctx, where, request{contentType: kind, body: body})
}

// postMessage makes the request r, which posts a message to the Discord channel with the id where, and returns the
// message's id.
func (s *sender) postMessage(ctx context.Context, where string, r request) (string, error) {
	if r.contentType == "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	r.method, r.url = http.MethodPost, discordgo.EndpointChannelMessages(where)
	var m sentMessage
	if err := s.call(ctx, r, &m); err != nil {
		return "", err
	}
	return m.ID, nil
}

// Edit replaces the text and the buttons of a message.
func (s *sender) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	where, err := channelID(to)
	if err != nil {
		return err
	}
	if !isID(id) {
		return rejectedError("bad_id", errors.New("the message's id is not a number"))
	}
	p := newPost(part)
	// Only new messages have these. An edited message keeps replying to the same one.
	p.Nonce, p.EnforceNonce, p.Reference = "", false, nil
	if p.Components == nil {
		p.Components = &[]discordgo.MessageComponent{}
	}
	body, err := plainjson.Marshal(p)
	if err != nil {
		return rejectedError("unencodable", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.call(ctx, request{method: http.MethodPatch, url: discordgo.EndpointChannelMessage(where, id), body: body}, new(sentMessage))
}

// FindSent looks for a part among the newest 100 messages in its chat, by its nonce. Discord does not promise to
// show nonces, so if the nonce is missing, that proves nothing, and FindSent returns an error with the fault
// Unknown: sending the part again is safe as long as Discord remembers the nonce.
func (s *sender) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	where, err := channelID(to)
	if err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var newest []sentMessage
	if err := s.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointChannelMessages(where) + "?limit=100"}, &newest); err != nil {
		return "", false, err
	}
	key := nonce(part.Key)
	found := slices.IndexFunc(newest, func(m sentMessage) bool { return m.Nonce == key })
	if found < 0 {
		return "", false, &channels.SendError{Fault: channels.Unknown, Code: "not_shown", Err: errors.New("no message shows the nonce")}
	}
	return newest[found].ID, true, nil
}

// typingDuration is how long Discord shows that the bot is typing.
const typingDuration = 10 * time.Second

// Typing shows in a channel that the bot is typing, and returns how long Discord shows that.
func (s *sender) Typing(ctx context.Context, to bus.Address) (time.Duration, error) {
	where, err := channelID(to)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return typingDuration, s.call(ctx, request{method: http.MethodPost, url: discordgo.EndpointChannelTyping(where)}, nil)
}

// MarkSeen marks a person's message as received, with a reaction.
func (s *sender) MarkSeen(ctx context.Context, at bus.Address, message string) error {
	return s.react(ctx, at, message, "👀")
}

// MarkAnswered marks a person's message as answered.
func (s *sender) MarkAnswered(ctx context.Context, at bus.Address, message string) error {
	return s.react(ctx, at, message, "✅")
}

// MarkFailed marks a person's message as one that won't be answered.
func (s *sender) MarkFailed(ctx context.Context, at bus.Address, message string) error {
	return s.react(ctx, at, message, "⚠️")
}

// react adds the bot's reaction to a person's message, given its id on the bus.
func (s *sender) react(ctx context.Context, at bus.Address, message, emoji string) error {
	where, err := channelID(at)
	if err != nil {
		return err
	}
	id := message[strings.LastIndex(message, ":")+1:] // Discord's own id, which contains no colon
	if !isID(id) {
		return rejectedError("bad_id", errors.New("the message's id is not a number"))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.call(ctx, request{method: http.MethodPut, url: discordgo.EndpointMessageReaction(where, id, emoji, "@me")}, nil)
}

// mentionNobody returns an empty list of allowed mentions. It goes with every text that is sent: without a list, or
// with null, Discord notifies everybody that the text names.
func mentionNobody() *discordgo.MessageAllowedMentions {
	return &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
}

// newPost returns the JSON form of a part. Nobody that its text names is notified.
func newPost(part channels.Part) post {
	p := post{
		Content: part.Text, AllowedMentions: mentionNobody(), Flags: discordgo.MessageFlagsSuppressEmbeds,
	}
	if part.Key != "" {
		p.Nonce, p.EnforceNonce = nonce(part.Key), true
	}
	if len(part.Buttons) > 0 {
		p.Components = new(buttonRows(part.Buttons))
	}
	// In Discord, a part that belongs to an earlier message would need a new thread; it replies to that message
	// instead.
	if id := cmp.Or(part.ReplyTo, part.Under); isID(id) {
		p.Reference = &discordgo.MessageReference{MessageID: id, FailIfNotExists: new(false)}
	}
	return p
}

// nonce derives a nonce from a part's key, within the 25 characters that Discord accepts.
func nonce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// MaxButtons implements channels.ButtonShower: it returns how many buttons a message may have, and how many bytes
// of data each may carry. Without a receiver, nobody would learn of a press, so a Channel that only sends returns
// 0, 0.
func (s *sender) MaxButtons() (count, bytes int) {
	if s.onlySends {
		return 0, 0
	}
	return maxButtonsPerRow * maxButtonRows, maxButtonData
}
