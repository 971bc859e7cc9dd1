package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
)

// openedEvery is the least time between two welcomes for a person who opens a place of the
// bot's again and again.
const openedEvery = 10 * time.Second

// showWelcome shows a person who opened a place of the bot's what the bot may do for them, or
// that they may not talk to it. It stores nothing and asks nobody to admit them: for that
// the person has to write something.
func (d *intake) showWelcome(ctx context.Context, in bus.Inbound) error {
	host, can := channels.AsHost(d.Channel)
	if !can {
		return nil
	}
	judged, ok, err := d.Gate.Judge(ctx, d.Channel, d.Pairings, in.From)
	if err != nil {
		return err
	}
	in.From = judged
	who, replier := "stranger", d.toStrangers
	if ok {
		who, replier = "guest", d.toAdmitted
	}
	key := fmt.Sprintf("%s %s %s %s", who, in.From.ID, in.At, in.Args)
	replier.enqueueOnce(key, openedEvery, autoReply{to: in.At, act: func(ctx context.Context) error {
		w := channels.Welcome{Admitted: ok, Text: d.notAdmittedText(in.From.ID)}
		if ok {
			w.Text = d.aboutText(ctx, in)
		}
		err := host.Welcome(ctx, in, w)
		if err != nil {
			d.Log.Debug("who has opened a place of the bot's could not be welcomed", slog.String("channel", d.Name), slog.Any("error", err))
		}
		return err
	}})
	return nil
}

// aboutText returns what the bot is, and what it may do for a person who may talk to it.
func (d *intake) aboutText(ctx context.Context, in bus.Inbound) string {
	text := "Just write to me."
	if d.About != nil {
		to, err := d.Route(ctx, in)
		if err != nil {
			return "I cannot be talked to here: no session could be found for this chat."
		}
		text = d.About(to.Session, in)
	}
	if d.Introduction == nil {
		return text
	}
	intro, err := d.Introduction(ctx)
	if err != nil {
		d.Log.Warn("somebody was not told what the bot is", slog.String("channel", d.Name), slog.String("about", in.From.ID), slog.Any("error", err))
	}
	return strings.TrimSpace(text + "\n\n" + intro)
}

// notAdmittedText returns a text that tells a person who is not admitted what would admit them.
func (d *intake) notAdmittedText(person string) string {
	text := fmt.Sprintf("You may not talk to this bot: you are `%s`, and it does not know you yet.", person)
	_, user, _ := strings.Cut(person, ":")
	switch d.Gate.settings().policy() {
	case byPairing:
		return text + " Write to it: it answers with a code, by which whoever runs it admits you."
	case byList:
		return text + fmt.Sprintf(" Whoever runs it admits you by adding your id to its configuration:\n\n```\n[channels.%s]\nallow_from = [%q]\n```", d.Name, user)
	case byMembers:
		return text + " Only full members of this workspace may talk to it."
	}
	return text
}
