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
	// buttonsInRow is how many buttons Discord accepts in a row, maxButtonRows how many rows, and
	// maxButtonData how many bytes of data a button can carry, which Discord sends back when it is
	// pressed, not counting the number that buttonRows puts before the data to keep two buttons
	// apart.
	buttonsInRow  = 5
	maxButtonRows = 5
	maxButtonData = 96
	// answerTimeout is how long Discord waits for the first answer to an interaction, less
	// the time of the request; after it Discord tells the person that the interaction
	// failed. deferredTimeout is how long Discord waits once it was told to wait.
	answerTimeout   = 2 * time.Second
	deferredTimeout = 10 * time.Minute
)

// MostButtons implements channels.ButtonShower: it returns how many buttons a message may
// have, and how many bytes each may carry. Without a receiver nobody would learn of a
// press, so a Channel that only sends returns 0, 0.
func (c *Channel) MostButtons() (count, bytes int) {
	if c.sendsOnly {
		return 0, 0
	}
	return buttonsInRow * maxButtonRows, maxButtonData
}

// buttonRows returns buttons in rows of five, as Discord wants them.
func buttonRows(buttons []bus.Button) (all []discordgo.MessageComponent) {
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

// An interaction is what a person did other than writing a message: pressing a button, or
// giving a slash command. Discord delivers it once.
type interaction struct {
	ID          string                    `json:"id"`
	Application string                    `json:"application_id"`
	Type        discordgo.InteractionType `json:"type"`
	Token       string                    `json:"token"` // authorises the answer to the interaction
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

// typedText returns the text that a button stands for, or the command as a person would
// have typed it; "" if the interaction is neither.
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

// receiveInteraction reads an interaction from an event and publishes it in the
// background.
func (r *receiver) receiveInteraction(ctx context.Context, data json.RawMessage) {
	d := new(interaction)
	if err := json.Unmarshal(data, d); err != nil {
		// An event without this form is not an interaction that we know; nobody waits for its answer.
		r.channel.log.LogAttrs(ctx, slog.LevelError, "what somebody did cannot be read and is left out", slog.Int("bytes", len(data)))
		return
	}
	if d.Place != nil && d.Place.ID == d.Channel {
		d.Place.Guild = d.Guild
		r.channel.directory.setPlace(*d.Place)
	}
	if d.typedText() != "" && isID(d.ID) && isID(d.Channel) {
		r.beside.Go(func() { r.publishInteraction(ctx, d) })
	}
}

// publishInteraction publishes an interaction without waiting for the messages of its channel, and
// then answers the person who made it. If publishing takes longer than Discord waits, it first
// tells Discord to wait.
func (r *receiver) publishInteraction(ctx context.Context, d *interaction) {
	done := make(chan error, 1)
	long, cancel := context.WithTimeout(ctx, deferredTimeout)
	defer cancel()
	r.beside.Go(func() { done <- r.publishInteractionOrRetry(long, d) })
	wait := time.NewTimer(r.channel.timing.answer)
	defer wait.Stop()
	var err error
	deferred := false
	select {
	case err = <-done:
	case <-wait.C:
		deferred = r.channel.answerInteraction(ctx, d, discordgo.InteractionResponseDeferredChannelMessageWithSource, "") == nil
		err = <-done
	}
	words := ""
	switch {
	case errors.Is(err, channels.ErrNotAdmitted):
		words = channels.NotAdmitted
	case err != nil && ctx.Err() != nil:
		return // no other process knows the interaction, and Discord tells the person that it failed
	case err != nil:
		words = "This could not be stored, so it does nothing. Please do it again."
		r.channel.log.LogAttrs(ctx, slog.LevelWarn, "what somebody did was not stored in time; they are told so", slog.Any("error", err))
	case deferred || d.Type == discordgo.InteractionApplicationCommand:
		words = "I have got `" + strings.ReplaceAll(d.typedText(), "`", "") + "`."
	}
	r.channel.finishInteraction(context.WithoutCancel(ctx), d, deferred, words)
}

// publishInteractionOrRetry publishes an interaction, retrying until that succeeds, the
// person is not admitted, or ctx ends.
func (r *receiver) publishInteractionOrRetry(ctx context.Context, d *interaction) error {
	wait := new(retryWait)
	for {
		in, err := r.channel.interactionInbound(ctx, d)
		if err == nil {
			err = r.publisher.publish(ctx, in)
		}
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) || !wait.pause(ctx, err) {
			return err //nolint:wrapcheck // publishInteraction reads it
		}
	}
}

// interactionInbound translates an interaction into the message that the agent gets.
func (c *Channel) interactionInbound(ctx context.Context, d *interaction) (bus.Inbound, error) {
	p, err := c.directory.findPlace(ctx, d.Channel)
	if err != nil {
		return bus.Inbound{}, err
	}
	in := bus.Inbound{
		ID: c.messageID(c.directory.botUser().ID, d.Channel, "press:"+d.ID), Kind: bus.Said, Text: d.typedText(), Mentioned: true,
		At: c.replyAddress(p), Group: d.Guild != "", SentAt: snowflakeTime(d.ID),
		// A command in a person's own chat with the bot counts as typed: a person who is
		// not admitted is told there how to be.
		Pressed: d.Type == discordgo.InteractionMessageComponent || d.Guild != "",
	}
	who, as := d.User, (*member)(nil)
	if d.Member != nil {
		who, as = cmp.Or(d.Member.User, d.User), &d.Member.member
	}
	if who == nil || !isID(who.ID) {
		return bus.Inbound{}, errors.New("nobody is named who did it")
	}
	in.From = bus.Person{ID: c.personID(who.ID), Name: displayName(who, as)}
	if d.Message != nil {
		in.ReplyTo = d.Message.ID
	}
	return in, nil
}

// finishInteraction answers an interaction after it was published: with words that only the person
// sees, or silently if words is "". deferred says that Discord was told before to wait.
func (c *Channel) finishInteraction(ctx context.Context, d *interaction, deferred bool, words string) {
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
		err = c.answerInteraction(ctx, d, discordgo.InteractionResponseChannelMessageWithSource, words)
	default:
		err = c.answerInteraction(ctx, d, discordgo.InteractionResponseDeferredMessageUpdate, "")
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "who has done something could not be told that it has arrived", slog.Any("error", err))
	}
}

// answerInteraction sends the first answer to an interaction. Its errors do not contain
// the interaction's token.
func (c *Channel) answerInteraction(ctx context.Context, d *interaction, kind discordgo.InteractionResponseType, words string) error {
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
