package gateway

import (
	"context"
	"log/slog"

	"parley/bus"
	"parley/channels"
)

// introducedSubject is the subject of the book's notes about people who were told what the bot is.
const introducedSubject = "introduced"

// introduce tells people other than owners at their first contact what the bot is: each person once, in a private
// chat or by a whisper, or, on platforms that can't whisper, each group once. The book notes who was told, so
// nobody is told twice; after a crash before the note, the message is published again under the same id and still
// sent only once. introduce does not hold up the person's message: if it fails, the next message tries again.
func (d *receiver) introduce(ctx context.Context, in bus.Inbound) {
	if d.IntroductionText == nil || d.Notes == nil || in.From.Owner {
		return
	}
	_, whispers := channels.AsWhisperer(d.Channel)
	about := in.From.ID
	if in.Group && !whispers {
		about = bus.Address{Channel: in.At.Channel, Chat: in.At.Chat}.String()
	}
	if !d.recentIntroductions.add(about, d.Now()) {
		return
	}
	if err := d.introduceTo(ctx, in, about); err != nil {
		d.recentIntroductions.forget(about)
		if ctx.Err() == nil {
			d.Log.Warn("somebody was not told what the bot is", slog.String("channel", d.Name), slog.String("about", about), slog.Any("error", err))
		}
	}
}

// introduceTo publishes the introduction and notes that in the book, unless the book has that note already. If about
// is a person in a group, it whispers to them instead, and the note is made once that was sent.
func (d *receiver) introduceTo(ctx context.Context, in bus.Inbound, about string) error {
	known, err := d.Notes.Noted(ctx, introducedSubject, about)
	if err != nil || known.Value != "" {
		return err
	}
	text, err := d.IntroductionText(ctx)
	if err != nil || text == "" {
		return err
	}
	if in.Group && about == in.From.ID {
		d.whisperIntroduction(in, text)
		return nil
	}
	to := in.At
	if !in.Group {
		to.Thread = ""
	}
	out := bus.Outbound{ID: bus.DerivedID(about, "#"+introducedSubject), To: to, Text: text, At: d.Now()}
	if err := bus.PublishOutbound(ctx, d.Bus, out); err != nil && !bus.IsRefusal(err) {
		return err
	}
	return d.Notes.SetNote(ctx, introducedSubject, about, in.At.String())
}

// whisperIntroduction introduces the bot to one person in a group. The whisper bypasses the
// bus, so it is noted in the book only after it was sent.
func (d *receiver) whisperIntroduction(in bus.Inbound, text string) {
	whisper := d.whisperTo(in)
	whisper.key, whisper.compose = bus.DerivedID(in.From.ID, "#"+introducedSubject), fixedText(text)
	whisper.onSent = func(ctx context.Context, err error) {
		if err == nil {
			err = d.Notes.SetNote(ctx, introducedSubject, in.From.ID, in.At.String())
		}
		if err != nil {
			d.recentIntroductions.forget(in.From.ID)
			d.Log.Warn("somebody was not told what the bot is", slog.String("channel", d.Name), slog.String("about", in.From.ID), slog.Any("error", err))
		}
	}
	if !d.toAdmitted.enqueue(whisper) {
		d.recentIntroductions.forget(in.From.ID) // the queue has no room
	}
}
