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

// A post is a message as Discord takes it. The library's own lacks the nonce.
type post struct {
	Content         string                            `json:"content"`
	Nonce           string                            `json:"nonce,omitempty"`
	EnforceNonce    bool                              `json:"enforce_nonce,omitempty"`
	AllowedMentions *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Flags           discordgo.MessageFlags            `json:"flags"`
	Reference       *discordgo.MessageReference       `json:"message_reference,omitempty"`
	// Components are the buttons. An edit that names none leaves those that there are.
	Components *[]discordgo.MessageComponent `json:"components,omitempty"`
}

// A sent message is what is read of Discord's answer.
type sentMessage struct {
	ID    string `json:"id"`
	Nonce any    `json:"nonce"` // a text or a number, as it was given
}

// Send delivers one part and returns its message id.
func (c *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	where, err := channelOf(to)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(newPost(part))
	if err != nil {
		return "", rejected("unencodable", err)
	}
	return c.create(ctx, where, request{body: body})
}

// MostFileBytes is what Discord takes in a server without boosts.
func (c *Channel) MostFileBytes() int64 { return 10_000_000 }

// SendFile delivers a file with the part's text beside it.
func (c *Channel) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	where, err := channelOf(to)
	if err != nil {
		return "", err
	}
	if !bus.IsClean(file.Name) { // the library puts it into a header as it is
		return "", rejected("bad_file_name", errors.New("the file's name has control characters"))
	}
	kind, body, err := discordgo.MultipartBodyWithJSON(newPost(part), []*discordgo.File{{
		Name: file.Name, ContentType: http.DetectContentType(file.Data), Reader: bytes.NewReader(file.Data),
	}})
	if err != nil {
		return "", rejected("unencodable", err)
	}
	return c.create(ctx, where, request{kind: kind, body: body})
}

// create posts a message.
func (c *Channel) create(ctx context.Context, where string, r request) (string, error) {
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

// Edit replaces the text of a message.
func (c *Channel) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	where, err := channelOf(to)
	if err != nil {
		return err
	}
	if !isID(id) {
		return rejected("bad_id", errors.New("the message's id is not a number"))
	}
	p := newPost(part)
	// These are of new messages alone. A message keeps what it answers.
	p.Nonce, p.EnforceNonce, p.Reference = "", false, nil
	if p.Components == nil {
		p.Components = &[]discordgo.MessageComponent{}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return rejected("unencodable", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, request{method: http.MethodPatch, url: discordgo.EndpointChannelMessage(where, id), body: body}, new(sentMessage))
}

// FindSent looks for a part among the newest messages of its chat, by its nonce.
// Discord does not promise to show nonces, so that not finding one proves
// nothing: sending it again is safe for as long as Discord remembers the nonce.
func (c *Channel) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	where, err := channelOf(to)
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

// typingFades is how long Discord shows that somebody is at work.
const typingFades = 10 * time.Second

// Typing shows in a channel that the bot is at work.
func (c *Channel) Typing(ctx context.Context, to bus.Address) (time.Duration, error) {
	where, err := channelOf(to)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return typingFades, c.call(ctx, request{method: http.MethodPost, url: discordgo.EndpointChannelTyping(where)}, nil)
}

// Seen shows at a person's message that it was received.
func (c *Channel) Seen(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "👀")
}

// Answered shows at a person's message that its answer is there.
func (c *Channel) Answered(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "✅")
}

// Failed shows at a person's message that there is no answer to it.
func (c *Channel) Failed(ctx context.Context, at bus.Address, message string) error {
	return c.react(ctx, at, message, "⚠️")
}

func (c *Channel) react(ctx context.Context, at bus.Address, message, emoji string) error {
	where, err := channelOf(at)
	if err != nil {
		return err
	}
	id := message[strings.LastIndex(message, ":")+1:] // Discord's own, which has no colon
	if !isID(id) {
		return rejected("bad_id", errors.New("the message's id is not a number"))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, request{method: http.MethodPut, url: discordgo.EndpointMessageReaction(where, id, emoji, "@me")}, nil)
}

// mentionNobody is whom a text may call of those whom it names. It goes with every text that is
// sent: without a list, also with one that is null, Discord calls all of them.
func mentionNobody() *discordgo.MessageAllowedMentions {
	return &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}}
}

func newPost(part channels.Part) post {
	p := post{
		Content: part.Text, AllowedMentions: mentionNobody(), Flags: discordgo.MessageFlagsSuppressEmbeds,
	}
	if part.Key != "" {
		p.Nonce, p.EnforceNonce = nonce(part.Key), true
	}
	if len(part.Buttons) > 0 {
		p.Components = new(rows(part.Buttons))
	}
	// A thread would have to be made first; what belongs to a message answers it.
	if id := cmp.Or(part.ReplyTo, part.Under); isID(id) {
		p.Reference = &discordgo.MessageReference{MessageID: id, FailIfNotExists: new(false)}
	}
	return p
}

// nonce is a part's key in the 25 characters that Discord takes.
func nonce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// channelOf is the channel of an address: a thread is a channel of its own.
func channelOf(to bus.Address) (string, error) {
	where := cmp.Or(to.Thread, to.Chat)
	if !isID(where) {
		return "", rejected("bad_address", errors.New("the chat is not a number"))
	}
	return where, nil
}

func isID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && !strings.HasPrefix(s, "+")
}

func rejected(code string, err error) error {
	return &channels.SendError{Fault: channels.Rejected, Code: code, Err: err}
}

// overloaded is the code by which Discord says that it can do no more.
const overloaded = 130000

// sendError says what a failed call means. The library's own texts are left
// behind: they hold the answer's body, which may quote what was to be sent.
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
	case code == overloaded:
		e.Fault, e.Code = channels.Retry, strconv.Itoa(code)
	case status >= 300 && status < 500 && !known:
		e.Fault = channels.Retry // somebody on the way, not Discord, turned it away
	case status >= 400 && status < 500:
		e.Fault, e.Code = channels.Rejected, strconv.Itoa(cmp.Or(code, status))
	}
	return e
}

// Refusal implements channels.RefusalReader, for Discord's JSON error codes and, where
// there was none, the HTTP status.
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
	case "10008", // unknown message, to be answered
		"50083", // the thread is archived
		"50278", // no server in common with this user
		"403", "404":
		return channels.PlaceRefused
	}
	return ""
}
