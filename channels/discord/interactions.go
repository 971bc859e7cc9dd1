package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
	"parley/tools/plainjson"
)

// deferredTimeout is how long publishing an interaction is retried. It is shorter than the 15 minutes for which
// Discord waits for the answer after it has been told to wait.
const deferredTimeout = 10 * time.Minute

// An interaction is something that a person did other than writing a message: pressing a button, or giving a slash
// command. Discord delivers it once.
type interaction struct {
	ID          string                    `json:"id"`
	Application string                    `json:"application_id"`
	Type        discordgo.InteractionType `json:"type"`
	Token       string                    `json:"token"` // authorizes the answer to the interaction
	Guild       string                    `json:"guild_id"`
	Channel     string                    `json:"channel_id"`
	Place       *place                    `json:"channel"`
	User        *user                     `json:"user"` // set in direct messages: who did it
	Member      *struct {
		member
		User *user `json:"user"`
	} `json:"member"` // set in servers: who did it
	Message *struct {
		ID string `json:"id"`
	} `json:"message"`
	Data struct {
		Name     string `json:"name"`
		CustomID string `json:"custom_id"`
		Options  []struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

// typedText returns the text that a button sends, or the command as a person would have typed it; "" if the
// interaction is neither.
func (d *interaction) typedText() string {
	switch d.Type {
	case discordgo.InteractionMessageComponent:
		_, says, _ := strings.Cut(d.Data.CustomID, " ")
		return says
	case discordgo.InteractionApplicationCommand:
		words := []string{"/" + d.Data.Name}
		for _, o := range d.Data.Options {
			words = append(words, fmt.Sprint(o.Value))
		}
		return strings.Join(words, " ")
	}
	return ""
}

// interactions publishes what people do other than writing messages, and answers them.
type interactions struct {
	translator    *translator
	directory     *directory
	publish       func(context.Context, bus.Inbound) error
	responder     responder
	answerTimeout time.Duration  // how long publishing may take before Discord is told to wait
	running       sync.WaitGroup // interactions that are being published
	log           *slog.Logger
}

// receive reads an interaction from an event and publishes it in the background. It ignores what is neither a press of
// a button nor a command.
func (r *interactions) receive(ctx context.Context, data json.RawMessage) {
	d := new(interaction)
	if err := json.Unmarshal(data, d); err != nil {
		// An event that does not have this form is not an interaction that we know; nobody is waiting for an
		// answer.
		r.log.LogAttrs(ctx, slog.LevelError, "what somebody did cannot be read and is left out", slog.Int("bytes", len(data)))
		return
	}
	if d.Place != nil && d.Place.ID == d.Channel {
		d.Place.Guild = d.Guild
		r.directory.setPlace(*d.Place)
	}
	if d.typedText() != "" && isID(d.ID) && isID(d.Channel) {
		r.running.Go(func() { r.publishInteraction(ctx, d) })
	}
}

// publishInteraction publishes an interaction without waiting for the messages of its channel, then answers the
// person. If publishing takes longer than Discord waits, it first tells Discord to wait.
func (r *interactions) publishInteraction(ctx context.Context, d *interaction) {
	done := make(chan error, 1)
	long, cancel := context.WithTimeout(ctx, deferredTimeout)
	defer cancel()
	r.running.Go(func() { done <- r.publishInteractionOrRetry(long, d) })
	wait := time.NewTimer(r.answerTimeout)
	defer wait.Stop()
	var err error
	deferred := false
	select {
	case err = <-done:
	case <-wait.C:
		deferred = r.responder.answerInteraction(ctx, d, discordgo.InteractionResponseDeferredChannelMessageWithSource, "") == nil
		err = <-done
	}
	words := ""
	switch {
	case errors.Is(err, channels.ErrNotAdmitted):
		words = channels.TextNotAdmitted
	case err != nil && ctx.Err() != nil:
		return // no other process knows of the interaction, and Discord tells the person that it failed
	case err != nil:
		words = textNotSaved
		r.log.LogAttrs(ctx, slog.LevelWarn, "what somebody did was not stored in time; they are told so", slog.Any("error", err))
	case deferred || d.Type == discordgo.InteractionApplicationCommand:
		words = textCommandReceived(strings.ReplaceAll(d.typedText(), "`", ""))
	}
	r.responder.finishInteraction(context.WithoutCancel(ctx), d, deferred, words)
}

// publishInteractionOrRetry publishes an interaction, retrying until that succeeds, the person turns out not to be
// admitted, or ctx ends.
func (r *interactions) publishInteractionOrRetry(ctx context.Context, d *interaction) error {
	wait := new(retryWait)
	for {
		in, err := r.translator.interactionInbound(ctx, d)
		if err == nil {
			err = r.publish(ctx, in)
		}
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) || !wait.pause(ctx, err) {
			return err //nolint:wrapcheck // publishInteraction reads it
		}
	}
}

// interactionInbound translates an interaction into the message that the agent gets.
func (t *translator) interactionInbound(ctx context.Context, d *interaction) (bus.Inbound, error) {
	p, err := t.directory.findPlace(ctx, d.Channel)
	if err != nil {
		return bus.Inbound{}, err
	}
	in := bus.Inbound{
		ID: t.messageID(t.directory.botUser().ID, d.Channel, "press:"+d.ID), Kind: bus.Said, Text: d.typedText(), Mentioned: true,
		At: t.replyAddress(p), Group: d.Guild != "", SentAt: snowflakeTime(d.ID),
		// A command in a person's private chat with the bot counts as typed, so that a person who is not admitted
		// is told how they can be.
		Pressed: d.Type == discordgo.InteractionMessageComponent || d.Guild != "",
	}
	who, as := d.User, (*member)(nil)
	if d.Member != nil {
		who, as = cmp.Or(d.Member.User, d.User), &d.Member.member
	}
	if who == nil || !isID(who.ID) {
		return bus.Inbound{}, errors.New("it does not say who did it")
	}
	in.From = bus.Person{ID: t.personID(who.ID), Name: displayName(who, as)}
	if d.Message != nil {
		in.ReplyTo = d.Message.ID
	}
	return in, nil
}

// A responder answers people who press buttons or give commands.
type responder struct{ *api }

// finishInteraction answers an interaction after it was published: with words that only the person sees, or
// silently if words is "". deferred says that Discord has already been told to wait.
func (r *responder) finishInteraction(ctx context.Context, d *interaction, deferred bool, words string) {
	var err error
	switch {
	case deferred:
		var body []byte
		if body, err = plainjson.Marshal(discordgo.WebhookEdit{Content: &words, AllowedMentions: mentionNobody()}); err == nil {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			url := discordgo.EndpointWebhookMessage(d.Application, d.Token, "@original")
			err = r.call(ctx, request{method: http.MethodPatch, url: url, body: body}, nil)
		}
	case words != "":
		err = r.answerInteraction(ctx, d, discordgo.InteractionResponseChannelMessageWithSource, words)
	default:
		err = r.answerInteraction(ctx, d, discordgo.InteractionResponseDeferredMessageUpdate, "")
	}
	if err != nil {
		r.log.LogAttrs(ctx, slog.LevelDebug, "who has done something could not be told that it has arrived", slog.Any("error", err))
	}
}

// answerInteraction sends the first answer to an interaction. Its errors do not contain
// the interaction's token.
func (r *responder) answerInteraction(ctx context.Context, d *interaction, kind discordgo.InteractionResponseType, words string) error {
	answer := discordgo.InteractionResponse{Type: kind}
	if kind != discordgo.InteractionResponseDeferredMessageUpdate {
		answer.Data = &discordgo.InteractionResponseData{
			Content: words, Flags: discordgo.MessageFlagsEphemeral,
			AllowedMentions: mentionNobody(),
		}
	}
	body, err := plainjson.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.call(ctx, request{method: http.MethodPost, url: discordgo.EndpointInteractionResponse(d.ID, d.Token), body: body}, nil)
}
