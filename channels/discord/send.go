package discord

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
)

// A post is the JSON of a message to be sent. discordgo's own type lacks the nonce.
type post struct {
	Content         string                            `json:"content"`
	Nonce           string                            `json:"nonce,omitempty"`
	EnforceNonce    bool                              `json:"enforce_nonce,omitempty"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Flags           discordgo.MessageFlags            `json:"flags"`
	Reference       *discordgo.MessageReference       `json:"message_reference,omitempty"`
	// Components are the buttons. An edit with a nil pointer leaves the buttons as they
	// are.
	Components *[]discordgo.MessageComponent `json:"components,omitempty"`
}

// A sentMessage has the fields that are read of Discord's answer to a sent message.
type sentMessage struct {
	ID    string `json:"id"`
	Nonce any    `json:"nonce"` // a text or a number, as it was sent
}

// Send writes one part into a chat and returns the id of the message.
func (c *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	where, err := channelID(to)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(newPost(part))
	if err != nil {
		return "", rejectedError("unencodable", err)
	}
	return c.postMessage(ctx, where, request{body: body})
}

// MostFileBytes returns the largest file, in bytes, that Discord accepts in a server
// without boosts.
func (c *Channel) MostFileBytes() int64 { return 10_000_000 }

// SendFile sends a file with the part's text beside it and returns the id of the message.
func (c *Channel) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	where, err := channelID(to)
	if err != nil {
		return "", err
	}
	if !bus.IsClean(file.Name) { // the library puts it into a header as it is
		return "", rejectedError("bad_file_name", errors.New("the file's name has control characters"))
	}
	kind, body, err := discordgo.MultipartBodyWithJSON(newPost(part), []*discordgo.File{{
		Name: file.Name, ContentType: http.DetectContentType(file.Data), Reader: bytes.NewReader(file.Data),
	}})
	if err != nil {
		return "", rejectedError("unencodable", err)
	}
	return c.postMessage(ctx, where, request{kind: kind, body: body})
}

// postMessage makes the request r, which posts a message into the Discord channel with the id
// where, and returns the message's id.
func (c *Channel) postMessage(ctx context.Context, where string, r request) (string, error) {
	if r.kind == "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	r.method, r.url = http.MethodPost, discordgo.EndpointChannelMessages(where)
	var m sentMessage
	if err := c.call(ctx, r, &m); err != nil {
		return "", err
	}
	return m.ID, nil
}

// Edit replaces the text and the buttons of a message.
func (c *Channel) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	where, err := channelID(to)
	if err != nil {
		return err
	}
	if !isID(id) {
		return rejectedError("bad_id", errors.New("the message's id is not a number"))
	}
	p := newPost(part)
	// Only new messages have these. An edited message still replies to the same one.
	p.Nonce, p.EnforceNonce, p.Reference = "", false, nil
	if p.Components == nil {
		p.Components = &[]discordgo.MessageComponent{}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return rejectedError("unencodable", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, request{method: http.MethodPatch, url: discordgo.EndpointChannelMessage(where, id), body: body}, new(sentMessage))
}

// FindSent looks for a part among the newest 100 messages of its chat, by its nonce.
// Discord does not promise to show nonces, so a missing one proves nothing and gives an
// error of kind Unknown: sending the part again is safe as long as Discord remembers the
// nonce.
func (c *Channel) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	where, err := channelID(to)
	if err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var newest []sentMessage
	if err := c.call(ctx, request{method: http.MethodGet, url: discordgo.EndpointChannelMessages(where) + "?limit=100"}, &newest); err != nil {
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

// Typing shows in a channel that the bot is typing, and returns for how long Discord shows
// it.
func (c *Channel) Typing(ctx context.Context, to bus.Address) (time.Duration, error) {
	where, err := channelID(to)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return typingDuration, c.call(ctx, request{method: http.MethodPost, url: discordgo.EndpointChannelTyping(where)}, nil)
}

// Seen marks a person's message as received, with a reaction.
func (c *Channel) Seen(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "👀")
}

// Answered marks a person's message as answered.
func (c *Channel) Answered(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "✅")
}

// Failed marks a person's message as one that gets no answer.
func (c *Channel) Failed(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "⚠️")
}

// react adds the bot's reaction to a person's message, named by its id on the bus.
func (c *Channel) react(ctx context.Context, at bus.Address, message, emoji string) error {
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
	return c.call(ctx, request{method: http.MethodPut, url: discordgo.EndpointMessageReaction(where, id, emoji, "@me")}, nil)
}

// mentionNobody returns a list of allowed mentions that is empty. It goes with every text
// that is sent: without a list, or with a null one, Discord notifies everybody whom the
// text names.
func mentionNobody() *discordgo.MessageAllowedMentions {
	return &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
}

// newPost returns the JSON form of a part. Nobody whom its text names is notified.
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
	// Discord would need a new thread for parts that belong to a message; they reply to it.
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

// channelID returns the id of the Discord channel for an address: a thread is a channel of its own.
// It returns an error of kind Rejected if the address has no Discord id.
func channelID(to bus.Address) (string, error) {
	where := cmp.Or(to.Thread, to.Chat)
	if !isID(where) {
		return "", rejectedError("bad_address", errors.New("the chat is not a number"))
	}
	return where, nil
}

// isID reports whether a text has the form of a Discord id, which is a number.
func isID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && !strings.HasPrefix(s, "+")
}

// rejectedError returns an error of kind Rejected: the same call would fail again.
func rejectedError(code string, err error) error {
	return &channels.SendError{Fault: channels.Rejected, Code: code, Err: err}
}

// codeOverloaded is Discord's error code for "API resource is currently overloaded".
const codeOverloaded = 130000

// sendError classifies a failed call by its error and trace. It leaves discordgo's texts
// out: they contain the answer's body, which may quote the message to be sent.
func sendError(err error, t *requestTrace) *channels.SendError {
	status := int(t.status.Load())
	bareStatus := fmt.Errorf("HTTP status %d", status)
	e := &channels.SendError{Fault: channels.Unknown, Code: "http_" + strconv.Itoa(status), Err: bareStatus}
	code, known := 0, false
	if refusal, ok := errors.AsType[*discordgo.RESTError](err); ok && refusal.Message != nil {
		code, known = refusal.Message.Code, true
	}
	switch {
	case status == 0 && t.written.Load():
		e.Code, e.Err = "cut_off", withoutURL(err)
	case status == 0:
		e.Fault, e.Code, e.Err = channels.Retry, "unreachable", withoutURL(err)
	case status == http.StatusTooManyRequests:
		e.Fault, e.Code = channels.Retry, "429"
		e.Limited, e.Account, e.RetryAfter = true, t.global, t.retryAfter
	case status == http.StatusUnauthorized && known:
		e.Fault, e.Code, e.Err = channels.Stop, "401", errors.New("the bot token is refused")
	case code == codeOverloaded:
		e.Fault, e.Code = channels.Retry, strconv.Itoa(code)
	case status >= 300 && status < 500 && !known:
		e.Fault = channels.Retry // a proxy, not Discord, refused the request
	case status >= 400 && status < 500:
		e.Fault, e.Code = channels.Rejected, strconv.Itoa(cmp.Or(code, status))
	}
	return e
}

// Refusal implements channels.RefusalReader: it says why a send was refused, by Discord's
// JSON error code or, without one, the HTTP status; "" if the code says nothing about the
// place.
func (c *Channel) Refusal(code string) channels.Refusal {
	switch code {
	case "10003": // unknown channel
		return channels.NoSuchChat
	case "50001": // missing access
		return channels.NotInChat
	case "50007": // cannot send messages to this user
		return channels.PersonRefuses
	case "50013": // missing permissions
		return channels.NoRights
	case "10008", // unknown message: the one that is replied to
		"50083", // the thread is archived
		"50278", // no server in common with this user
		"403", "404":
		return channels.PlaceRefused
	}
	return ""
}
