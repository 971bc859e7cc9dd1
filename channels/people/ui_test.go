package people_test

import (
	"context"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels/people"
)

func TestOwnersGetALinkToThePage(t *testing.T) {
	s := newCommandTest(t)
	link, made := "https://bot.example/#code=XYZ", 0
	s.commands.Page = people.PageLink{
		Owns: func(_ context.Context, person string) (bool, error) { return person == "telegram:1", nil },
		New:  func(context.Context) (string, error) { made++; return link, nil },
	}
	s.handleTwice(s.privateCommand("telegram:1", "ui", ""))
	s.wantOnly("telegram", link, "works once")

	made = 0
	s.handleTwice(s.privateCommand("telegram:2", "ui", ""))
	if said := s.wantOnly("telegram", "Only an owner"); strings.Contains(said.Text, "#code") || made > 0 {
		t.Errorf("somebody else got %q", said.Text)
	}
	group := s.privateCommand("telegram:1", "ui", "")
	group.Group, group.At = true, bus.Address{Channel: "telegram", Chat: "-5"}
	s.handleTwice(group)
	if said := s.wantOnly("telegram", "private chat"); strings.Contains(said.Text, "#code") || made > 0 {
		t.Errorf("a group got %q", said.Text)
	}
	link = ""
	s.handleTwice(s.privateCommand("telegram:1", "ui", ""))
	s.wantOnly("telegram", "`public_url`", "`parley ui`")
}
