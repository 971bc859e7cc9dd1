// Package people shows people what is remembered about them (/memory), and links a person's accounts on several
// channels (/link), in private chats with the bot. There an owner also gets a link to the web page (/ui).
//
// Each command is carried out before its arrival is acknowledged to the platform. It may arrive again, but takes
// effect only once, and the ids of its answers are derived from the command's.
package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
)

// The commands.
const (
	Memory = "memory"
	Link   = "link"
)

// A Book is the part of the channels' book (the record of sends, chats, people and asks) that Commands needs.
type Book interface {
	channels.Links
	channels.Proposals
	Memory(ctx context.Context, scope, owner string) (content string, untrusted bool, err error)
	// Forget erases what is remembered, including its traces in files.
	Forget(ctx context.Context, scope, owner string) error
	// SetNote and Noted are those of channels.Notes.
	SetNote(ctx context.Context, subject, about, value string) error
	Noted(ctx context.Context, subject, about string) (channels.Note, error)
}

// erasedSubject is the subject of the notes about commands that have erased something. If a platform delivers such a
// command again, it must not erase what has been remembered since. Package owndata, which uses the same subject,
// removes such notes after some days.
const erasedSubject = "own_erased"

// Commands carries out the commands /memory, /link and /ui.
type Commands struct {
	Book   Book
	Bus    bus.Bus
	Prefix func(channel string) string // returns what commands begin with on a channel, such as "/"
	Page   PageLink
	// MaxMemory is how many bytes a memory may have after a proposal is added to it; 0 sets no limit.
	MaxMemory int
	Now       func() time.Time // nil means time.Now
	// OnLinksChanged, if set, is called after people have been linked or separated.
	OnLinksChanged func()
}

// IsPersonal reports whether Commands carries out a command.
func IsPersonal(command bus.Inbound) bool {
	return command.Text == Memory || command.Text == Link || command.Text == UI
}

// Handle carries out a command. When it returns nil, the command is done and answered.
func (d *Commands) Handle(ctx context.Context, in bus.Inbound) error {
	p := d.Prefix(in.At.Channel)
	words := wordsOf(in)
	switch {
	case in.Group:
		return d.reply(ctx, in, fmt.Sprintf(textOnlyInPrivate, p, in.Text))
	case in.Text == UI:
		return d.openPage(ctx, in)
	case in.Text == Memory && words == "":
		return d.show(ctx, in)
	case in.Text == Memory && words == "clear":
		if err := d.clear(ctx, in); err != nil {
			return err
		}
		return d.reply(ctx, in, textErased+fmt.Sprintf(textForgetErasesThose, p))
	case in.Text == Memory:
		if said := strings.Fields(words); len(said) > 1 && (said[0] == keepWord || said[0] == refuseWord) {
			return d.decide(ctx, in, said[0], said[1:])
		}
		return d.reply(ctx, in, fmt.Sprintf(textMemoryUsage, p))
	case words == "":
		return d.offerCode(ctx, in)
	}
	text, err := d.relink(ctx, in, words, "")
	if err != nil {
		return err
	}
	return d.reply(ctx, in, text)
}

// LinkHere carries out /link in places without a platform, such as the web page, and returns the answer. No code is
// made there, so that nobody can be talked into entering, on a platform, the code of somebody who only has a token.
func (d *Commands) LinkHere(ctx context.Context, in bus.Inbound) (answer string, err error) {
	words := wordsOf(in)
	if words != "" {
		return d.relink(ctx, in, words, textReadsToo)
	}
	all, err := d.Book.LinkedWith(ctx, in.From.ID)
	if err != nil {
		return "", err
	}
	p := d.Prefix(in.At.Channel)
	answer = fmt.Sprintf(textLinkHere, p)
	if others := namesOf(all, in.From.ID); others != "" {
		answer += fmt.Sprintf(textAlreadyLinked, others, p)
	}
	return answer, nil
}

// wordsOf returns the text after a command, in lower case and without backticks around it.
func wordsOf(in bus.Inbound) string {
	return strings.ToLower(strings.Trim(strings.TrimSpace(in.Args), "`"))
}

// relink links the sender with another account by a code, or separates them from the others, and returns the
// answer. When accounts are linked, more is added to what the other people are told.
func (d *Commands) relink(ctx context.Context, in bus.Inbound, words, more string) (answer string, err error) {
	if words == "off" {
		return d.unlink(ctx, in)
	}
	return d.link(ctx, in, words, more)
}

// noteChanged reports that people may have been linked or separated. It isn't called for every command, so that
// somebody who guesses codes causes no work for others.
func (d *Commands) noteChanged() {
	if d.OnLinksChanged != nil {
		d.OnLinksChanged()
	}
}

// clear erases what is remembered about a person, unless the same command has already done so.
func (d *Commands) clear(ctx context.Context, in bus.Inbound) error {
	done, err := d.Book.Noted(ctx, erasedSubject, in.ID)
	if err != nil || done.Value != "" {
		return err
	}
	if err := d.Book.Forget(ctx, channels.ScopePerson, in.From.ID); err != nil {
		return err
	}
	return d.Book.SetNote(ctx, erasedSubject, in.ID, "answered")
}

// maxShown is how many bytes of what is remembered are shown in a message; longer content is sent as a file.
const maxShown = 3000

// show tells a person what is remembered about them, and what an agent proposes to remember.
func (d *Commands) show(ctx context.Context, in bus.Inbound) error {
	content, _, err := d.Book.Memory(ctx, channels.ScopePerson, in.From.ID)
	if err != nil {
		return err
	}
	proposed, buttons, err := d.openProposals(ctx, in)
	if err != nil {
		return err
	}
	out := bus.Outbound{Text: textNothingRemembered, Buttons: buttons}
	switch {
	case content == "":
	case len(content) > maxShown:
		out.Text, out.File = fmt.Sprintf(textRemembered, d.Prefix(in.At.Channel)), &bus.File{Name: "memory.md", Data: []byte(content)}
	default:
		out.Text = fmt.Sprintf(textRemembered, d.Prefix(in.At.Channel)) + "\n\n> " + strings.ReplaceAll(strings.TrimSpace(content), "\n", "\n> ")
	}
	out.Text += proposed
	return d.publish(ctx, in, out)
}

// offerCode gives a person a code with which they can prove, on another channel, that they are the same person.
func (d *Commands) offerCode(ctx context.Context, in bus.Inbound) error {
	all, err := d.Book.LinkedWith(ctx, in.From.ID)
	if err != nil {
		return err
	}
	code, err := d.Book.OfferLink(ctx, channels.LinkRequest{Person: in.From.ID, Chat: in.At.String(), Cause: in.ID})
	if err != nil {
		return err
	}
	p := d.Prefix(in.At.Channel)
	text := fmt.Sprintf(textLinkCode, code)
	if others := namesOf(all, in.From.ID); others != "" {
		text += fmt.Sprintf(textAlreadyLinked, others, p)
	}
	return d.reply(ctx, in, text)
}

// link links the sender with the person who was given a code on another channel, and tells that person. It returns
// the answer for the sender.
func (d *Commands) link(ctx context.Context, in bus.Inbound, code, more string) (answer string, err error) {
	p := d.Prefix(in.At.Channel)
	wrong, since, err := d.wrongCodes(ctx, in.From.ID)
	if err != nil {
		return "", err
	}
	if wrong >= maxWrongCodes {
		return fmt.Sprintf(textTooManyCodes, wrong, since.Add(wrongCodePeriod).UTC().Format("15:04")), nil
	}
	all, err := d.Book.Link(ctx, channels.Linking{Code: code, Person: in.From.ID, Chat: in.At.String(), Cause: in.ID})
	if errors.Is(err, channels.ErrNoCode) {
		if err := d.Book.SetNote(ctx, wrongCodesSubject, in.From.ID, fmt.Sprintf("%d %d", wrong+1, since.Unix())); err != nil {
			return "", err
		}
		return fmt.Sprintf(textWrongCode, p), nil
	}
	d.noteChanged()
	if err != nil {
		return "", err
	}
	for _, l := range all {
		text := fmt.Sprintf(textLinkedByOther,
			in.From.ID, d.Prefix(channelOf(l.Person)))
		if err := d.tellLinked(ctx, in, l, "#linked", text+more); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(textLinked, namesOf(all, in.From.ID), p), nil
}

// A person may say up to maxWrongCodes wrong codes within wrongCodePeriod. The note about them contains the number of wrong
// codes and when the first one was said.
const (
	maxWrongCodes     = 10
	wrongCodePeriod   = 10 * time.Minute
	wrongCodesSubject = "wrong link codes"
)

// wrongCodes returns how many wrong codes a person has said recently, and since when they count.
func (d *Commands) wrongCodes(ctx context.Context, person string) (n int, since time.Time, err error) {
	note, err := d.Book.Noted(ctx, wrongCodesSubject, person)
	if err != nil {
		return 0, time.Time{}, err
	}
	var first int64
	if _, err := fmt.Sscan(note.Value, &n, &first); err == nil && d.now().Sub(time.Unix(first, 0)) < wrongCodePeriod {
		return n, time.Unix(first, 0), nil
	}
	return 0, d.now(), nil
}

func (d *Commands) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// unlink separates a person from those they are linked with. Those are told before the links are removed, because
// nobody would know afterward who they were. After a crash in between, they are told again, under the same ids, so
// nobody is told twice. It returns the answer for the sender.
func (d *Commands) unlink(ctx context.Context, in bus.Inbound) (answer string, err error) {
	all, err := d.Book.LinkedWith(ctx, in.From.ID)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return textNotLinked, nil
	}
	for _, l := range all {
		if err := d.tellLinked(ctx, in, l, "#unlinked", fmt.Sprintf(textUnlinkedByOther, in.From.ID)); err != nil {
			return "", err
		}
	}
	_, err = d.Book.Unlink(ctx, in.From.ID)
	d.noteChanged()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(textUnlinked, namesOf(all, in.From.ID)), nil
}

// tellLinked tells a linked person, in that person's private chat with the bot, what somebody has done with a
// command. It tells nobody if that chat is not known, or if the person gave the command themselves. suffix is
// appended to the command's id to make the message's.
func (d *Commands) tellLinked(ctx context.Context, in bus.Inbound, l channels.Link, suffix, text string) error {
	at, err := bus.ParseAddress(l.Chat)
	if err != nil || l.Person == in.From.ID {
		return nil //nolint:nilerr // nobody knows where
	}
	return d.publish(ctx, in, bus.Outbound{ID: bus.DerivedID(in.ID+" "+l.Person, suffix), To: at, Text: text})
}

func (d *Commands) reply(ctx context.Context, in bus.Inbound, text string) error {
	return d.publish(ctx, in, bus.Outbound{Text: text})
}

// publish publishes a message. A message without an id becomes the answer to the command.
func (d *Commands) publish(ctx context.Context, in bus.Inbound, out bus.Outbound) error {
	if out.ID == "" {
		out.ID, out.To, out.ReplyTo = bus.ReplyID(in.ID), in.At, in.ReplyTo
	}
	return d.publishTo(ctx, out)
}

// publishTo publishes a message, unless the bus will never accept it.
func (d *Commands) publishTo(ctx context.Context, out bus.Outbound) error {
	out.At = d.now()
	err := bus.PublishOutbound(ctx, d.Bus, out)
	if errors.Is(err, bus.ErrInvalid) {
		return nil // nothing can be said there
	}
	return err
}

// namesOf lists, in words, the linked people except for but.
func namesOf(all []channels.Link, but string) string {
	var names []string
	for _, l := range all {
		if l.Person != but {
			names = append(names, "`"+l.Person+"`")
		}
	}
	return strings.Join(names, ", ")
}

func channelOf(person string) string {
	name, _, _ := strings.Cut(person, ":")
	return name
}
