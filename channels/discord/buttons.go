package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
)

const (
	// What Discord takes of buttons: so many rows of so many, and of what each brings
	// back when it is pressed, in bytes, without the number that keeps two apart.
	buttonsInRow  = 5
	mostRows      = 5
	mostPressData = 96
	// answerTime is how long Discord waits for an answer to what somebody did, less what
	// the way takes; then it tells them that it failed. lateTime is how long it waits
	// once it was told to.
	answerTime = 2 * time.Second
	lateTime   = 10 * time.Minute
)

// MostButtons implements channels.ButtonShower. Where nobody receives, nobody hears of a
// press.
func (c *Channel) MostButtons() (count, bytes int) {
	if c.sendsOnly {
		return 0, 0
	}
	return buttonsInRow * mostRows, mostPressData
}

// rows are buttons as Discord shows them.
func rows(buttons []bus.Button) (all []discordgo.MessageComponent) {
	for from := 0; from < len(buttons); from += buttonsInRow {
		var row discordgo.ActionsRow
		for i, b := range buttons[from:min(from+buttonsInRow, len(buttons))] {
			row.Components = append(row.Components, discordgo.Button{
				Label: b.Label, Style: discordgo.SecondaryButton, CustomID: strconv.Itoa(from+i) + " " + b.Says,
			})
		}
		all = append(all, row)
	}
	return all
}

// An interaction is what somebody did otherwise than by a message: pressed a button, or gave a
// slash command. Discord brings it once.
type interaction struct {
	ID          string                    `json:"id"`
	Application string                    `json:"application_id"`
	Type        discordgo.InteractionType `json:"type"`
	Token       string                    `json:"token"` // by which it is answered
	Guild       string                    `json:"guild_id"`
	Channel     string                    `json:"channel_id"`
	Place       *place                    `json:"channel"`
	User        *user                     `json:"user"` // in direct messages
	Member      *struct {
		member
		User *user `json:"user"`
	} `json:"member"` // in servers
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

// says is what a button says, or a command as it is typed; "" if it is of neither.
func (d *interaction) says() string {
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

// takeInteraction takes what somebody did.
func (r *receiver) takeInteraction(ctx context.Context, data json.RawMessage) {
	d := new(interaction)
	if err := json.Unmarshal(data, d); err != nil {
		// What does not have this form is none of ours; nobody waits for its answer.
		r.channel.log.LogAttrs(ctx, slog.LevelError, "what somebody did cannot be read and is left out", slog.Int("bytes", len(data)))
		return
	}
	if d.Place != nil && d.Place.ID == d.Channel {
		d.Place.Guild = d.Guild
		r.channel.directory.note(*d.Place)
	}
	if d.says() != "" && isID(d.ID) && isID(d.Channel) {
		r.beside.Go(func() { r.publishInteraction(ctx, d) })
	}
}

// publishInteraction publishes what somebody did, beside what people say, and tells them then. If that
// takes longer than Discord waits, it is told to wait first.
func (r *receiver) publishInteraction(ctx context.Context, d *interaction) {
	done := make(chan error, 1)
	long, cancel := context.WithTimeout(ctx, lateTime)
	defer cancel()
	r.beside.Go(func() { done <- r.deliverInteraction(long, d) })
	wait := time.NewTimer(r.channel.pulse.answer)
	defer wait.Stop()
	var err error
	deferred := false
	select {
	case err = <-done:
	case <-wait.C:
		deferred = r.channel.answer(ctx, d, discordgo.InteractionResponseDeferredChannelMessageWithSource, "") == nil
		err = <-done
	}
	words := ""
	switch {
	case errors.Is(err, channels.ErrNotAdmitted):
		words = channels.NotAdmitted
	case err != nil && ctx.Err() != nil:
		return // another process does not know of it, and Discord tells them that it failed
	case err != nil:
		words = "This could not be stored, so it does nothing. Please do it again."
		r.channel.log.LogAttrs(ctx, slog.LevelWarn, "what somebody did was not stored in time; they are told so", slog.Any("error", err))
	case deferred || d.Type == discordgo.InteractionApplicationCommand:
		words = "I have got `" + strings.ReplaceAll(d.says(), "`", "") + "`."
	}
	r.channel.tell(context.WithoutCancel(ctx), d, deferred, words)
}

// deliverInteraction publishes what somebody did, trying until it is done or ctx ends.
func (r *receiver) deliverInteraction(ctx context.Context, d *interaction) error {
	wait := new(retryWait)
	for {
		in, err := r.channel.interactionInbound(ctx, d)
		if err == nil {
			err = r.publisher.publish(ctx, in)
		}
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) || !wait.pause(ctx, err) {
			return err //nolint:wrapcheck // do reads it
		}
	}
}

// interactionInbound is what somebody's interaction says to the agent.
func (c *Channel) interactionInbound(ctx context.Context, d *interaction) (bus.Inbound, error) {
	p, err := c.directory.place(ctx, d.Channel)
	if err != nil {
		return bus.Inbound{}, err
	}
	in := bus.Inbound{
		ID: c.messageID(c.directory.self().ID, d.Channel, "press:"+d.ID), Kind: bus.Said, Text: d.says(), Mentioned: true,
		At: c.replyAddress(p), Group: d.Guild != "", SentAt: momentOf(d.ID),
		// A command in a chat of one person's own is as good as typed: who is not known
		// is told there how to be admitted.
		Pressed: d.Type == discordgo.InteractionMessageComponent || d.Guild != "",
	}
	who, as := d.User, (*member)(nil)
	if d.Member != nil {
		who, as = cmp.Or(d.Member.User, d.User), &d.Member.member
	}
	if who == nil || !isID(who.ID) {
		return bus.Inbound{}, errors.New("nobody is named who did it")
	}
	in.From = bus.Person{ID: c.person(who.ID), Name: displayName(who, as)}
	if d.Message != nil {
		in.ReplyTo = d.Message.ID
	}
	return in, nil
}

// tell answers what somebody did: with words that they alone see, or without any.
func (c *Channel) tell(ctx context.Context, d *interaction, deferred bool, words string) {
	var err error
	switch {
	case deferred:
		var body []byte
		if body, err = json.Marshal(discordgo.WebhookEdit{Content: &words, AllowedMentions: mentionNobody()}); err == nil {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			url := discordgo.EndpointWebhookMessage(d.Application, d.Token, "@original")
			err = c.call(ctx, request{method: http.MethodPatch, url: url, body: body}, nil)
		}
	case words != "":
		err = c.answer(ctx, d, discordgo.InteractionResponseChannelMessageWithSource, words)
	default:
		err = c.answer(ctx, d, discordgo.InteractionResponseDeferredMessageUpdate, "")
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "who has done something could not be told that it has arrived", slog.Any("error", err))
	}
}

// answer is the first answer to what somebody did. Its errors do not show the token.
func (c *Channel) answer(ctx context.Context, d *interaction, kind discordgo.InteractionResponseType, words string) error {
	answer := discordgo.InteractionResponse{Type: kind}
	if kind != discordgo.InteractionResponseDeferredMessageUpdate {
		answer.Data = &discordgo.InteractionResponseData{
			Content: words, Flags: discordgo.MessageFlagsEphemeral,
			AllowedMentions: mentionNobody(),
		}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, request{method: http.MethodPost, url: discordgo.EndpointInteractionResponse(d.ID, d.Token), body: body}, nil)
}
