package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels"
)

// What follows /memory when a person decides about a proposal, before the ids of proposals.
const (
	keepWord   = "keep"
	refuseWord = "refuse"
)

// errFull says that a memory has no room for more.
var errFull = errors.New("the memory is full")

// Propose tells the person what an agent proposes to remember from a session's log up to the entry covers. It may be
// called again: the person is told once.
func (d *Commands) Propose(ctx context.Context, session string, covers int64) error {
	all, err := d.Book.ProposalsFrom(ctx, session, covers)
	if err != nil || len(all) == 0 { // they were erased
		return err
	}
	out := d.proposalMessage(all)
	out.ID, out.Session = "proposed:"+all[0].ID, session
	return d.publishTo(ctx, out)
}

// proposalMessage returns the message that shows the proposals from one part of a log, with buttons for the open
// ones. A later message replaces it.
func (d *Commands) proposalMessage(all []channels.Proposal) bus.Outbound {
	at := all[0].At
	out := bus.Outbound{To: at, Subject: "proposals " + all[0].ID}
	var b strings.Builder
	b.WriteString(textProposals)
	for i, p := range all {
		open := d.isOpen(p)
		fmt.Fprintf(&b, "%d. %s%s", i+1, textFor(p), p.Text)
		switch {
		case open:
			fmt.Fprintf(&b, " (`%s`)\n", p.ID)
			out.Buttons = append(out.Buttons, buttonsFor(p, i, len(all))...)
		case p.State == channels.ProposalKept:
			b.WriteString(textIsKept)
		case p.State == channels.ProposalRefused:
			b.WriteString(textIsRefused)
		default:
			b.WriteString(textIsExpired)
		}
	}
	if len(out.Buttons) > 0 {
		fmt.Fprintf(&b, textHowToDecide, d.Prefix(at.Channel), all[0].Expires.UTC().Format("January 2"))
	}
	out.Text = b.String()
	return out
}

// buttonsFor returns the buttons for one of several proposals.
func buttonsFor(p channels.Proposal, i, of int) []bus.Button {
	number := ""
	if of > 1 {
		number = fmt.Sprint(" ", i+1)
	}
	return []bus.Button{
		{Label: "Keep" + number, Says: "/" + Memory + " " + keepWord + " " + p.ID},
		{Label: "Refuse" + number, Says: "/" + Memory + " " + refuseWord + " " + p.ID},
	}
}

// textFor says that a proposal would be remembered for the agent; "" if it's for the person.
func textFor(p channels.Proposal) string {
	if p.Scope == channels.ScopeAgent {
		return textForAgent
	}
	return ""
}

// isOpen reports whether a proposal can still be kept.
func (d *Commands) isOpen(p channels.Proposal) bool {
	return p.State == channels.ProposalOpen && p.Expires.After(d.now())
}

// openProposals returns the proposals that a person can still keep, to be appended to a text; "" if there are none.
func (d *Commands) openProposals(ctx context.Context, in bus.Inbound) (text string, buttons []bus.Button, err error) {
	all, err := d.Book.ProposalsTo(ctx, in.From.ID)
	if err != nil {
		return "", nil, err
	}
	all = slices.DeleteFunc(all, func(p channels.Proposal) bool { return !d.isOpen(p) })
	if len(all) == 0 {
		return "", nil, nil
	}
	var b strings.Builder
	b.WriteString(textAlsoProposed)
	for i, p := range all {
		fmt.Fprintf(&b, "%d. %s%s (`%s`)\n", i+1, textFor(p), p.Text, p.ID)
		buttons = append(buttons, buttonsFor(p, i, len(all))...)
	}
	p := d.Prefix(in.At.Channel)
	fmt.Fprintf(&b, textHowToDecide, p, all[0].Expires.UTC().Format("January 2"))
	return b.String(), buttons, nil
}

// decide carries out what a person decides about proposals, and updates the message that shows them. It also replies,
// unless the person pressed a button of that message.
func (d *Commands) decide(ctx context.Context, in bus.Inbound, word string, ids []string) error {
	var answers []string
	shown := map[string]bool{} // by the session and the entry
	for _, id := range ids {
		p, err := d.Book.DecideProposal(ctx, channels.ProposalDecision{
			ID: strings.Trim(id, "`.,;"), By: in.From.ID, Owner: in.From.Owner, Keep: word == keepWord, Append: d.appendToMemory,
		})
		switch {
		case errors.Is(err, channels.ErrNoProposal):
			answers = append(answers, fmt.Sprintf(textNoProposal, d.Prefix(in.At.Channel)))
			continue
		case errors.Is(err, errFull):
			answers = append(answers, fmt.Sprintf(textMemoryFull, d.Prefix(in.At.Channel)))
			continue
		case err != nil:
			return err
		}
		if part := fmt.Sprint(p.Session, " ", p.Covers); !shown[part] {
			shown[part] = true
			if err := d.showDecided(ctx, in, p); err != nil {
				return err
			}
		}
		if !in.Pressed || in.At != p.At {
			answers = append(answers, answerTo(p))
		}
	}
	if len(answers) == 0 {
		return nil
	}
	return d.reply(ctx, in, strings.Join(slices.Compact(answers), "\n\n"))
}

// showDecided updates the message that shows p and the proposals that came with it.
func (d *Commands) showDecided(ctx context.Context, in bus.Inbound, p channels.Proposal) error {
	all, err := d.Book.ProposalsFrom(ctx, p.Session, p.Covers)
	if err != nil || len(all) == 0 {
		return err
	}
	out := d.proposalMessage(all)
	out.ID = bus.DerivedID(in.ID, "#"+p.ID)
	return d.publishTo(ctx, out)
}

// answerTo says in words what became of a proposal.
func answerTo(p channels.Proposal) string {
	if p.State == channels.ProposalKept {
		return fmt.Sprintf(textKept, p.Text)
	}
	return fmt.Sprintf(textRefused, p.Text)
}

// appendToMemory returns a memory with one more paragraph, or errFull if it would then be longer than MaxMemory.
func (d *Commands) appendToMemory(old, text string) (string, error) {
	if old = strings.TrimRight(old, " \t\r\n"); old != "" {
		old += "\n\n"
	}
	if d.MaxMemory > 0 && len(old)+len(text) > d.MaxMemory {
		return "", errFull
	}
	return old + text, nil
}
