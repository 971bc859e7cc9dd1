package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/problems"
	"parley/sessions/bill"
)

// defaultCapsSubject is the subject under which the book records which of the default caps were announced.
const defaultCapsSubject = "default caps"

// A DefaultCaps announces the caps on models that apply although the operator has set none.
type DefaultCaps struct {
	Caps          Caps                                // those that apply
	IsSet         func(key string) bool               // whether the operator has set a key in [budget]
	Notes         CapNotes                            // remembers what was announced
	WasUsedBefore func(context.Context) (bool, error) // whether people have used the bot before
	// Tell sends a text to the owners. The ids of the messages are derived from suffix, so that a repeated call
	// sends nothing twice.
	Tell func(ctx context.Context, suffix, text string) error
	Log  *slog.Logger
}

// CapNotes is the part of the book that remembers announcements; see [channels.Notes].
type CapNotes interface {
	SetNote(ctx context.Context, subject, about, value string) error
	Noted(ctx context.Context, subject, about string) (channels.Note, error)
}

// Announce announces each default cap once: in the log, and to the owners of a bot that people used before there were
// caps. After an error the caller may call it again.
func (d *DefaultCaps) Announce(ctx context.Context) error {
	text, notes := d.describe()
	told, err := d.Notes.Noted(ctx, defaultCapsSubject, "")
	if err != nil {
		return err
	}
	announced := strings.Fields(told.Value)
	if !slices.ContainsFunc(notes, func(n string) bool { return !slices.Contains(announced, n) }) {
		return nil
	}
	d.Log.Warn("what models cost is bounded by default", slog.String("caps", strings.ReplaceAll(text, "`", "")))
	used, err := d.WasUsedBefore(ctx)
	if err == nil && told.Value == "" && used {
		err = d.Tell(ctx, "#caps", text)
	}
	if err != nil && !errors.Is(err, problems.ErrNobody) {
		return err
	}
	return d.Notes.SetNote(ctx, defaultCapsSubject, "", strings.Join(append(announced, notes...), " "))
}

// describe says, in words, which caps apply although the operator has set none, and returns for each of them
// a note by which the book remembers that people were told; "" and none if there are no such caps.
func (d *DefaultCaps) describe() (words string, notes []string) {
	var caps, keys []string
	for _, one := range []struct {
		key, who string
		most     int64
	}{{"user_day", "for one person in a day", d.Caps.UserDay}, {"day", "for everyone together in a day", d.Caps.Day}, {"month", "for everyone together in a month", d.Caps.Month}} {
		if !d.IsSet(one.key) {
			caps, keys = append(caps, bill.Dollars(one.most)+" "+one.who), append(keys, "`"+one.key+"`")
			notes = append(notes, one.key+"="+bill.Dollars(one.most))
		}
	}
	if len(caps) == 0 {
		return "", nil
	}
	return fmt.Sprintf(textBounded,
		strings.Join(caps, ", "), strings.Join(keys, ", ")), notes
}
