package people_test

import (
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

// propose has an agent propose facts to the person telegram:1, and returns their ids. Of "agent:" facts, the agent is to
// know them in all conversations.
func (s *stage) propose(covers int64, facts ...string) (ids []string) {
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

// remembers checks what is remembered of a person or an agent.
func (s *stage) remembers(scope, owner, want string) {
	s.Helper()
	if got, _, err := s.book.Memory(s.Context(), scope, owner); err != nil || got != want {
		s.Errorf("of %s is remembered %q, %v, want %q", owner, got, err, want)
	}
}

// A proposal is shown with buttons, and kept or refused by them or in words; the message shows what has become of it.
func TestProposalsAreKeptAndRefused(t *testing.T) {
	s := newStage(t)
	s.remember("telegram:1", "hates rain\n")
	ids := s.propose(7, "Likes tea.", "Lives in Ulm.")
	first := s.says("telegram", "1. Likes tea. (`"+ids[0]+"`)", "2. Lives in Ulm. (`"+ids[1]+"`)", "/memory keep ID")
	if len(first.Buttons) != 4 || first.Buttons[0] != (bus.Button{Label: "Keep 1", Says: "/memory keep " + ids[0]}) || first.Buttons[3] != (bus.Button{Label: "Refuse 2", Says: "/memory refuse " + ids[1]}) {
		t.Errorf("the buttons are %+v", first.Buttons)
	}
	if first.Session != "main:telegram:D1" || first.Subject == "" {
		t.Errorf("it is %+v", first)
	}
	s.remembers(channels.ScopePerson, "telegram:1", "hates rain\n")
	s.take(s.command("telegram:1", "memory", ""))
	if out := s.says("telegram", "> hates rain", "1. Likes tea. (`"+ids[0]+"`)"); len(out.Buttons) != 4 {
		t.Errorf("the buttons are %+v", out.Buttons)
	}

	press := s.command("telegram:1", "memory", "keep "+ids[0])
	press.Pressed = true
	s.take(press)
	next := s.says("telegram", "1. Likes tea. **Kept.**", "2. Lives in Ulm. (`")
	if next.Subject != first.Subject || next.To != first.To || len(next.Buttons) != 2 {
		t.Errorf("in place of it stands %+v", next)
	}
	s.remembers(channels.ScopePerson, "telegram:1", "hates rain\n\nLikes tea.")
	s.take(s.command("telegram:1", "memory", "Refuse `"+strings.ToUpper(ids[1])+"`"))
	both := s.both("telegram")
	if both[0].Subject != first.Subject || len(both[0].Buttons) > 0 || !strings.Contains(both[0].Text, "2. Lives in Ulm. **Refused.**") || strings.Contains(both[0].Text, "ID") {
		t.Errorf("in place of it stands %+v", both[0])
	}
	if !strings.Contains(both[1].Text, "won't propose it again: Lives in Ulm.") {
		t.Errorf("the answer is %q", both[1].Text)
	}
	s.remembers(channels.ScopePerson, "telegram:1", "hates rain\n\nLikes tea.")
	s.take(s.command("telegram:1", "memory", ""))
	if out := s.says("telegram", "Likes tea."); strings.Contains(out.Text, "Ulm") || len(out.Buttons) > 0 {
		t.Errorf("it says %+v", out)
	}
}

// both returns the two things that were said on a channel.
func (s *stage) both(channel string) [2]bus.Outbound {
	s.Helper()
	all := s.taken(channel)
	if len(all) != 2 {
		s.Fatalf("on %s was said %+v", channel, all)
	}
	return [2]bus.Outbound(all)
}

// Nobody else decides; about what agents know in all conversations, owners decide alone.
func TestOthersDecideAboutNoProposal(t *testing.T) {
	s := newStage(t)
	ids := s.propose(7, "Likes tea.", "agent:Deploys are on Mondays.")
	s.says("telegram", "2. For all my conversations with everybody: Deploys are on Mondays.")
	for by, id := range map[string]string{"telegram:2": ids[0], "telegram:1": ids[1]} {
		s.take(s.command(by, "memory", "keep "+id))
		s.says("telegram", "isn't waiting for your decision")
	}
	group := s.command("telegram:1", "memory", "keep "+ids[0])
	group.Group = true
	s.take(group)
	s.says("telegram", "only works in a private chat")
	s.remembers(channels.ScopePerson, "telegram:1", "")
	s.remembers(channels.ScopeAgent, "main", "")
	owner := s.command("telegram:1", "memory", "keep "+ids[0]+" "+ids[1])
	owner.From.Owner = true
	s.take(owner)
	both := s.both("telegram")
	if !strings.Contains(both[1].Text, "remember this: Likes tea.\n\nI'll remember this: Deploys") {
		t.Errorf("the answer is %q", both[1].Text)
	}
	s.remembers(channels.ScopePerson, "telegram:1", "Likes tea.")
	s.remembers(channels.ScopeAgent, "main", "Deploys are on Mondays.")
}

// What is too late, erased or more than a memory holds is not kept.
func TestProposalsThatAreNotKept(t *testing.T) {
	s := newStage(t)
	now := time.Now()
	s.commands.Now = func() time.Time { return now }
	s.commands.MostMemory = 20
	id := s.propose(7, "Likes tea and coffee.")[0]
	s.says("telegram", "Likes tea")
	s.take(s.command("telegram:1", "memory", "keep "+id))
	s.says("telegram", "no room for more")
	s.remembers(channels.ScopePerson, "telegram:1", "")
	now = now.Add(2 * time.Hour)
	s.take(s.command("telegram:1", "memory", ""))
	if out := s.says("telegram", "don't remember anything"); strings.Contains(out.Text, "tea") {
		t.Errorf("what has expired is shown: %q", out.Text)
	}
	s.take(s.command("telegram:1", "memory", "clear"))
	s.says("telegram", "erased")
	s.take(s.command("telegram:1", "memory", "keep "+id))
	s.says("telegram", "isn't waiting")
	if err := s.commands.Propose(t.Context(), "main:telegram:D1", 7); err != nil {
		t.Error(err)
	}
	if all := s.taken("telegram"); len(all) > 0 {
		t.Errorf("of what was erased is told %+v", all)
	}
	for _, args := range []string{"keep", "refuse", "keepsake x"} {
		s.take(s.command("telegram:1", "memory", args))
		s.says("telegram", "/memory keep ID")
	}
	now = time.Now()
	s.propose(8, "Likes cocoa.")
	if out := s.says("telegram", "1. Likes cocoa."); len(out.Buttons) != 2 || out.Buttons[0].Label != "Keep" {
		t.Errorf("the buttons are %+v", out.Buttons)
	}
}
