package people_test

import (
	"context"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels/people"
)

func TestOwnersGetALinkToThePage(t *testing.T) {
	s := newStage(t)
	link, made := "https://bot.example/#code=XYZ", 0
	s.commands.Page = people.PageLink{
		Owns: func(_ context.Context, person string) (bool, error) { return person == "telegram:1", nil },
		New:  func(context.Context) (string, error) { made++; return link, nil },
	}
	s.take(s.command("telegram:1", "ui", ""))
	s.says("telegram", link, "works once")

	made = 0
	s.take(s.command("telegram:2", "ui", ""))
	if said := s.says("telegram", "Only an owner"); strings.Contains(said.Text, "#code") || made > 0 {
		t.Errorf("somebody else got %q", said.Text)
	}
	group := s.command("telegram:1", "ui", "")
	group.Group, group.At = true, bus.Address{Channel: "telegram", Chat: "-5"}
	s.take(group)
	if said := s.says("telegram", "private chat"); strings.Contains(said.Text, "#code") || made > 0 {
		t.Errorf("a group got %q", said.Text)
	}
	link = ""
	s.take(s.command("telegram:1", "ui", ""))
	s.says("telegram", "`public_url`", "`parley ui`")
}
