package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// The commands by which owners decide who may talk to the bot. Buttons send them.
const (
	admitCommand  = "admit"  // with the code of a request
	refuseCommand = "refuse" // likewise
	removeCommand = "remove" // with the person, CHANNEL:USER
)

// An ownerDecision is an owner's decision about a person.
type ownerDecision struct{ command, about string }

// result returns the decision in the word that the audit uses.
func (v ownerDecision) result() string {
	switch v.command {
	case admitCommand:
		return "admitted"
	case refuseCommand:
		return "refused"
	}
	return "revoked"
}

// readDecision returns the decision that a message's text expresses; false if it expresses none, or was said in a
// group.
func readDecision(in bus.Inbound) (ownerDecision, bool) {
	words := strings.Fields(in.Text)
	if len(words) != 2 || in.Group || in.Kind != bus.Said && in.Kind != "" {
		return ownerDecision{}, false
	}
	command, is := strings.CutPrefix(strings.ToLower(words[0]), "/")
	switch command {
	case admitCommand, refuseCommand, removeCommand:
		return ownerDecision{command, strings.Trim(words[1], "`")}, is
	}
	return ownerDecision{}, false
}

// requestButtons returns the buttons for a message that tells owners about a request.
func requestButtons(code string) []bus.Button {
	return []bus.Button{
		{Label: "Admit", Says: "/" + admitCommand + " " + code},
		{Label: "Refuse", Says: "/" + refuseCommand + " " + code},
	}
}

// handleDecision carries out an owner's decision, and tells all owners of the channel, in place of the request.
// Only after that is the platform told that the button press has arrived. If the press comes again, handleDecision
// does nothing; to another process, the press is about a request that is over.
func (d *receiver) handleDecision(ctx context.Context, in bus.Inbound, v ownerDecision) (err error) {
	if !d.recentDecisions.add(in.ID, d.Now()) {
		return nil
	}
	defer func() {
		if err != nil {
			d.recentDecisions.forget(in.ID)
		}
	}()
	person, done, err := d.carryOutDecision(ctx, v)
	if was, known := d.untoldOutcomes.Load(in.ID); known && errors.Is(err, channels.ErrNoCode) {
		told := was.(decisionOutcome)
		person, done, err = told.person, told.action, nil
	}
	if errors.Is(err, channels.ErrNoCode) {
		text := textRequestClosed
		if v.command == removeCommand {
			text = textNoAccess
		}
		if v.command == admitCommand { // the process that admitted them may have died before it told them
			d.welcomeAdmitted(ctx)
		}
		return d.replyOwn(ctx, bus.Outbound{ID: bus.DerivedID(in.ID, "#people"), To: in.At, ReplyTo: in.ReplyTo, Text: text, At: d.Now()})
	}
	if err != nil {
		return fmt.Errorf("decide about a person: %w", err)
	}
	if _, known := d.untoldOutcomes.LoadOrStore(in.ID, decisionOutcome{person, done}); !known {
		d.reportDecision(ctx, in, v, person)
	}
	if err := d.tellOwners(ctx, in, v, person, done); err != nil {
		return err // the press will come again
	}
	d.untoldOutcomes.Delete(in.ID)
	if v.command == admitCommand {
		d.welcomeAdmitted(ctx)
	}
	return nil
}

// A decisionOutcome is what an owner's decision has caused.
type decisionOutcome struct {
	person channels.Pairing
	action string
}

// reportDecision reports a decision to operators.
func (d *Gateway) reportDecision(ctx context.Context, in bus.Inbound, v ownerDecision, person channels.Pairing) {
	d.Log.Info("an owner has decided about a person", slog.String("channel", d.Name), slog.String("decision", v.command),
		slog.String("person", person.Person), slog.String("by", in.From.ID))
	if d.OnDecided != nil {
		d.OnDecided(ctx, in.From.ID, person.Person, v.result())
	}
}

// tellOwners tells all owners of the channel about a decision. The message takes the place of the request, if there
// was one.
func (d *receiver) tellOwners(ctx context.Context, in bus.Inbound, v ownerDecision, person channels.Pairing, done string) error {
	owners, err := d.findOwnerChats(ctx)
	if err != nil {
		return err
	}
	for _, at := range owners {
		out := bus.Outbound{ID: bus.DerivedID(at.String()+" "+in.ID, "#people"), To: at, At: d.Now(),
			Text: describePerson(person) + " " + done + fmt.Sprintf(" by %s.", markup.Verbatim(in.From.ID))}
		if v.command != removeCommand {
			out.Subject = requestSubject(v.about)
		}
		if v.command == admitCommand {
			out.Buttons = []bus.Button{{Label: "Remove", Says: "/" + removeCommand + " " + person.Person}}
		}
		if err := d.replyOwn(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// carryOutDecision admits, refuses or removes a person on this channel, and returns them and what was done. It
// returns channels.ErrNoCode if there is no such person or request. It does not remove owners.
func (d *receiver) carryOutDecision(ctx context.Context, v ownerDecision) (channels.Pairing, string, error) {
	all, err := d.Pairings.Pairings(ctx)
	if err != nil {
		return channels.Pairing{}, "", err
	}
	for _, p := range all {
		channel, _, _ := strings.Cut(p.Person, ":")
		switch {
		case channel != d.Name || p.Owner:
		case v.command == removeCommand && p.Approved && p.Person == v.about:
			return p, "was removed", d.Pairings.Revoke(ctx, p.Person)
		case p.Approved || !strings.EqualFold(p.Code, v.about):
		case v.command == refuseCommand:
			return p, "was refused", d.Pairings.Revoke(ctx, p.Person)
		case v.command == admitCommand:
			admitted, err := d.Pairings.Admit(ctx, channels.Admission{Code: p.Code})
			admitted.Name = p.Name
			return admitted, "is admitted", err
		}
	}
	return channels.Pairing{}, "", channels.ErrNoCode
}

// replyOwn publishes one of the gateway's own messages. If the bus refuses the message, or has no room for it, the
// message is dropped: what people say after it must not wait for it.
func (d *receiver) replyOwn(ctx context.Context, out bus.Outbound) error {
	err := bus.PublishOutbound(ctx, d.Bus, out)
	if errors.Is(err, bus.ErrInvalid) || errors.Is(err, bus.ErrFull) {
		d.Log.Warn("somebody could not be told", slog.String("channel", d.Name), slog.String("id", out.ID), slog.Any("error", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reply to %s: %w", out.To, err)
	}
	return nil
}

// requestSubject returns the subject of the messages to owners about a request: the message with the decision
// replaces the one with the request.
func requestSubject(code string) string { return "admission " + strings.ToUpper(code) }

// describePerson returns a Markdown text that says who a person is.
func describePerson(p channels.Pairing) string {
	name := []rune(p.Name)
	id := markup.Verbatim(p.Person)
	if len(name) == 0 {
		return id
	}
	return markup.Verbatim(string(name[:min(len(name), maxShownName)])) + " (" + id + ")"
}
