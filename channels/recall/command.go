package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/channels/markup"
	"parley/sessions"
	"parley/sessions/search/sight"
	"parley/tools/recall"
)

// Command is the name of the command.
const Command = "recall"

// IsCommand reports whether a message is the command.
func IsCommand(in bus.Inbound) bool { return in.Kind == bus.Command && in.Text == Command }

const (
	// maxShown is how many hits a message shows in addition to memories and knowledge, and shownBytes is the
	// maximum length of each passage.
	maxShown   = 8
	shownBytes = 300
	// answerTimeout limits how long the platform waits for the command to be accepted.
	answerTimeout = 10 * time.Second
)

// Handle answers the command of a person who may talk to the bot. When it returns nil, the answer is on its way. No
// session's log contains the answer, so that erasing what was said elsewhere leaves no copy of it here.
func (f *Finder) Handle(ctx context.Context, in bus.Inbound) error {
	words := strings.TrimSpace(in.Args)
	text := fmt.Sprintf(textUsage, markup.Verbatim(f.cfg.Prefix(in.At.Channel)))
	if words != "" {
		var err error
		if text, err = f.answer(ctx, in, words); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			f.cfg.Log.Warn("what was said could not be searched", slog.Any("error", err))
			text = textCannotSearch
		}
	}
	// If the platform delivers the command again, the answer has the same id and is sent only once.
	err := bus.PublishOutbound(ctx, f.cfg.Bus, bus.Outbound{ID: bus.ReplyID(in.ID), To: in.At, ReplyTo: in.ReplyTo, Text: text, At: time.Now()})
	if errors.Is(err, bus.ErrInvalid) {
		f.cfg.Log.Error("an answer to a search cannot be sent", slog.String("id", in.ID), slog.Any("error", err))
		return nil
	}
	return err
}

// answer returns what a person is shown of what they look for: in a group, what was said in that group, what the agent
// remembers of it and for everybody, and the operator's knowledge; in a private chat with the bot, everything that they
// may see.
func (f *Finder) answer(ctx context.Context, in bus.Inbound, words string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	session, err := f.cfg.SessionOf(ctx, in)
	if err != nil {
		return "", err
	}
	if session == "" {
		return textNothing, nil
	}
	who := sight.Asker{Session: session, Private: !in.Group}
	if who.Accounts, err = f.accounts(ctx, in.From.ID); err != nil {
		return "", err
	}
	var facts sight.Facts = f
	r := request{Words: words, Limit: maxShown, Agent: sessions.AgentOf(session), Person: in.From.ID}
	if in.Group {
		facts = groupFacts{f, sight.Place{Channel: in.At.Channel, Chat: in.At.Chat}}
	}
	found, err := f.find(ctx, facts, who, r)
	if err != nil {
		return "", err
	}
	text := answerText(found)
	if in.Group {
		text += textGroupOnly
	}
	return text, nil
}

// answerText returns passages in the form that people read, or a sentence that says that there are none.
func answerText(a recall.Answer) string {
	if len(a.Found) == 0 {
		return strings.TrimSpace(textNothing + "\n" + a.Note)
	}
	var b strings.Builder
	b.WriteString(textFound)
	for _, p := range a.Found {
		about := []string{}
		for _, one := range []string{p.Who, minuteOf(p.When), p.Where} {
			if one == "you" {
				one = textYou
			}
			if one != "" {
				about = append(about, markup.OneLine(one, shownBytes))
			}
		}
		fmt.Fprintf(&b, "\n%s:\n\n> %s\n", strings.Join(about, ", "), markup.OneLine(p.Text, shownBytes))
		if p.Link != "" {
			fmt.Fprintf(&b, "%s\n", p.Link)
		}
	}
	if a.Note != "" {
		b.WriteString("\n" + a.Note)
	}
	return b.String()
}

// minuteOf returns a time, accurate to the minute, in the form that people read; "" if it isn't a time.
func minuteOf(when string) string {
	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}
