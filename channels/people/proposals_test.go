package people_test

import (
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

// proposeFacts has an agent propose facts to the person telegram:1, and returns the proposals' ids. A fact that
// begins with "agent:" is for all of the agent's conversations.
func (s *commandTest) proposeFacts(covers int64, facts ...string) (ids []string) {
	s.Helper()
	const session = "main:telegram:D1"
	var all []channels.Proposal
	for _, fact := range facts {
		p := channels.Proposal{
			Scope: channels.ScopePerson, Owner: "telegram:1", Person: "telegram:1", At: bus.Address{Channel: "telegram", Chat: "D1"}, Expires: time.Now().Add(time.Hour),
		}
		text, is := strings.CutPrefix(fact, "agent:")
		if p.Text = text; is {
			p.Scope, p.Owner = channels.ScopeAgent, "main"
		}
		all = append(all, p)
	}
	if err := s.book.StoreProposals(s.Context(), session, covers, all); err != nil {
		s.Fatal(err)
	}
	for range 2 { // as after a crash
		if err := s.commands.Propose(s.Context(), session, covers); err != nil {
			s.Fatal(err)
		}
	}
	kept, err := s.book.ProposalsFrom(s.Context(), session, covers)
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range kept {
		ids = append(ids, p.ID)
	}
	return ids
}

// wantMemory checks the memory of a person or an agent.
func (s *commandTest) wantMemory(scope, owner, want string) {
	s.Helper()
	if got, _, err := s.book.Memory(s.Context(), scope, owner); err != nil || got != want {
		s.Errorf("of %s is remembered %q, %v, want %q", owner, got, err, want)
	}
}

// A proposal is shown with buttons. It is kept or refused by a button or in words, and the message shows the
// result.
func TestProposalsAreDecided(t *testing.T) {
	s := newCommandTest(t)
	s.setMemory("telegram:1", "hates rain\n")
	ids := s.proposeFacts(7, "Likes tea.", "Lives in Ulm.")
	first := s.wantOnly("telegram", "1. Likes tea. (`"+ids[0]+"`)", "2. Lives in Ulm. (`"+ids[1]+"`)", "/memory keep ID")
	if len(first.Buttons) != 4 || first.Buttons[0] != (bus.Button{Label: "Keep 1", Says: "/memory keep " + ids[0]}) || first.Buttons[3] != (bus.Button{Label: "Refuse 2", Says: "/memory refuse " + ids[1]}) {
		t.Errorf("the buttons are %+v", first.Buttons)
	}
	if first.Session != "main:telegram:D1" || first.Subject == "" {
		t.Errorf("it is %+v", first)
	}
	s.wantMemory(channels.ScopePerson, "telegram:1", "hates rain\n")
	s.handleTwice(s.privateCommand("telegram:1", "memory", ""))
	if out := s.wantOnly("telegram", "> hates rain", "1. Likes tea. (`"+ids[0]+"`)"); len(out.Buttons) != 4 {
		t.Errorf("the buttons are %+v", out.Buttons)
	}

	press := s.privateCommand("telegram:1", "memory", "keep "+ids[0])
	press.Pressed = true
	s.handleTwice(press)
	next := s.wantOnly("telegram", "1. Likes tea. **Kept.**", "2. Lives in Ulm. (`")
	if next.Subject != first.Subject || next.To != first.To || len(next.Buttons) != 2 {
		t.Errorf("in place of it stands %+v", next)
	}
	s.wantMemory(channels.ScopePerson, "telegram:1", "hates rain\n\nLikes tea.")
	s.handleTwice(s.privateCommand("telegram:1", "memory", "Refuse `"+strings.ToUpper(ids[1])+"`"))
	both := s.bothSentTo("telegram")
	if both[0].Subject != first.Subject || len(both[0].Buttons) > 0 || !strings.Contains(both[0].Text, "2. Lives in Ulm. **Refused.**") || strings.Contains(both[0].Text, "ID") {
		t.Errorf("in place of it stands %+v", both[0])
	}
	if !strings.Contains(both[1].Text, "won't propose it again: Lives in Ulm.") {
		t.Errorf("the answer is %q", both[1].Text)
	}
	s.wantMemory(channels.ScopePerson, "telegram:1", "hates rain\n\nLikes tea.")
	s.handleTwice(s.privateCommand("telegram:1", "memory", ""))
	if out := s.wantOnly("telegram", "Likes tea."); strings.Contains(out.Text, "Ulm") || len(out.Buttons) > 0 {
		t.Errorf("it says %+v", out)
	}
}

// bothSentTo returns the two messages that were sent on a channel.
func (s *commandTest) bothSentTo(channel string) [2]bus.Outbound {
	s.Helper()
	all := s.sentTo(channel)
	if len(all) != 2 {
		s.Fatalf("on %s was said %+v", channel, all)
	}
	return [2]bus.Outbound(all)
}

// Nobody else may decide. About what agents know in all conversations, only owners decide.
func TestOnlyThePersonDecidesAboutAProposal(t *testing.T) {
	s := newCommandTest(t)
	ids := s.proposeFacts(7, "Likes tea.", "agent:Deploys are on Mondays.")
	s.wantOnly("telegram", "2. For all my conversations with everybody: Deploys are on Mondays.")
	for by, id := range map[string]string{"telegram:2": ids[0], "telegram:1": ids[1]} {
		s.handleTwice(s.privateCommand(by, "memory", "keep "+id))
		s.wantOnly("telegram", "isn't waiting for your decision")
	}
	group := s.privateCommand("telegram:1", "memory", "keep "+ids[0])
	group.Group = true
	s.handleTwice(group)
	s.wantOnly("telegram", "only works in a private chat")
	s.wantMemory(channels.ScopePerson, "telegram:1", "")
	s.wantMemory(channels.ScopeAgent, "main", "")
	owner := s.privateCommand("telegram:1", "memory", "keep "+ids[0]+" "+ids[1])
	owner.From.Owner = true
	s.handleTwice(owner)
	both := s.bothSentTo("telegram")
	if !strings.Contains(both[1].Text, "remember this: Likes tea.\n\nI'll remember this: Deploys") {
		t.Errorf("the answer is %q", both[1].Text)
	}
	s.wantMemory(channels.ScopePerson, "telegram:1", "Likes tea.")
	s.wantMemory(channels.ScopeAgent, "main", "Deploys are on Mondays.")
}

// A proposal that is too late, was erased, or does not fit into the memory is not kept.
func TestProposalsThatCannotBeKept(t *testing.T) {
	s := newCommandTest(t)
	now := time.Now()
	s.commands.Now = func() time.Time { return now }
	s.commands.MaxMemory = 20
	id := s.proposeFacts(7, "Likes tea and coffee.")[0]
	s.wantOnly("telegram", "Likes tea")
	s.handleTwice(s.privateCommand("telegram:1", "memory", "keep "+id))
	s.wantOnly("telegram", "no room for more")
	s.wantMemory(channels.ScopePerson, "telegram:1", "")
	now = now.Add(2 * time.Hour)
	s.handleTwice(s.privateCommand("telegram:1", "memory", ""))
	if out := s.wantOnly("telegram", "don't remember anything"); strings.Contains(out.Text, "tea") {
		t.Errorf("what has expired is shown: %q", out.Text)
	}
	s.handleTwice(s.privateCommand("telegram:1", "memory", "clear"))
	s.wantOnly("telegram", "erased")
	s.handleTwice(s.privateCommand("telegram:1", "memory", "keep "+id))
	s.wantOnly("telegram", "isn't waiting")
	if err := s.commands.Propose(t.Context(), "main:telegram:D1", 7); err != nil {
		t.Error(err)
	}
	if all := s.sentTo("telegram"); len(all) > 0 {
		t.Errorf("of what was erased is told %+v", all)
	}
	for _, args := range []string{"keep", "refuse", "keepsake x"} {
		s.handleTwice(s.privateCommand("telegram:1", "memory", args))
		s.wantOnly("telegram", "/memory keep ID")
	}
	now = time.Now()
	s.proposeFacts(8, "Likes cocoa.")
	if out := s.wantOnly("telegram", "1. Likes cocoa."); len(out.Buttons) != 2 || out.Buttons[0].Label != "Keep" {
		t.Errorf("the buttons are %+v", out.Buttons)
	}
}
