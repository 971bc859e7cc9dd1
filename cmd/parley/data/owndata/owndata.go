// Package owndata carries out the commands /forget and /export, with which a person erases what they said to the
// bot, or has it sent to them, in a private chat with the bot.
//
// Handle answers the commands. What must be done is recorded in the book before the platform is told that the
// command has arrived, and Run does it. So it is done no matter how often a process dies, and its answer, whose id
// is derived from the command's, is sent once. export.go makes the files of an export.
//
// In addition, remembered.go serves what agents remember to those who operate the bot, and proposals.go stores what
// agents propose to remember.
package owndata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/data/erase"
	"parley/sessions"
	"parley/sessions/schedules"
	"parley/tools/plainjson"
)

// These are the commands.
const (
	Forget = "forget"
	Export = "export"
)

const (
	confirmWithin = 10 * time.Minute // how soon "/forget yes" must follow "/forget"
	exportEvery   = 10 * time.Minute // how long a person must wait before the next export
	sweepEvery    = time.Minute      // how often to look for requests that another process has left undone
	knowFor       = 48 * time.Hour   // how long a completed command is recorded, in case a platform delivers it again
)

// These are the subjects of the book's notes.
const (
	askedToForgetSubject = "forget_asked" // about a person: the id of their command /forget
	exportedSubject      = "exported"     // about a person: the id of their last command /export
	requestsSubject      = "own_data"     // about a command that is not carried out yet: the request, as JSON
	erasedSubject        = "own_erased"   // about a command that has erased: its answer until that was published, then answered
)

const answered = "answered" // the value of a note about a command whose answer was published

// An Eraser erases what a person said; its receipt says what was erased, and what is kept and why.
type Eraser interface {
	PersonSoon(ctx context.Context, person string) (erase.Receipt, error)
}

// A Store stores the logs of what was said.
type Store interface {
	sessions.Reader
	// SessionsOf lists the sessions in which only the person has spoken, and those in which others have, too.
	SessionsOf(ctx context.Context, person string) (alone, shared []string, err error)
}

// Schedules looks up the schedules of people.
type Schedules interface {
	OfPerson(ctx context.Context, person string) ([]schedules.Schedule, error)
}

// Ratings looks up a person's ratings of answers.
type Ratings interface {
	RatingsBy(ctx context.Context, person string) ([]channels.Rating, error)
}

// Memories looks up what agents remember about a person, and what they have proposed to the person to remember.
type Memories interface {
	Memory(ctx context.Context, scope, owner string) (content string, untrusted bool, err error)
	ProposalsTo(ctx context.Context, person string) ([]channels.Proposal, error)
}

// Config holds the parts that Commands needs.
type Config struct {
	Notes channels.Notes
	Bus   bus.Bus
	Store Store
	// Ratings are exported along with what was said.
	Ratings Ratings
	// Memories, if set, are exported, too.
	Memories Memories
	// Schedules are exported, too.
	Schedules Schedules
	Eraser    func() Eraser               // according to the current configuration
	Prefix    func(channel string) string // returns the prefix of commands on a channel, such as "/"
	Log       *slog.Logger
	Now       func() time.Time // nil means time.Now
}

// Commands receives the commands that people give about their own data, and carries them out.
type Commands struct {
	Config
	wake chan struct{}
}

// New returns Commands.
func New(c Config) *Commands {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Commands{Config: c, wake: make(chan struct{}, 1)}
}

// A request is a command to be carried out for a person.
type request struct {
	Do     string      `json:"do"`
	Person string      `json:"person"`
	To     bus.Address `json:"to"`
	Quote  string      `json:"quote,omitempty"`
	Until  time.Time   `json:"until"` // what was said later is not exported
}

// Handle answers a command from somebody who may talk to the bot. When it returns nil, the command was recorded
// durably, or answered.
func (d *Commands) Handle(ctx context.Context, in bus.Inbound) error {
	if in.Group {
		return d.reply(ctx, in, fmt.Sprintf(textOnlyInPrivate, d.Prefix(in.At.Channel), in.Text))
	}
	if in.Text == Export {
		return d.handleExport(ctx, in)
	}
	switch strings.ToLower(strings.TrimSpace(in.Args)) {
	case "":
		return d.explain(ctx, in)
	case "yes":
		return d.handleForget(ctx, in)
	}
	return d.reply(ctx, in, fmt.Sprintf(textForgetUsage, d.Prefix(in.At.Channel)))
}

// explain tells the person what would be erased and how to confirm that, and records that it did. A person who was
// just told is only reminded, because counting what would be erased requires looking through all conversations.
func (d *Commands) explain(ctx context.Context, in bus.Inbound) error {
	p := d.Prefix(in.At.Channel)
	asked, err := d.Notes.Noted(ctx, askedToForgetSubject, in.From.ID)
	if err != nil {
		return err
	}
	if asked.Value != in.ID && d.isRecent(asked) {
		if err := d.Notes.SetNote(ctx, askedToForgetSubject, in.From.ID, in.ID); err != nil {
			return err
		}
		return d.reply(ctx, in, fmt.Sprintf(textJustTold, p))
	}
	alone, shared, err := d.Store.SessionsOf(ctx, in.From.ID)
	if err != nil {
		return err
	}
	if err := d.Notes.SetNote(ctx, askedToForgetSubject, in.From.ID, in.ID); err != nil {
		return err
	}
	text := fmt.Sprintf(textForget,
		in.From.ID, len(alone), len(shared), p, p)
	return d.reply(ctx, in, text)
}

// isRecent reports whether a person's command /forget, recorded in the note asked, may still be confirmed.
func (d *Commands) isRecent(asked channels.Note) bool {
	return asked.Value != "" && d.Now().Sub(asked.At) <= confirmWithin
}

// handleForget answers /forget, or records "/forget yes" as a request if it confirms a recent /forget.
func (d *Commands) handleForget(ctx context.Context, in bus.Inbound) error {
	// A completed command that is delivered again was already answered, under the same id. It must not erase what
	// was said since, although the person may have said "/forget" again in the meantime.
	if done, err := d.Notes.Noted(ctx, erasedSubject, in.ID); err != nil || done.Value != "" {
		return err
	}
	asked, err := d.Notes.Noted(ctx, askedToForgetSubject, in.From.ID)
	if err != nil {
		return err
	}
	if !d.isRecent(asked) {
		// A command that is being carried out and is delivered again will be answered under the same id.
		known, err := d.Notes.Noted(ctx, requestsSubject, in.ID)
		if err != nil || known.Value != "" {
			return err
		}
		return d.reply(ctx, in, fmt.Sprintf(textForgetFirst, d.Prefix(in.At.Channel)))
	}
	return d.record(ctx, in)
}

// handleExport records /export as a request, unless the person was just sent an export.
func (d *Commands) handleExport(ctx context.Context, in bus.Inbound) error {
	last, err := d.Notes.Noted(ctx, exportedSubject, in.From.ID)
	if err != nil {
		return err
	}
	if last.Value != "" && last.Value != in.ID && d.Now().Sub(last.At) < exportEvery {
		return d.reply(ctx, in, textJustSent)
	}
	if last.Value != in.ID { // otherwise the same command was delivered again
		if err := d.record(ctx, in); err != nil {
			return err
		}
	}
	return d.Notes.SetNote(ctx, exportedSubject, in.From.ID, in.ID)
}

// record writes a request to the book, so that it is carried out even if this process dies, and wakes up Run.
func (d *Commands) record(ctx context.Context, in bus.Inbound) error {
	raw, err := plainjson.Marshal(request{Do: in.Text, Person: in.From.ID, To: in.At, Quote: in.ReplyTo, Until: d.Now()})
	if err != nil {
		return fmt.Errorf("encode a request: %w", err)
	}
	if err := d.Notes.SetNote(ctx, requestsSubject, in.ID, string(raw)); err != nil {
		return err
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return nil
}

// reply answers a command at once. If the platform delivers the command again, the answer has the
// same id and is sent only once.
func (d *Commands) reply(ctx context.Context, in bus.Inbound, text string) error {
	return d.publish(ctx, bus.Outbound{ID: bus.ReplyID(in.ID), To: in.At, ReplyTo: in.ReplyTo, Text: text})
}

// publish publishes a message. It returns nil for one that the bus refuses permanently, because nobody could be
// told.
func (d *Commands) publish(ctx context.Context, out bus.Outbound) error {
	out.At = d.Now()
	err := bus.PublishOutbound(ctx, d.Bus, out)
	if errors.Is(err, bus.ErrInvalid) {
		d.Log.Error("an answer about a person's own data cannot be sent", slog.String("id", out.ID), slog.Any("error", err))
		return nil
	}
	return err
}

// Run carries out the recorded requests, until ctx is done: those that this process receives at once, and after a
// while those that another process has left undone.
func (d *Commands) Run(ctx context.Context) error {
	for {
		d.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		case <-time.After(sweepEvery):
		}
	}
}

// sweep carries out all recorded requests. One that fails stays recorded, and is tried again with the next sweep.
func (d *Commands) sweep(ctx context.Context) {
	all, err := d.Notes.AllNoted(ctx, requestsSubject)
	if err == nil {
		err = d.forgetOldCommands(ctx)
	}
	if err != nil {
		d.reportFailure(ctx, "", err)
	}
	for _, note := range all {
		var r request
		err := json.Unmarshal([]byte(note.Value), &r)
		if err == nil {
			err = d.carryOut(ctx, note.About, r)
		}
		if err == nil {
			err = d.Notes.SetNote(ctx, requestsSubject, note.About, "")
		}
		if err != nil {
			d.reportFailure(ctx, note.About, err)
		}
	}
}

func (d *Commands) reportFailure(ctx context.Context, id string, err error) {
	if ctx.Err() == nil {
		d.Log.Error("what a person asked about their own data is not done yet; trying again", slog.String("id", id), slog.Any("error", err))
	}
}

// carryOut carries out a request, given the id of its command. It can be repeated after it was cut off.
func (d *Commands) carryOut(ctx context.Context, id string, r request) error {
	if r.Do == Export {
		return d.export(ctx, id, r)
	}
	done, err := d.Notes.Noted(ctx, erasedSubject, id)
	if err != nil || done.Value == answered {
		return err
	}
	if done.Value == "" {
		receipt, err := d.Eraser().PersonSoon(ctx, r.Person)
		if err != nil {
			return err
		}
		done.Value = receiptInWords(receipt)
		if err := d.Notes.SetNote(ctx, erasedSubject, id, done.Value); err != nil {
			return err
		}
	} // otherwise this process or another one died after it had erased
	if err := d.publish(ctx, bus.Outbound{ID: bus.ReplyID(id), To: r.To, ReplyTo: r.Quote, Text: done.Value}); err != nil {
		return err
	}
	return d.Notes.SetNote(ctx, erasedSubject, id, answered)
}

// forgetOldCommands removes the records of commands that were completed so long ago that no platform delivers them
// again.
func (d *Commands) forgetOldCommands(ctx context.Context) error {
	all, err := d.Notes.AllNoted(ctx, erasedSubject)
	if err != nil {
		return err
	}
	for _, note := range all {
		if note.Value != answered || d.Now().Sub(note.At) < knowFor {
			continue
		}
		if err := d.Notes.SetNote(ctx, erasedSubject, note.About, ""); err != nil {
			return err
		}
	}
	return nil
}

// receiptInWords puts a receipt into words for the person.
func receiptInWords(r erase.Receipt) string {
	var b strings.Builder
	b.WriteString(textErased)
	for _, line := range []struct {
		what string
		n    int64
	}{
		{"whole conversations", int64(len(r.Log.Sessions))},
		{"your part of shared conversations", int64(len(r.Log.PartlyErased))},
		{"log entries", r.Log.Entries},
		{"folders with files and memory", int64(len(r.Workspaces))},
		{"messages on their way", int64(r.Bus.Messages + r.Bus.DeadLetters)},
	} {
		if line.n > 0 {
			fmt.Fprintf(&b, "- %s: %d\n", line.what, line.n)
		}
	}
	b.WriteString("\nNot erased:\n\n")
	for _, kept := range r.Kept {
		fmt.Fprintf(&b, "- %s: %s\n", kept.What, kept.Why)
	}
	return b.String()
}
