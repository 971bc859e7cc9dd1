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

// openedInterval is the minimum time between two welcomes for a person who repeatedly opens one of the bot's places.
const openedInterval = 10 * time.Second

// placeGreeter greets people who open one of the bot's places.
type placeGreeter struct {
	*Gateway
	toStrangers *autoReplier
	toAdmitted  *autoReplier
}

// show tells a person who opened one of the bot's places what the bot can do for them, or that they may not talk to
// it. It stores nothing and asks nobody to admit them: the person has to write something for that.
func (w *placeGreeter) show(ctx context.Context, in bus.Inbound) error {
	welcomer, can := channels.AsWelcomer(w.Channel)
	if !can {
		return nil
	}
	judged, ok, err := w.Gate.Judge(ctx, w.Channel, w.Pairings, in.From)
	if err != nil {
		return err
	}
	in.From = judged
	who, replier := "stranger", w.toStrangers
	if ok {
		who, replier = "guest", w.toAdmitted
	}
	key := fmt.Sprintf("%s %s %s %s", who, in.From.ID, in.At, in.Args)
	replier.enqueueOnce(key, openedInterval, autoReply{to: in.At, run: func(ctx context.Context) error {
		shown := channels.Welcome{Admitted: ok, Text: w.notAdmittedText(in.From.ID)}
		if ok {
			shown.Text = w.aboutText(ctx, in)
		}
		err := welcomer.Welcome(ctx, in, shown)
		if err != nil {
			w.Log.Debug("who has opened a place of the bot's could not be welcomed", slog.String("channel", w.Name), slog.Any("error", err))
		}
		return err
	}})
	return nil
}

// aboutText returns a text that says what the bot is, and what it can do for a person who may talk to it; or only
// that no agent answers there.
func (w *placeGreeter) aboutText(ctx context.Context, in bus.Inbound) string {
	text := textJustWrite
	if w.AboutText != nil {
		to, err := w.Route(ctx, in)
		if err != nil {
			return textNoSessionToTalk
		}
		text = w.AboutText(to.Session, in)
	}
	if w.IntroductionText == nil {
		return text
	}
	intro, err := w.IntroductionText(ctx)
	if err != nil {
		w.Log.Warn("somebody was not told what the bot is", slog.String("channel", w.Name), slog.String("about", in.From.ID), slog.Any("error", err))
	}
	return strings.TrimSpace(text + "\n\n" + intro)
}

// notAdmittedText returns a text that tells a person who is not admitted how they can be.
func (w *placeGreeter) notAdmittedText(person string) string {
	text := fmt.Sprintf(textNotYet, person)
	_, user, _ := strings.Cut(person, ":")
	switch w.Gate.settings().policy() {
	case policyPairing:
		return text + textWriteForCode
	case policyList:
		return text + fmt.Sprintf(textAskForListing, w.Name, user)
	case policyMembers:
		return text + textMembersOnly
	}
	return text
}
